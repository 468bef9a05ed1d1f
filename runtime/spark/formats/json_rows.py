"""Records in JSON as rows of declared columns: texts in, columns of their types out, and why a text cannot be read.

Arrow reads all texts of a batch at once; where it does not take one of them, texts are read one by one. Guarantees:
either way a text gives the same rows, by the rules of `json_data.data_reader`; one that gives none is a row with the
reason. Not for where texts come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from vsc.plan.nodes import Column
from vsc.plan.types import MAX_PRECISION, ArrayType, DataType, DecimalType, MapType, StructType
from vsc.runtime.expressions.json_data import Inexact, data_reader, json_values
from vsc.runtime.expressions.json_text import compact
from vsc.runtime.spark.formats.misfits import misfit, shown
from vsc.runtime.spark.formats.text_rows import TextRows
from vsc.runtime.text_columns import dates_of, timestamps_of
from vsc.runtime.values import arrow_type, text_bytes, to_array

__all__ = ["NOT_TEXT", "JsonReader"]

NOT_TEXT = "it is not UTF-8 text"
"""What is wrong with bytes that are not text."""

_FEW = 64
"""So many texts are not taken apart any more to find those that Arrow takes."""
_PIECES = 8
_EXACT_IN_ARROW = {"boolean", "tinyint", "smallint", "int", "bigint", "double", "string"}
"""Types that Arrow reads as `data_reader` does, or not at all."""
_BARE = r'\A(?:-?[0-9]+|"[^"\\\x00-\x1f]*")\z'
_TINY = r"[0-9][eE]-0*[0-9]{2}"
_SECOND = 1_000_000
_Readers = list[Callable[[Any], Any]]
"""Of each column, what makes a value of it."""
_Row = tuple[tuple[Any, ...] | None, str | None, str | None]
"""The values of a row; or None, why it has none, and its text."""
_YEARS = (-62_135_596_800, 253_402_300_799)
"""The seconds since 1970 at which the years 1 to 9999 begin and end."""


@dataclass(frozen=True)
class JsonReader:
    """Reads texts as `columns`. Times without an offset are of `zone`.

    A text of a file may be several objects, or arrays of them, or none; the `whole` text of a record is one object, or,
    with a single column and if it may be `bare`, that column's value.
    """

    columns: tuple[Column, ...]
    zone: tzinfo = UTC
    whole: bool = False
    bare: bool = False

    def read(self, texts: pa.Array) -> TextRows:
        """The rows of texts, which are bytes, none of them null."""
        if self.bare and len(self.columns) == 1:
            texts = _wrapped(texts, self.columns[0].name)
        parts = list(self._parts(texts, 0))
        columns = [pa.concat_arrays([part.columns[i] for part in parts]) for i in range(len(self.columns))]
        problems, raw = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("problems", "texts"))
        return TextRows(columns, np.concatenate([part.places for part in parts]), problems, raw)

    def _parts(self, texts: pa.Array, first: int) -> Iterator[TextRows]:
        columns = self._at_once(texts)
        if columns is not None:
            nothing = pa.nulls(len(texts), pa.string())
            yield TextRows(columns, np.arange(first, first + len(texts)), nothing, nothing)
        elif len(texts) <= _FEW or not all(_can_be_exact(column.type) for column in self.columns):
            yield self._one_by_one(texts, first)
        else:
            size = -(-len(texts) // _PIECES)
            for at in range(0, len(texts), size):
                yield from self._parts(texts.slice(at, size), first + at)

    # ------------------------------------------------------------------------------------------------ all at once

    def _at_once(self, texts: pa.Array) -> list[pa.Array] | None:
        """The columns of texts of which each is one object; None if Arrow cannot tell all of their values."""
        if not len(texts):
            return None
        counted = self._in_seconds(texts[0].as_py())
        kinds = [_arrow_type(column.type, column.name in counted) for column in self.columns]
        try:
            objects = pc.ascii_trim_whitespace(texts.cast(pa.string()))
            ends = pc.and_(pc.starts_with(objects, "{"), pc.ends_with(objects, "}"))
            if any(kind is None for kind in kinds) or not pc.all(ends).as_py() or self._has_tiny(objects):
                return None
            found = _read(objects, pa.schema(zip((c.name for c in self.columns), kinds, strict=True)))
        except pa.ArrowInvalid:
            return None
        if found.num_rows != len(texts):
            return None
        arrays = [self._typed(found.column(i).combine_chunks(), c.type) for i, c in enumerate(self.columns)]
        return None if any(array is None for array in arrays) else arrays

    def _has_tiny(self, objects: pa.Array) -> bool:
        """Whether a decimal may be so small that Arrow takes it for 0."""
        decimals = any("decimal" in str(column.type) for column in self.columns)
        return decimals and pc.any(pc.match_substring_regex(objects, _TINY), min_count=0).as_py() is True

    def _in_seconds(self, text: bytes) -> set[str]:
        """The columns of timestamps that are numbers in this text: others are likely to be as well."""
        names = {column.name for column in self.columns if str(column.type) == "timestamp"}
        try:
            first = json.loads(text) if names else {}
        except (ValueError, RecursionError):
            return set()
        return {name for name in names if isinstance(first, dict) and isinstance(first.get(name), int)}

    def _typed(self, found: pa.Array, type: DataType) -> pa.Array | None:
        """What Arrow has read as the column's type; None if a value is not of it."""
        if isinstance(type, DecimalType) and _is_wide(type):
            return _narrowed(found, type)
        if _is_doubtful(found):
            return None
        match str(type):
            case "date":
                typed = dates_of(found)
            case "timestamp":
                typed = _from_seconds(found) if found.type == pa.int64() else timestamps_of(found, self.zone)
            case "float":
                typed = found.cast(pa.float32(), safe=False)
                if pc.any(pc.is_inf(typed), min_count=0).as_py():
                    return None
            case _:
                return found
        return typed if typed.null_count == found.null_count else None

    # ------------------------------------------------------------------------------------------------- one by one

    def _one_by_one(self, texts: pa.Array, first: int) -> TextRows:
        readers = [data_reader(column.type, self.zone) for column in self.columns]
        nothing: tuple[Any, ...] = (None,) * len(readers)
        rows: list[tuple[Any, ...]] = []
        places: list[int] = []
        problems: list[str | None] = []
        raw: list[str | None] = []
        for place, data in enumerate(texts.to_pylist(), first):
            for row, problem, text in self._rows(data, readers):
                rows.append(nothing if row is None else row)
                places.append(place)
                problems.append(problem)
                raw.append(text)
        values = zip(*rows, strict=True) if rows else [()] * len(readers)
        columns = [to_array(list(column), c.type) for column, c in zip(values, self.columns, strict=True)]
        return TextRows(
            columns, np.array(places, np.int64), pa.array(problems, pa.string()), pa.array(raw, pa.string())
        )

    def _rows(self, data: bytes, readers: _Readers) -> list[_Row]:
        """The rows of a text."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return [(None, NOT_TEXT, data.decode(errors="backslashreplace"))]
        try:
            try:
                return self._found(text, json_values(text), readers)
            except Inexact:
                return self._found(text, json_values(text, exact=True), readers)
        except ValueError:
            return [(None, f"{shown(text)} is not JSON", text)]

    def _found(self, text: str, parsed: list[Any], readers: _Readers) -> list[_Row]:
        """The rows of the values of a text."""
        if self.whole:
            if not parsed:
                raise ValueError(text)
            if len(parsed) > 1:
                return [(None, f"{shown(text)} is more than one JSON object", text)]
            if self.bare and len(self.columns) == 1 and not isinstance(parsed[0], dict):
                parsed = [{self.columns[0].name: parsed[0]}]
            rows = parsed
        else:
            rows = [row for value in parsed for row in (value if isinstance(value, list) else [value])]
        several = len(rows) > 1
        made = [self._values(row, readers) for row in rows]
        return [
            (values, problem, None if problem is None else _text(row) if several else text)
            for row, (values, problem) in zip(rows, made, strict=True)
        ]

    def _values(self, row: Any, readers: _Readers) -> tuple[tuple[Any, ...] | None, str | None]:
        """The values of a row, or why it has none."""
        if not isinstance(row, dict):
            return None, f"{shown(_text(row))} is not a JSON object"
        values = []
        for column, read in zip(self.columns, readers, strict=True):
            value = row.get(column.name)
            try:
                values.append(None if value is None else read(value))
            except ValueError:
                return None, misfit(column, value if isinstance(value, str) else _text(value))
        return tuple(values), None


def _wrapped(texts: pa.Array, name: str) -> pa.Array:
    """Plain values as objects with that member."""
    try:
        given = texts.cast(pa.string())
    except pa.ArrowInvalid:
        return texts
    made = pc.binary_join_element_wise("{" + json.dumps(name) + ":", given, "}", "")
    return pc.if_else(pc.match_substring_regex(given, _BARE), made, given).cast(pa.binary())


def _can_be_exact(type: DataType) -> bool:
    return _arrow_type(type, False) is not None


def _arrow_type(type: DataType, counted: bool) -> pa.DataType | None:
    """As what Arrow reads a column; None for what it cannot read exactly. `counted`: as seconds."""
    match type:
        case ArrayType(element):
            return arrow_type(type) if _is_exact(element) else None
        case StructType(fields):
            return arrow_type(type) if fields and all(_is_exact(f.type) for f in fields) else None
        case MapType():
            return None
        case DecimalType(scale=scale):
            return pa.decimal256(MAX_PRECISION, scale) if _is_wide(type) else arrow_type(type)
    name = str(type)
    if name in ("date", "timestamp"):
        return pa.int64() if counted else pa.string()
    if name == "float":
        return pa.float64()
    return arrow_type(type) if name in _EXACT_IN_ARROW else None


def _is_exact(type: DataType) -> bool:
    other = isinstance(type, DecimalType) and _is_wide(type)
    return str(type) not in ("date", "timestamp", "float") and not other and _can_be_exact(type)


def _is_wide(type: DecimalType) -> bool:
    """Whether a text of so many digits may not fit into 128 bits at the type's scale: Arrow wraps it around."""
    return type.precision + type.scale > MAX_PRECISION


def _narrowed(found: pa.Array, type: DecimalType) -> pa.Array | None:
    """What Arrow has read in 256 bits as decimals of the type; None if one is too large."""
    most = Decimal(10) ** (type.precision - type.scale)
    if any(abs(end) >= most for end in pc.min_max(found).as_py().values() if end is not None):
        return None
    return found.cast(arrow_type(type))


def _is_doubtful(found: pa.Array) -> bool:
    """Whether there is a number of which Arrow has not seen that it is too large, or a 0 with a sign."""
    if pa.types.is_floating(found.type):
        values = found.drop_null().to_numpy()
        return bool((np.isinf(values) | ((values == 0) & np.signbit(values))).any())
    if pa.types.is_decimal(found.type):
        most = Decimal(10) ** (found.type.precision - found.type.scale)
        return any(abs(end) >= most for end in pc.min_max(found).as_py().values() if end is not None)
    if pa.types.is_list(found.type) or pa.types.is_struct(found.type):
        inner = found.flatten()
        return any(map(_is_doubtful, inner if isinstance(inner, list) else [inner]))
    return False


def _read(objects: pa.Array, schema: pa.Schema) -> pa.Table:
    lines = text_bytes(pc.binary_join_element_wise(objects, "", "\n"))
    return pj.read_json(
        pa.BufferReader(lines),
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _from_seconds(found: pa.Array) -> pa.Array:
    usual = pc.and_(pc.greater_equal(found, _YEARS[0]), pc.less_equal(found, _YEARS[1]))
    return pc.multiply(pc.if_else(usual, found, None), _SECOND).view(pa.timestamp("us", "UTC"))


def _text(value: Any) -> str:
    return compact(value, str).encode(errors="backslashreplace").decode()
