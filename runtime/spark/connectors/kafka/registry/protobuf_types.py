"""What of a Protobuf message a column is: read from it, or written to it; and why it cannot be.

A field is found by its name, or, if the writer's schema calls it differently, by the number that the reader's gives it.
One that the writer's schema lacks has the value that the reader's schema gives a field that is not set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from vsc.plan.types import ArrayType, DataType, DecimalType, Field, MapType, StructType

__all__ = ["DATE", "DECIMAL", "EPOCH", "TIMESTAMP", "WRAPPERS", "NotHeld", "is_map", "readers", "scalar_of"]

TIMESTAMP, DATE, DECIMAL = "google.protobuf.Timestamp", "google.type.Date", "confluent.type.Decimal"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: "double", FieldDescriptor.TYPE_FLOAT: "float", FieldDescriptor.TYPE_INT64: "bigint",
    FieldDescriptor.TYPE_SINT64: "bigint", FieldDescriptor.TYPE_SFIXED64: "bigint", FieldDescriptor.TYPE_INT32: "int",
    FieldDescriptor.TYPE_SINT32: "int", FieldDescriptor.TYPE_SFIXED32: "int", FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "uint32", FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "uint64", FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_STRING: "string", FieldDescriptor.TYPE_BYTES: "binary", FieldDescriptor.TYPE_ENUM: "enum",
}  # fmt: skip
_READ = {
    "boolean": {"boolean"}, "int": {"int"}, "bigint": {"bigint", "int", "uint32", "uint64"}, "float": {"float"},
    "double": {"double", "float", "int", "uint32"}, "string": {"string", "enum"}, "binary": {"binary"},
    "tinyint": {"int"}, "smallint": {"int"},
}  # fmt: skip
"""What a column is read from; a number that is too big for it makes its record a bad row."""
Reader = Callable[[Any], Any]


class NotHeld(ValueError):
    """A column that a schema cannot give or take."""


@dataclass(frozen=True)
class _Of:
    """How a field of a message becomes a value: None if it is not set."""

    name: str
    value: Reader
    presence: bool

    def __call__(self, message: Any) -> Any:
        if self.presence and not message.HasField(self.name):
            return None
        return self.value(getattr(message, self.name))


def readers(writer: Any, reader: Any | None, fields: Sequence[Field], path: str = "") -> list[Reader]:
    """What makes the fields of a row from a message of the descriptor `writer`; NotHeld if one cannot be made."""
    return [_of_field(writer, reader, field, f"{path}{field.name}") for field in fields]


def _of_field(writer: Any, reader: Any | None, field: Field, path: str) -> Reader:
    ours = writer.fields_by_name.get(field.name)
    theirs = None if reader is None else reader.fields_by_name.get(field.name)
    if ours is None and theirs is not None:
        ours = writer.fields_by_number.get(theirs.number)
    if ours is None and theirs is not None:
        return _unset(theirs, field.type, path)
    if ours is None:
        raise NotHeld(f"it has no field '{path}'")
    value = _of(ours, theirs, field.type, path)
    return _Of(ours.name, value, ours.has_presence and not _default(ours))


def _default(field: Any) -> bool:
    """Whether a field says by itself what it is if it is not set (of proto2)."""
    return bool(field.has_default_value)


def _unset(field: Any, type: DataType, path: str) -> Reader:
    """The value of a field that is not set."""
    value = _of(field, None, type, path)
    if field.has_presence and not _default(field):
        return lambda message: None
    empty: Any = {} if is_map(field) else [] if field.is_repeated else field.default_value
    found = value(empty)
    return lambda message: found


def _of(field: Any, reader: Any | None, type: DataType, path: str) -> Reader:
    if is_map(field):
        return _of_map(field, reader, type, path)
    if not field.is_repeated:
        return _of_one(field, reader, type, path)
    if not isinstance(type, ArrayType):
        raise _misfit(path, type, "repeated")
    one = _of_one(field, reader, type.element, f"{path}[]")
    return lambda found: [one(item) for item in found]


def _of_map(field: Any, reader: Any | None, type: DataType, path: str) -> Reader:
    if not isinstance(type, MapType):
        raise _misfit(path, type, "map")
    entry = field.message_type.fields_by_name
    inner = None if reader is None or not is_map(reader) else reader.message_type.fields_by_name["value"]
    key = _of_one(entry["key"], None, type.key, f"{path}[]")
    value = _of_one(entry["value"], inner, type.value, f"{path}[]")
    return lambda found: {key(name): value(found[name]) for name in found}


def _of_one(field: Any, reader: Any | None, type: DataType, path: str) -> Reader:
    message = field.message_type
    if message is None:
        return _of_scalar(field, type, path)
    name = message.full_name
    if name in WRAPPERS:
        inner = _of_scalar(message.fields_by_name["value"], type, path)
        return lambda found: inner(found.value)
    if name == TIMESTAMP and str(type) == "timestamp":
        return lambda found: EPOCH + timedelta(seconds=found.seconds, microseconds=found.nanos // 1000)
    if name == DATE and str(type) == "date":
        return lambda found: date(found.year, found.month, found.day)
    if name == DECIMAL and isinstance(type, DecimalType):
        return _decimal
    if not isinstance(type, StructType):
        raise _misfit(path, type, name)
    of_reader = None if reader is None else reader.message_type
    fields = dict(
        zip((one.name for one in type.fields), readers(message, of_reader, type.fields, f"{path}."), strict=True)
    )
    return lambda found: {one: value(found) for one, value in fields.items()}


def _decimal(found: Any) -> Decimal:
    unscaled = int.from_bytes(found.value, "big", signed=True)
    return Decimal(unscaled).scaleb(-found.scale, Context(prec=max(1, len(str(unscaled)))))


def _of_scalar(field: Any, type: DataType, path: str) -> Reader:
    kind = scalar_of(field)
    if kind == "enum" and str(type) == "string":
        numbers = field.enum_type.values_by_number
        return lambda found: numbers[found].name if found in numbers else str(found)
    if kind == "uint64" and isinstance(type, DecimalType) and type.precision - type.scale >= 20:
        return Decimal
    if kind not in _READ.get(str(type), set()):
        raise _misfit(path, type, kind)
    if kind == "float" and str(type) == "double":
        return float
    return lambda found: found


def scalar_of(field: Any) -> str:
    """What a field other than a message holds: a type, ``uint32``, ``uint64`` or ``enum``."""
    return _SCALARS.get(field.type, "group")


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _misfit(path: str, type: DataType, kind: str) -> NotHeld:
    return NotHeld(f"column '{path}' ({type}) cannot be read from its type {kind!r}")
