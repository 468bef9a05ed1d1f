"""Avro schemas of the columns of a record: made from the columns, or read from a file and compared with them.

Not for reading and writing records: that is `avro`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from fastavro.schema import SchemaParseException, UnknownType, expand_schema

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, Field, MapType, StructType

__all__ = ["branches", "derived", "is_record", "loaded", "misfit", "misfit_of"]

Use = Literal["read", "write"]
_SCALARS: dict[str, Any] = {
    "boolean": "boolean", "tinyint": "int", "smallint": "int", "int": "int", "bigint": "long", "float": "float",
    "double": "double", "string": "string", "binary": "bytes", "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip
_TIMES = {"timestamp-micros", "timestamp-millis", "local-timestamp-micros", "local-timestamp-millis"}
_READ = {
    "tinyint": {"int"}, "smallint": {"int"}, "bigint": {"int"}, "double": {"float", "int"},
    "string": {"enum", "uuid"}, "binary": {"fixed"}, "timestamp": _TIMES,
}  # fmt: skip
"""What a column is read from, beside the type that vsc writes; logical types by their names."""
_WRITE = {
    "tinyint": {"long", "double"}, "smallint": {"long", "double"}, "int": {"long", "double"}, "float": {"double"},
    "string": {"enum"}, "binary": {"fixed"}, "timestamp": _TIMES,
}  # fmt: skip
_LOGICAL = {*_TIMES, "date", "uuid", "decimal", "time-millis", "time-micros", "timestamp-nanos"}
"""The logical types that make another value of a primitive one."""


def derived(name: str, columns: Sequence[Column], nullable: bool) -> str:
    """The schema of a record of `columns`, called `name`, as JSON; `nullable`: each of them may be null."""
    fields = tuple(Field(column.name, column.type) for column in columns)
    return json.dumps(_record(StructType(fields), name, nullable))


def _record(type: StructType, name: str, nullable: bool = True) -> Any:
    """A record whose name, and those of the records in it, come from the way to it: each is there once."""
    fields = [(field.name, _schema(field.type, f"{name}.{field.name}")) for field in type.fields]
    return {
        "type": "record", "name": name,
        "fields": [{"name": n, "type": ["null", s], "default": None} if nullable else {"name": n, "type": s}
                   for n, s in fields],
    }  # fmt: skip


def _schema(type: DataType, name: str) -> Any:
    match type:
        case DecimalType(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case ArrayType(element):
            return {"type": "array", "items": ["null", _schema(element, f"{name}.item")]}
        case MapType(_, value):
            return {"type": "map", "values": ["null", _schema(value, f"{name}.value")]}
        case StructType():
            return _record(type, name)
    return _SCALARS[str(type)]


def loaded(path: str) -> str:
    """The schema in a file, as JSON. ValueError says what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        _expanded(text)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except UnknownType as error:
        raise ValueError(f"uses the type {error.name!r}, which it does not define") from error
    except SchemaParseException as error:
        raise ValueError(f"is not an Avro schema: {error}") from error
    except ValueError as error:
        raise ValueError("is not JSON") from error
    return text


def misfit(schema: str, columns: Sequence[Column], use: Use) -> str | None:
    """Why `columns` cannot be read from, or written as, values of a schema; None if they can."""
    return misfit_of(_expanded(schema), columns, use)


def misfit_of(found: Any, columns: Sequence[Column], use: Use) -> str | None:
    """As `misfit`, for a schema in which each named type is written out where it is used."""
    if len(columns) == 1 and not _holds_records(found):
        return next(_misfits(found, columns[0].type, columns[0].name, use), None)
    return next(_misfits(found, StructType(tuple(Field(c.name, c.type) for c in columns)), "", use), None)


def is_record(schema: str) -> bool:
    """Whether its values are records (of one column or more), not a column's own."""
    return _holds_records(_expanded(schema))


def _expanded(schema: str) -> Any:
    """The schema with each named type written out where it is used."""
    return expand_schema(json.loads(schema))


def _holds_records(schema: Any) -> bool:
    return any(isinstance(one, dict) and one["type"] == "record" for one in branches(schema))


def branches(schema: Any) -> list[Any]:
    """What a value may be, but null."""
    found = schema if isinstance(schema, list) else [schema]
    found = [one["type"] if isinstance(one, dict) and isinstance(one["type"], dict | list) else one for one in found]
    return [one for one in found if _kind(one) != "null"]


def _kind(schema: Any) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    logical = schema.get("logicalType")
    return str(logical if logical in _LOGICAL else schema["type"])


def _misfits(schema: Any, type: DataType, name: str, use: Use) -> Iterator[str]:
    """A value is read from every branch of a union, and written as any."""
    found = [next(_misfits_one(one, type, name, use), None) for one in branches(schema)]
    wrong = [one for one in found if one is not None]
    if wrong and (use == "read" or len(wrong) == len(found)):
        yield wrong[0]


def _misfits_one(schema: Any, type: DataType, name: str, use: Use) -> Iterator[str]:
    kind = _kind(schema)
    match type, kind:
        case StructType(), "record":
            yield from _misfits_record(schema, type, name, use)
            return
        case ArrayType(element), "array":
            yield from _misfits(schema["items"], element, f"{name}[]", use)
            return
        case MapType(_, value), "map":
            yield from _misfits(schema["values"], value, f"{name}[]", use)
            return
        case DecimalType(precision, scale), "decimal":
            wide, narrow = (precision, scale), (schema["precision"], schema.get("scale", 0))
            if use == "write":
                wide, narrow = narrow, wide
            if narrow[1] <= wide[1] and narrow[0] - narrow[1] <= wide[0] - wide[1]:
                return
            kind = f"decimal({schema['precision']},{schema.get('scale', 0)})"
        case _:
            own = {_kind(_SCALARS[str(type)])} if str(type) in _SCALARS else set()
            if kind in own | (_READ if use == "read" else _WRITE).get(str(type), set()):
                return
    what = f"column '{name}' ({type})" if name else "the columns"
    yield f"{what} cannot be {'read from' if use == 'read' else 'written as'} its type {kind!r}"


def _misfits_record(schema: Any, type: StructType, name: str, use: Use) -> Iterator[str]:
    fields, inside = {field["name"]: field for field in schema["fields"]}, f"{name}." if name else ""
    for field in type.fields:
        if field.name not in fields:
            yield f"it has no field '{inside}{field.name}'"
        else:
            yield from _misfits(fields[field.name]["type"], field.type, f"{inside}{field.name}", use)
    given = {field.name for field in type.fields}
    for missing, field in fields.items():
        optional = "default" in field or (isinstance(field["type"], list) and "null" in field["type"])
        if use == "write" and missing not in given and not optional:
            yield f"its field '{inside}{missing}' has no default, and no column"
