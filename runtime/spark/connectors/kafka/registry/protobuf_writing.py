"""Writes rows of columns in Protobuf: the schema that is made of the columns, and messages of any that they fit."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, Field, MapType, StructType
from vsc.runtime.spark.connectors.kafka.registry.protobuf_reading import message_named
from vsc.runtime.spark.connectors.kafka.registry.protobuf_types import (
    DATE,
    DECIMAL,
    EPOCH,
    TIMESTAMP,
    WRAPPERS,
    NotHeld,
    is_map,
    scalar_of,
)
from vsc.runtime.spark.connectors.kafka.registry.protoc import messages_of
from vsc.runtime.values import to_python, to_values

__all__ = ["derived", "encoded", "write_misfit"]

_SCALARS = {
    "boolean": "bool", "tinyint": "int32", "smallint": "int32", "int": "int32", "bigint": "int64", "float": "float",
    "double": "double", "string": "string", "binary": "bytes", "date": DATE, "timestamp": TIMESTAMP,
}  # fmt: skip
_IMPORTS = {
    TIMESTAMP: "google/protobuf/timestamp.proto", DATE: "google/type/date.proto",
    DECIMAL: "confluent/type/decimal.proto",
}  # fmt: skip
_WRITE = {
    "boolean": {"boolean"},
    **{kind: {"int", "bigint"} for kind in ("tinyint", "smallint", "int")},
    "bigint": {"bigint"},
    "float": {"float", "double"}, "double": {"double"}, "string": {"string", "enum"}, "binary": {"binary"},
}  # fmt: skip
Put = Callable[[Any, Any], None]
"""Puts a value, which is not null, into a message."""


def derived(record: str, columns: Sequence[Column], before: str | None) -> str:
    """The text of a schema whose first message is `record`: each field keeps the number that it has in the compiled
    schema `before`; new ones get numbers that it has not used."""
    space, _, name = record.rpartition(".")
    old = None if before is None else message_named(before, record) or message_named(before, None)
    fields = tuple(Field(column.name, column.type) for column in columns)
    used: set[str] = set()
    lines = list(_message(name, fields, old, "", used))
    header = ['syntax = "proto3";', *([f"package {space};"] if space else [])]
    imports = [f'import "{_IMPORTS[one]}";' for one in sorted(used)]
    return "\n".join([*header, *imports, *lines]) + "\n"


def _message(name: str, fields: Sequence[Field], old: Any | None, indent: str, used: set[str]) -> Iterator[str]:
    known = {} if old is None else old.fields_by_name
    taken = set() if old is None else _taken(old)
    names = {field.name for field in fields}
    yield f"{indent}message {name} {{"
    inner = indent + "  "
    free = (number for number in range(1, 1 << 29) if number not in taken and not 19000 <= number < 20000)
    for field in fields:
        before = known.get(field.name)
        number = next(free) if before is None else before.number
        struct = _struct(field.type)
        if struct is not None:
            kind = field.name[:1].upper() + field.name[1:]
            while kind in names:
                kind += "_"
            names.add(kind)
            yield from _message(kind, struct.fields, None if before is None else _record(before), inner, used)
        else:
            kind = _kind(field.type, used)
        yield f"{inner}{_declared(field.type, kind)} {field.name} = {number};"
    yield f"{indent}}}"


def _taken(message: Any) -> set[int]:
    """The numbers that a message uses, or has reserved."""
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    reserved = {number for one in proto.reserved_range for number in range(one.start, min(one.end, one.start + 10000))}
    return reserved | {field.number for field in message.fields}


def _record(field: Any) -> Any | None:
    """The message of a field, or of a map's values."""
    return field.message_type.fields_by_name["value"].message_type if is_map(field) else field.message_type


def _struct(type: DataType) -> StructType | None:
    """The struct that a type holds."""
    inner = type.element if isinstance(type, ArrayType) else type.value if isinstance(type, MapType) else type
    return inner if isinstance(inner, StructType) else None


def _kind(type: DataType, used: set[str]) -> str:
    inner = type.element if isinstance(type, ArrayType) else type.value if isinstance(type, MapType) else type
    kind = DECIMAL if isinstance(inner, DecimalType) else _SCALARS[str(inner)]
    if kind in _IMPORTS:
        used.add(kind)
    return kind


def _declared(type: DataType, kind: str) -> str:
    match type:
        case ArrayType():
            return f"repeated {kind}"
        case MapType(key, _):
            return f"map<{_SCALARS[str(key)]}, {kind}>"
    return f"optional {kind}"


def write_misfit(schema: str, columns: Sequence[Column], record: str | None) -> str | None:
    """Why columns cannot be written as the message `record` of a schema; None if they can."""
    message = message_named(schema, record)
    if message is None:
        return f"it has no message {record!r}" if record else "it has no message"
    try:
        _fields(message, tuple(Field(column.name, column.type) for column in columns), "")
    except NotHeld as error:
        return str(error)
    return None


def encoded(schema: str, record: str | None, columns: tuple[Column, ...], arrays: Sequence[pa.Array]) -> list[bytes]:
    """The message of each row, behind its indexes. ValueError shows the row that the schema cannot hold."""
    kind, put, header = _writer(schema, record, columns)
    found = []
    for row in zip(*(to_values(a, c.type) for a, c in zip(arrays, columns, strict=True)), strict=True):
        message = kind()
        values = {c.name: to_python(value, c.type) for value, c in zip(row, columns, strict=True)}
        try:
            put(message, values)
        except (ValueError, TypeError, OverflowError) as error:
            shown = repr(values)
            shown = shown if len(shown) <= 200 else shown[:197] + "..."
            raise ValueError(f"{shown} does not fit its Protobuf schema: {error}") from error
        found.append(header + message.SerializeToString())
    return found


@lru_cache(maxsize=64)
def _writer(schema: str, record: str | None, columns: tuple[Column, ...]) -> tuple[type[Any], Put, bytes]:
    message = message_named(schema, record)
    assert message is not None
    put = _fields(message, tuple(Field(column.name, column.type) for column in columns), "")
    return GetMessageClass(message), put, _header(schema, message)


def _header(schema: str, message: Any) -> bytes:
    """The indexes of a message, as Confluent's serializers write them."""
    indexes: list[int] = []
    inside = message
    while inside.containing_type is not None:
        indexes.insert(0, list(inside.containing_type.nested_types).index(inside))
        inside = inside.containing_type
    indexes.insert(0, messages_of(schema).index(inside))
    if indexes == [0]:
        return b"\0"
    return b"".join(map(_zigzag, [len(indexes), *indexes]))


def _zigzag(number: int) -> bytes:
    rest, found = number << 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


@dataclass(frozen=True)
class _Fields:
    """Puts the members of a row, or of a struct, into a message."""

    puts: tuple[tuple[str, Put, bool], ...]

    def __call__(self, message: Any, values: Any) -> None:
        for name, put, nullable in self.puts:
            value = values.get(name)
            if value is not None:
                put(message, value)
            elif not nullable:
                raise ValueError(f"'{name}' is null, and its field has no presence (`optional`)")


def _fields(message: Any, fields: tuple[Field, ...], path: str) -> Put:
    puts = []
    for field in fields:
        found = message.fields_by_name.get(field.name)
        if found is None:
            raise NotHeld(f"it has no field '{path}{field.name}'")
        put = _field(found, field.type, f"{path}{field.name}")
        puts.append((field.name, put, found.has_presence or found.is_repeated))
    given = {field.name for field in fields}
    needed = next((one.name for one in message.fields if one.is_required and one.name not in given), None)
    if needed is not None:
        raise NotHeld(f"its field '{path}{needed}' is required, and there is no column for it")
    return _Fields(tuple(puts))


def _field(field: Any, type: DataType, path: str) -> Put:
    name = field.name
    if is_map(field):
        if not isinstance(type, MapType):
            raise _misfit(path, type, "map")
        entry = field.message_type.fields_by_name
        key = _scalar(entry["key"], type.key, path)
        if entry["value"].message_type is None:
            value = _scalar(entry["value"], type.value, f"{path}[]")

            def put_scalars(message: Any, found: Any) -> None:
                target = getattr(message, name)
                for one, inner in found.items():
                    target[key(one)] = value(_present(inner))

            return put_scalars
        fill = _into(entry["value"], type.value, f"{path}[]")

        def put_messages(message: Any, found: Any) -> None:
            target = getattr(message, name)
            for one, inner in found.items():
                fill(target[key(one)], _present(inner))

        return put_messages
    if field.is_repeated:
        if not isinstance(type, ArrayType):
            raise _misfit(path, type, "repeated")
        if field.message_type is None:
            item = _scalar(field, type.element, f"{path}[]")
            return lambda message, found: getattr(message, name).extend(item(_present(one)) for one in found)
        fill_item = _into(field, type.element, f"{path}[]")

        def put_items(message: Any, found: Any) -> None:
            for one in found:
                fill_item(getattr(message, name).add(), _present(one))

        return put_items
    if field.message_type is None:
        scalar = _scalar(field, type, path)
        return lambda message, found: setattr(message, name, scalar(found))
    fill_one = _into(field, type, path)

    def put_one(message: Any, found: Any) -> None:
        target = getattr(message, name)
        target.SetInParent()
        fill_one(target, found)

    return put_one


def _present(value: Any) -> Any:
    if value is None:
        raise ValueError("an array or a map in Protobuf holds no null")
    return value


def _into(field: Any, type: DataType, path: str) -> Put:
    """Fills the message that a field is."""
    message = field.message_type
    name = message.full_name
    if name in WRAPPERS:
        scalar = _scalar(message.fields_by_name["value"], type, path)
        return lambda target, found: setattr(target, "value", scalar(found))
    if name == TIMESTAMP and str(type) == "timestamp":
        return _put_timestamp
    if name == DATE and str(type) == "date":
        return _put_date
    if name == DECIMAL and isinstance(type, DecimalType):
        return lambda target, found: _put_decimal(target, found, type)
    if isinstance(type, StructType):
        return _fields(message, type.fields, f"{path}.")
    raise _misfit(path, type, name)


def _put_timestamp(target: Any, found: datetime.datetime) -> None:
    micros = (found - EPOCH) // datetime.timedelta(microseconds=1)
    target.seconds, target.nanos = micros // 1_000_000, micros % 1_000_000 * 1000


def _put_date(target: Any, found: datetime.date) -> None:
    target.year, target.month, target.day = found.year, found.month, found.day


def _put_decimal(target: Any, found: Decimal, type: DecimalType) -> None:
    unscaled = int(found.scaleb(type.scale))
    target.value = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    target.precision, target.scale = type.precision, type.scale


def _scalar(field: Any, type: DataType, path: str) -> Callable[[Any], Any]:
    kind = scalar_of(field)
    if kind not in _WRITE.get(str(type), set()):
        raise _misfit(path, type, kind)
    if kind == "enum":
        numbers = {name: one.number for name, one in field.enum_type.values_by_name.items()}
        return lambda found: _number_of(numbers, found)
    return lambda found: found


def _number_of(numbers: Mapping[str, int], found: str) -> int:
    if found not in numbers:
        raise ValueError(f"{found!r} is not a value of its enum")
    return numbers[found]


def _misfit(path: str, type: DataType, kind: str) -> NotHeld:
    return NotHeld(f"column '{path}' ({type}) cannot be written as its type {kind!r}")
