"""Schemas for a registry that are made from columns, or that a file has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, StructType
from vsc.runtime.errors import AvroSchemaError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Part
from vsc.runtime.spark.connectors.kafka.registry.schemas import Kind, WriterSchema

__all__ = ["default_name", "derived", "given", "kind_of"]

_NOT_A_NAME = re.compile(r"^[0-9]|[^A-Za-z0-9_]")
_SCALARS: dict[str, Any] = {
    "boolean": {"type": "boolean"}, "tinyint": {"type": "integer"}, "smallint": {"type": "integer"},
    "int": {"type": "integer"}, "bigint": {"type": "integer"}, "float": {"type": "number"},
    "double": {"type": "number"}, "string": {"type": "string"}, "binary": {"type": "string"},
    "date": {"type": "string", "format": "date"}, "timestamp": {"type": "string", "format": "date-time"},
}  # fmt: skip


def derived(part: Part, record: str | None, node: str, before: WriterSchema | None) -> str:
    """The text of the schema of a part of a node's records, called `record`; one of Protobuf keeps the numbers of the
    schema `before`."""
    name = record or default_name(part, node)
    nullable = part.name == "value"
    if part.form == "protobuf":
        from vsc.runtime.spark.connectors.kafka.registry import protobuf_writing

        kept = before.text if before is not None and before.kind == "protobuf" else None
        return protobuf_writing.derived(name, part.columns, kept)
    if part.form == "avro":
        from vsc.runtime.spark.connectors.kafka import avro_schema  # needs fastavro

        return avro_schema.derived(name, part.columns, nullable)
    return json.dumps(_json_schema(name, part.columns, nullable))


def default_name(part: Part, node: str) -> str:
    """What a record is called that nothing else names."""
    return _NOT_A_NAME.sub("_", f"{node}_{part.name}")


def kind_of(part: Part) -> Kind:
    """The kind of a part's schemas: its format."""
    assert part.form in ("avro", "json", "protobuf"), part.form
    return part.form  # type: ignore[return-value]


def given(options: Options, part: Part) -> WriterSchema | None:
    """The schema of a part that a file has."""
    path = options.get("schema" if part.name == "value" else "key_schema")
    if path is None or part.form != "avro":
        return None
    from vsc.runtime.spark.connectors.kafka.avro_schema import loaded  # needs fastavro

    try:
        return WriterSchema("avro", loaded(str(path)))
    except ValueError as error:
        raise AvroSchemaError(f"{options.place}: the schema '{path}' {error}", "correct it, or its path") from error


def _json_schema(name: str, columns: Sequence[Column], nullable: bool) -> Any:
    """What is null is not written: so nothing is required but a key."""
    found = {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": name, "type": "object",
        "properties": {column.name: _json_type(column.type) for column in columns},
    }  # fmt: skip
    return found if nullable else {**found, "required": [column.name for column in columns]}


def _json_type(type: DataType) -> Any:
    match type:
        case DecimalType():
            return {"type": "number"}
        case ArrayType(element):
            return {"type": "array", "items": {"oneOf": [{"type": "null"}, _json_type(element)]}}
        case MapType(_, value):
            return {"type": "object", "additionalProperties": {"oneOf": [{"type": "null"}, _json_type(value)]}}
        case StructType(fields):
            return {"type": "object", "properties": {field.name: _json_type(field.type) for field in fields}}
    return _SCALARS[str(type)]
