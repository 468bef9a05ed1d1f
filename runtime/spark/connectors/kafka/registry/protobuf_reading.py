"""Reads payloads in Protobuf as declared columns: which message they are, what it holds, and why one cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from vsc.plan.nodes import Column
from vsc.plan.types import Field
from vsc.runtime.spark.connectors.kafka.registry.protobuf_types import NotHeld, Reader, readers, scalar_of
from vsc.runtime.spark.connectors.kafka.registry.protoc import file_of, message_at, messages_of
from vsc.runtime.values import from_python, to_array

__all__ = ["decoded", "listed", "message_named", "read_misfit"]

_Resolved = tuple[type[Any], list[Reader]]


def decoded(
    writer: str, reader: str | None, columns: tuple[Column, ...], bodies: pa.Array
) -> tuple[list[pa.Array], list[str | None]]:
    """The columns of payloads of a writer's schema without their ids, and why one cannot be read."""
    nothing = [None] * len(columns)
    rows: list[Sequence[Any]] = []
    problems: list[str | None] = []
    for body in bodies.to_pylist():
        row, problem = nothing, None
        try:
            indexes, start = _indexes(body)
            kind, fields = _resolved(writer, reader, columns, indexes)
            message = kind.FromString(body[start:])
            row = [_internal(read(message), column) for read, column in zip(fields, columns, strict=True)]
        except DecodeError:
            problem = "it is not a message of its schema"
        except (ValueError, ArithmeticError) as error:
            problem = " ".join(str(error).split())[:200] or "a number in it is out of range"
        rows.append(row)
        problems.append(problem)
    found = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return [to_array(list(one), column.type) for one, column in zip(found, columns, strict=True)], problems


def read_misfit(schema: str, columns: Sequence[Column], record: str | None) -> str | None:
    """Why columns cannot be read from the message `record` of a schema (default: its first); None if they can."""
    message = message_named(schema, record)
    if message is None:
        return f"it has no message {record!r}" if record else "it has no message"
    try:
        readers(message, None, [Field(column.name, column.type) for column in columns])
    except NotHeld as error:
        return str(error)
    return None


def message_named(schema: str, record: str | None) -> Any | None:
    """The message of that name, else the first one; None if there is none."""
    found = messages_of(schema)
    if record is None:
        return next(iter(found), None)
    try:
        return file_of(schema).pool.FindMessageTypeByName(record)
    except KeyError:
        return None


def listed(schema: str, record: str | None) -> str:
    """The fields of a message, for another one."""
    message = message_named(schema, record)
    if message is None:
        return "no such message"
    fields = (f"{'repeated ' * one.is_repeated}{_kind(one)} {one.name}" for one in message.fields)
    return f"{message.full_name} {{{'; '.join(fields)}}}"


def _kind(field: Any) -> str:
    if field.message_type is not None:
        return str(field.message_type.full_name)
    return str(field.enum_type.full_name) if field.enum_type is not None else scalar_of(field)


@lru_cache(maxsize=256)
def _resolved(writer: str, reader: str | None, columns: tuple[Column, ...], indexes: tuple[int, ...]) -> _Resolved:
    message = message_at(writer, indexes)
    if message is None:
        raise ValueError(f"its schema has no message at {list(indexes)}")
    of_reader = None
    if reader is not None:
        of_reader = message_named(reader, message.full_name) or message_named(reader, None)
    fields = [Field(column.name, column.type) for column in columns]
    return GetMessageClass(message), readers(message, of_reader, fields)


def _internal(value: Any, column: Column) -> Any:
    try:
        return from_python(value, column.type)
    except ValueError as error:
        raise ValueError(f"column '{column.name}': {error}") from error


def _indexes(body: bytes) -> tuple[tuple[int, ...], int]:
    """Which message it is, by Confluent's indexes, and where it begins."""
    count, at = _number(body, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= 100:
        raise ValueError("it does not say which message of its schema it is")
    found = []
    for _ in range(count):
        index, at = _number(body, at)
        found.append(index)
    return tuple(found), at


def _number(body: bytes, at: int) -> tuple[int, int]:
    """A number in zigzag encoding, and where the next one begins."""
    value = shift = 0
    while True:
        if at >= len(body) or shift > 28:
            raise ValueError("it does not say which message of its schema it is")
        byte = body[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
