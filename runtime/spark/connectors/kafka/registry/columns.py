"""The columns that a schema of a registry has, for a source statement; and what no column can be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, Field, MapType, StructType, parse_type
from vsc.runtime.spark.connectors.kafka.registry.schemas import WriterSchema

__all__ = ["Columns", "columns_of", "columns_of_rows"]

_DEEP = 12
_AVRO = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "string": "string",
    "bytes": "binary", "fixed": "binary", "enum": "string", "uuid": "string", "date": "date",
    "timestamp-millis": "timestamp", "timestamp-micros": "timestamp", "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
}  # fmt: skip
_PROTOBUF = {
    "boolean": "boolean", "int": "int", "bigint": "bigint", "uint32": "bigint", "uint64": "decimal(20, 0)",
    "float": "float", "double": "double", "string": "string", "binary": "binary", "enum": "string",
}  # fmt: skip
_JSON = {"integer": "bigint", "number": "double", "boolean": "boolean", "string": "string"}
_JSON_TEXTS = {"date-time": "timestamp", "date": "date"}


_CONNECT = {
    "io.debezium.time.Date": "date", "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros", "io.debezium.time.NanoTimestamp": "timestamp-micros",
    "io.debezium.time.ZonedTimestamp": "timestamp-micros", "io.debezium.time.Time": "time-millis",
    "io.debezium.time.MicroTime": "time-micros", "io.debezium.time.NanoTime": "time-micros",
}  # fmt: skip
"""What Debezium's names of times are called in Avro."""


class _Unknown(ValueError):
    """What no column can be; the text is what it is."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a schema, and by name what is `left_out`. `bare`: the schema is one value, not a record."""

    columns: tuple[Column, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    bare: bool = False


def columns_of(schema: WriterSchema, record: str | None = None) -> Columns:
    """The columns of a schema, of Protobuf of its message `record`, or the first. ValueError if it has none."""
    if schema.kind == "protobuf":
        from vsc.runtime.spark.connectors.kafka.registry.protobuf_reading import message_named

        message = message_named(schema.text, record)
        if message is None:
            raise ValueError("has no message" if record is None else f"has no message {record}")
        return _collected((one.name, lambda one=one: _of_protobuf(one, 0)) for one in message.fields)
    if schema.kind == "json":
        found = json.loads(schema.text)
        properties = found.get("properties") if isinstance(found, dict) else None
        if not isinstance(properties, dict):
            raise ValueError("has no properties")
        return _collected((name, lambda one=one: _of_json(one, 0)) for name, one in properties.items())
    from fastavro.schema import expand_schema

    whole = expand_schema(json.loads(schema.text))
    if isinstance(whole, dict) and whole["type"] == "record":
        return _collected((one["name"], lambda one=one: _of_avro(one["type"], 0)) for one in whole["fields"])
    return Columns((Column("key", _of_avro(whole, 0)),), {}, True)


def columns_of_rows(schema: WriterSchema) -> Columns | None:
    """The columns of the table whose changes a schema of Debezium's events in Avro describes; None for another one."""
    if schema.kind != "avro":
        return None
    from vsc.runtime.spark.connectors.kafka.registry.debezium_avro import envelope_misfit, row_fields

    if envelope_misfit(schema.text) is not None:
        return None
    return _collected(
        (name, lambda one=one: _of_avro(_with_logical_type(one["type"]), 0))
        for name, one in row_fields(schema.text).items()
    )


def _with_logical_type(schema: Any) -> Any:
    """A schema in which times that Debezium names have the logical type that they are."""
    if isinstance(schema, list):
        return [_with_logical_type(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    logical = _CONNECT.get(str(schema.get("connect.name")))
    found = schema if logical is None else {**schema, "logicalType": logical}
    return {**found, "items": _with_logical_type(found["items"])} if found["type"] == "array" else found


def _collected(fields: Iterator[tuple[str, Any]]) -> Columns:
    columns, left_out = [], {}
    for name, type in fields:
        try:
            columns.append(Column(name, type()))
        except _Unknown as error:
            left_out[name] = str(error)
    return Columns(tuple(columns), left_out)


def _struct(fields: Iterator[tuple[str, Any]]) -> DataType:
    found = _collected(fields)  # a member that no column can be is not declared
    if not found.columns:
        raise _Unknown("a record without a field that can be read")
    return StructType(tuple(Field(column.name, column.type) for column in found.columns))


def _of_avro(schema: Any, depth: int) -> DataType:
    from vsc.runtime.spark.connectors.kafka.avro_schema import branches

    there = branches(schema)
    if len(there) != 1 or depth > _DEEP:
        raise _Unknown("a union" if len(there) > 1 else "nothing but null" if not there else "a type inside of itself")
    [one] = there
    if not isinstance(one, dict):
        return _named(_AVRO, one)
    if one.get("logicalType") == "decimal":
        return _decimal(one["precision"], one.get("scale", 0))
    kind = one.get("logicalType") if one.get("logicalType") in _AVRO else one["type"]
    if "time" in str(one.get("logicalType")) and one["logicalType"] not in _AVRO:
        raise _Unknown(str(one["logicalType"]))
    match kind:
        case "record":
            inner = one["fields"]
            return _struct((f["name"], lambda f=f: _of_avro(f["type"], depth + 1)) for f in inner)
        case "array":
            return ArrayType(_of_avro(one["items"], depth + 1))
        case "map":
            return MapType(parse_type("string"), _of_avro(one["values"], depth + 1))
    return _named(_AVRO, str(kind))


def _of_protobuf(found: Any, depth: int) -> DataType:
    from vsc.runtime.spark.connectors.kafka.registry.protobuf_types import is_map

    if is_map(found):
        entry = found.message_type.fields_by_name
        return MapType(_of_one(entry["key"], depth + 1), _of_one(entry["value"], depth + 1))
    one = _of_one(found, depth)
    return ArrayType(one) if found.is_repeated else one


def _of_one(found: Any, depth: int) -> DataType:
    from vsc.runtime.spark.connectors.kafka.registry.protobuf_types import (
        DATE,
        DECIMAL,
        TIMESTAMP,
        WRAPPERS,
        scalar_of,
    )

    message = found.message_type
    if message is None:
        return _named(_PROTOBUF, scalar_of(found))
    if message.full_name in WRAPPERS:
        return _named(_PROTOBUF, scalar_of(message.fields_by_name["value"]))
    known = {TIMESTAMP: "timestamp", DATE: "date", DECIMAL: "decimal(38, 18)"}.get(message.full_name)
    if known is not None:
        return parse_type(known)
    if depth > _DEEP:
        raise _Unknown("a type inside of itself")
    return _struct((one.name, lambda one=one: _of_protobuf(one, depth + 1)) for one in message.fields)


def _of_json(schema: Any, depth: int) -> DataType:
    if not isinstance(schema, dict) or depth > _DEEP:
        raise _Unknown("a schema without a type")
    either = schema.get("oneOf") or schema.get("anyOf") or []
    branches = [one for one in either if one != {"type": "null"}]
    if branches:
        if len(branches) > 1:
            raise _Unknown("one of several types")
        return _of_json(branches[0], depth + 1)
    kinds = schema.get("type")
    there = [str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind not in ("null", None)]
    if len(there) != 1:
        raise _Unknown("one of several types" if there else "a schema without a type")
    [kind] = there
    if kind == "array":
        return ArrayType(_of_json(schema.get("items"), depth + 1))
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return _struct((name, lambda one=one: _of_json(one, depth + 1)) for name, one in schema["properties"].items())
    if kind == "object":
        return MapType(parse_type("string"), _of_json(schema.get("additionalProperties"), depth + 1))
    return parse_type(_JSON_TEXTS[schema["format"]]) if schema.get("format") in _JSON_TEXTS else _named(_JSON, kind)


def _named(types: dict[str, str], kind: str) -> DataType:
    if kind not in types:
        raise _Unknown(kind)
    return parse_type(types[kind])


def _decimal(precision: int, scale: int) -> DataType:
    if precision > 38 or scale > precision:
        raise _Unknown(f"a decimal of {precision} digits")
    return DecimalType(precision, scale)
