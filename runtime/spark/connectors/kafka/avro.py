"""Keys and values of Kafka's records in Avro, with the schemas that the options give, checked: bytes and columns.

Guarantees: a value that is not of the schema, or not wholly, or whose content does not fit the declared columns, comes
back as nothing but the reason. Where there is a schema id, each value begins with Confluent's five bytes: a zero, and
the id. Not for what schemas are: that is `avro_schema`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa

from vsc.extras import required
from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, MapType, StructType
from vsc.runtime.errors import AvroSchemaError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.text_rows import TextRows
from vsc.runtime.values import from_python, to_array, to_python, to_values

with required("a Kafka connector in Avro"):
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    from vsc.runtime.spark.connectors.kafka.avro_schema import derived, is_record, loaded, misfit

__all__ = ["AvroForm", "AvroReader", "avro_form", "decoded", "encoded"]

_NOT_A_NAME = re.compile(r"^[0-9]|[^A-Za-z0-9_]")
_IDS = range(1 << 31)
_MAGIC, _HEADER = b"\0", 5


@dataclass(frozen=True, slots=True)
class AvroForm:
    """`columns` in records of `schema` (JSON), or one column that is the value itself (`bare`).

    `id`: the schema id that begins each value; 'any' to read whichever; None for no header.
    """

    schema: str
    columns: tuple[Column, ...]
    bare: bool
    id: int | str | None

    @property
    def header(self) -> bytes:
        """What each value that is written begins with."""
        return b"" if self.id is None else _MAGIC + int(self.id).to_bytes(4, "big")


@dataclass(frozen=True)
class AvroReader:
    """Reads the bytes of keys or values (a `TextReader`)."""

    form: AvroForm

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, as they are declared."""
        return self.form.columns

    def read(self, texts: pa.Array) -> TextRows:
        """The rows of bytes, none of them null: one of each."""
        columns, problems = decoded(self.form, texts)
        count = len(texts)
        return TextRows(columns, np.arange(count), pa.array(problems, pa.string()), pa.nulls(count, pa.string()))


def avro_form(
    options: Options,
    part: Literal["key", "value"],
    node: str,
    columns: Sequence[Column],
    use: Literal["read", "write"],
) -> AvroForm:
    """How `columns` of a node stand in the key or the value of a record. Raises AvroSchemaError if they cannot."""
    prefix = "key_" if part == "key" else ""
    id, path = _id(options, f"{prefix}schema_id", use), options.get(f"{prefix}schema")
    if path is None:
        name = _NOT_A_NAME.sub("_", f"{node}_{part}")
        return AvroForm(derived(name, columns, nullable=part == "value"), tuple(columns), False, id)
    try:
        text = loaded(str(path))
    except ValueError as error:
        raise AvroSchemaError(f"{options.place}: the schema '{path}' {error}", "correct it, or its path") from error
    problem = misfit(text, columns, use)
    if problem is not None:
        raise AvroSchemaError(
            f"{options.place}: the schema '{path}' does not fit: {problem}", "correct the columns, or the schema"
        )
    return AvroForm(text, tuple(columns), not is_record(text), id)


def _id(options: Options, name: str, use: Literal["read", "write"]) -> int | str | None:
    """The schema id: variables make it text."""
    schema_id = options.get(name)
    if schema_id is None or (schema_id == "any" and use == "read"):
        return schema_id if schema_id is None else "any"
    if not str(schema_id).isdecimal() or int(schema_id) not in _IDS:
        known = "a number, or 'any'" if use == "read" else "a number"
        raise AvroSchemaError(f"{options.place}: {name} is {known}, not {schema_id!r}", f"write {name} = 1")
    return int(schema_id)


def decoded(
    form: AvroForm, values: pa.Array, fill: Callable[[Any], Any] | None = None
) -> tuple[list[pa.Array], list[str | None]]:
    """The columns, and why a value cannot be read; null stays null. `fill` changes a record before its columns are
    taken."""
    schema, nothing = _parsed(form.schema), [None] * len(form.columns)
    rows, problems = [], []
    for value in values.to_pylist():
        row, problem = nothing, None
        if value is not None:
            try:
                row = _row(form, schema, value, fill)
            except Exception as error:  # fastavro raises anything on bytes that are not Avro
                problem = _why(value, form, error)
        rows.append(row)
        problems.append(problem)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(form.columns)
    return [to_array(c, of.type) for c, of in zip(columns, form.columns, strict=True)], problems


def encoded(form: AvroForm, columns: Sequence[pa.Array]) -> pa.Array:
    """The records' values in Avro. ValueError shows the record that the schema cannot hold."""
    schema, names = _parsed(form.schema), [column.name for column in form.columns]
    messages = []
    rows = zip(*(to_values(a, c.type) for a, c in zip(columns, form.columns, strict=True)), strict=True)
    for row in rows:
        out = io.BytesIO()
        out.write(form.header)
        try:
            values = [to_python(v, c.type) for v, c in zip(row, form.columns, strict=True)]
            record = values[0] if form.bare else dict(zip(names, values, strict=True))
            schemaless_writer(out, schema, record)
        except Exception as error:  # fastavro raises anything on values that do not fit
            raise ValueError(f"{_shown(names, row)} does not fit its Avro schema: {error}") from error
        messages.append(out.getvalue())
    return pa.array(messages, pa.binary())


@lru_cache(maxsize=64)
def _parsed(schema: str) -> Any:
    return parse_schema(json.loads(schema))


def _shown(names: Sequence[str], row: Sequence[Any]) -> str:
    """A record, for a message."""
    text = ", ".join(f"{name}: {value!r}" for name, value in zip(names, row, strict=True))
    return f"{{{text if len(text) <= 200 else text[:197] + '...'}}}"


def _row(form: AvroForm, schema: Any, value: bytes, fill: Callable[[Any], Any] | None) -> list[Any]:
    stream = io.BytesIO(value)
    if form.id is not None:
        _skip_header(stream, form.id)
    found: Any = schemaless_reader(stream, schema, None)
    left = len(value) - stream.tell()
    if left:
        raise ValueError(f"{left} of its {len(value)} bytes are behind the record")
    if form.bare:
        return [_internal(found, form.columns[0])]
    if fill is not None:
        found = fill(found)
    return [_internal(found.get(column.name), column) for column in form.columns]


def _skip_header(stream: io.BytesIO, wanted: int | str) -> None:
    header = stream.read(_HEADER)
    if len(header) < _HEADER or header[:1] != _MAGIC:
        raise ValueError("it does not begin with a schema id")
    found = int.from_bytes(header[1:], "big")
    if wanted not in ("any", found):
        raise ValueError(f"its schema id is {found}, not {wanted}")


def _internal(value: Any, column: Column) -> Any:
    try:
        return from_python(_plain(value, column.type), column.type)
    except ValueError as error:
        raise ValueError(f"column '{column.name}': {error}") from error


def _plain(value: Any, type: DataType) -> Any:
    """A value as fastavro gives it, as `from_python` takes it: only the fields that are declared, and no UUIDs."""
    match type, value:
        case _, UUID():
            return str(value)
        case _, datetime(tzinfo=None):
            return value.replace(tzinfo=UTC)
        case StructType(fields), Mapping():
            return {field.name: _plain(value.get(field.name), field.type) for field in fields}
        case ArrayType(element), list():
            return [_plain(one, element) for one in value]
        case MapType(_, of), dict():
            return {key: _plain(one, of) for key, one in value.items()}
    return value


def _why(value: bytes, form: AvroForm, error: Exception) -> str:
    """Why a value cannot be read."""
    what = " ".join(str(error).split())[:200]
    if not isinstance(error, ValueError | OverflowError) or not what:
        what = "it ends too early, or was written with another schema"
    hint = "; it may begin with a schema id (option `schema_id`)" if form.id is None and value[:1] == _MAGIC else ""
    return what + hint
