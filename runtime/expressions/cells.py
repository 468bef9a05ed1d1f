"""What a text of data is as a value of its declared type: a cell of CSV, the name of a folder.

Guarantees: dates, timestamps and decimals by `vsc.runtime.texts`; all others as Spark's cast reads them, but a number
too large for its type is not one, nor is what only Java takes for one (``12d``, ``5f``, ``0x1p3``). A text that is not
a value of the type is null.
"""

from __future__ import annotations

from datetime import UTC, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import STRING, DataType, DecimalType
from vsc.runtime.expressions.cast_kernels import cast_column
from vsc.runtime.expressions.forms import numbers
from vsc.runtime.text_columns import dates_of, decimals_of, timestamps_of
from vsc.runtime.values import arrow_type

__all__ = ["read_cells"]

_EDGE = r"[\x00-\x20\x7f]*"
_DECIMAL = rf"\A{_EDGE}[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?{_EDGE}\z"
_JAVA = "[dDfFxX]"
"""What is in every number that only Java takes for one, and in infinity."""


def read_cells(texts: pa.Array, type: DataType, zone: tzinfo = UTC) -> pa.Array:
    """The values of a column of texts; null for null and for what is not a value. Local times are those of `zone`."""
    if isinstance(type, DecimalType):
        return decimals_of(texts, type)
    match str(type):
        case "string":
            return texts
        case "date":
            return dates_of(texts)
        case "timestamp":
            return timestamps_of(texts, zone)
        case "float" | "double":
            return _decimal(texts, _cast(texts, type))
        case _:
            return _cast(texts, type)


def _cast(texts: pa.Array, type: DataType) -> pa.Array:
    found = cast_column(texts, STRING, type, safe=True)
    return found if found.type == arrow_type(type) else found.cast(arrow_type(type))


def _decimal(texts: pa.Array, found: pa.Array) -> pa.Array:
    """The numbers that are written in decimal notation and not too large, and those that are a word."""
    doubtful = np.isinf(numbers(found)).any() or pc.any(pc.match_substring_regex(texts, _JAVA), min_count=0).as_py()
    if not doubtful:
        return found
    fits = pc.and_(pc.match_substring_regex(texts, _DECIMAL), pc.invert(pc.is_inf(found)))
    return pc.if_else(pc.or_(fits, pc.invert(pc.match_substring_regex(texts, r"\d"))), found, None)
