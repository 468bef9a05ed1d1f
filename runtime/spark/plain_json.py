"""Plain JSON, whole columns at a time: what Spark's `from_json` and `to_json` give, at a fraction of their cost.

Most records of a topic are *plain*: one object of scalars, written in the one way that leaves no doubt what it
means for the declared types; no escapes, no number that might not fit. `plain_pattern` tells which are, before Spark
parses anything, and `parsed` reads them. Whatever is not plain stays Spark's: it reads it, or says that it is bad.

Guarantees: what `parsed` makes of a plain text is what `from_json` makes of it, and `written` writes the bytes of
`to_json`. Not for types that can only be had by Spark's own rules: see `plain_pattern` and `is_written`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from vsc.plan.nodes import Column
from vsc.plan.types import DataType, DecimalType
from vsc.runtime.expressions.json_text import quoted
from vsc.runtime.values import INTEGER_BITS, arrow_type, text_bytes

__all__ = ["is_written", "parsed", "plain_pattern", "written"]

_TEXT = r'"[^"\\\x00-\x1f]*+"'
_SPACE = "[ ]*+"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?"
_DOUBLE = r"(?:-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,17}(?:[eE][+-]?[0-9]{1,2})?|-?[1-9][0-9]{0,14}|0)"
"""Without the integer -0, which Java makes 0.0; nothing that is infinite or 0 but for what is too small."""
_DATE = (
    "(?:19[7-9][0-9]|20[0-9]{2})-"
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_TIMESTAMP = rf'"{_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z"'
_SCALARS = {"string": _TEXT, "boolean": "(?:true|false)", "double": _DOUBLE, "timestamp": _TIMESTAMP}
_NAME = re.compile(r'[^"\\\x00-\x1f]+')
_LONGEST_NAME = 200


# ------------------------------------------------------------------------------------------------------------- reading


def plain_pattern(columns: Sequence[Column]) -> str | None:
    """A regular expression of Java's for the plain texts of objects with these columns; None if a column is of another
    type than those of which texts can be plain.

    A member is of a column, and its value as the column's type has it, or null; or it is of none, and any scalar.
    """
    members: list[str] = []
    if not columns:
        return None
    for column in columns:
        value = _value(column.type)
        if value is None or not _NAME.fullmatch(column.name):
            return None
        members.append(f'"{re.escape(column.name)}"{_SPACE}:{_SPACE}(?:{value}|null)')
    declared = "|".join(re.escape(column.name) for column in columns)
    other = f'"(?!(?:{declared})")[^"\\\\\\x00-\\x1f]{{0,{_LONGEST_NAME}}}+"'
    members.append(f"{other}{_SPACE}:{_SPACE}(?:{_TEXT}|{_NUMBER}|true|false|null)")
    member = f"(?:{'|'.join(members)}){_SPACE}"
    return rf"\A\{{{_SPACE}(?:{member}(?:,{_SPACE}{member})*+)?\}}\z"


def parsed(texts: pa.Array, columns: Sequence[Column]) -> list[pa.Array]:
    """The columns of texts that are plain; null where the text is null."""
    given = texts.drop_null().cast(pa.string())
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
    try:
        found = _read(given, schema)
    except pa.ArrowInvalid:  # a member is there twice: the last one holds, which Arrow does not know
        found = _read(pa.array(map(_once, given.to_pylist()), pa.string()), schema)
    arrays = [found.column(i).combine_chunks() for i in range(len(columns))]
    if not texts.null_count:
        return arrays
    present = texts.is_valid().to_numpy(zero_copy_only=False)
    places = pa.array(np.cumsum(present) - 1, mask=~present)
    return [array.take(places) for array in arrays]


def _value(type: DataType) -> str | None:
    """The plain values of a type."""
    if isinstance(type, DecimalType):
        whole, scale = type.precision - type.scale, type.scale
        digits = f"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
        return f"-?{digits}" + (rf"(?:\.[0-9]{{1,{scale}}})?" if scale else "")
    name = str(type)
    if name in INTEGER_BITS:
        surely = len(str(1 << INTEGER_BITS[name] - 1)) - 1
        return f"-?(?:0|[1-9][0-9]{{0,{surely - 1}}})"
    return _SCALARS.get(name)


def _read(texts: pa.Array, schema: pa.Schema) -> pa.Table:
    if not len(texts):
        return schema.empty_table()
    lines = text_bytes(pc.binary_join_element_wise(texts, "", "\n"))
    found = pj.read_json(
        pa.BufferReader(lines),
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if found.num_rows != len(texts):
        raise RuntimeError(f"{found.num_rows} rows of {len(texts)} plain texts")
    return found


class _Literal(str):
    """A number, as it was written."""


def _once(text: str) -> str:
    """A plain text with the last of the members of each name."""
    found: dict[str, Any] = json.loads(text, parse_int=_Literal, parse_float=_Literal)
    return "{" + ",".join(f'"{name}":{_again(value)}' for name, value in found.items()) + "}"


def _again(value: Any) -> str:
    return value if isinstance(value, _Literal) else json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------------- writing


def is_written(columns: Sequence[Column]) -> bool:
    """Whether `written` knows how Spark writes all of these columns, of which there are some."""
    return bool(columns) and all(_NAME.fullmatch(column.name) and _is_written(column.type) for column in columns)


def written(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> pa.Array:
    """A text for each row: an object with the columns that are not null."""
    pieces: list[pa.Array | str] = []
    for column, array in zip(columns, arrays, strict=True):
        before, text = f',"{column.name}":', _text(array)
        quote = '"' if str(column.type) == "string" else ""
        if array.null_count:
            member = pc.binary_join_element_wise(before + quote, text, quote, "")
            pieces.append(pc.fill_null(member, ""))
        else:
            pieces += [before + quote, text, quote]
    found = pc.binary_join_element_wise(*pieces, "}", "")
    if not arrays[0].null_count:
        return pc.binary_replace_slice(found, 0, 1, "{")
    return pc.if_else(pc.equal(pc.binary_length(found), 1), "{}", pc.binary_replace_slice(found, 0, 1, "{"))


def _is_written(type: DataType) -> bool:
    name = str(type)
    return name in INTEGER_BITS or name in ("string", "boolean") or isinstance(type, DecimalType)


def _text(array: pa.Array) -> pa.Array:
    """The values as JSON has them; those of text without the quotes."""
    if array.type != pa.string():
        return array.cast(pa.string())
    if not _has_escapes(array):
        return array
    return pa.array([None if one is None else quoted(one)[1:-1] for one in array.to_pylist()], pa.string())


def _has_escapes(array: pa.Array) -> bool:
    found = np.frombuffer(text_bytes(array.drop_null()), np.uint8)
    return bool(((found < 0x20) | (found == ord('"')) | (found == ord("\\"))).any())
