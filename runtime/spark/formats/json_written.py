"""JSON written for whole columns at a time: the bytes of Spark's `to_json`, at a fraction of its cost.

Not for types that can only be had by Spark's own rules: see `is_written`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.plan.types import DataType, DecimalType
from vsc.runtime.expressions.json_text import quoted
from vsc.runtime.values import INTEGER_BITS, text_bytes

__all__ = ["is_written", "written"]

_NAME = re.compile(r'[^"\\\x00-\x1f]+')


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
