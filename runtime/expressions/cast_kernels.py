"""Casts of whole columns, where Arrow or numpy agree exactly with the cast of one value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.expressions.calendar import DAY
from vsc.runtime.expressions.casts import caster
from vsc.runtime.expressions.forms import Uncertain, fits, numbers, with_nulls_of
from vsc.runtime.expressions.kernels import nearest_units, rounded_decimals
from vsc.runtime.expressions.time_kernels import of_usual_years
from vsc.runtime.text_columns import usual_decimals
from vsc.runtime.values import INTEGER_BITS, arrow_type, to_array, to_values

__all__ = ["cast_column"]

_EXACT_DIGITS = 15
"""Integers of up to this many digits are exact in a double."""


def cast_column(column: pa.Array, source: DataType, target: DataType, *, safe: bool = False) -> pa.Array:
    """`column` of type `source` cast to `target`; fails if a value does, which is null instead if `safe`."""
    try:
        return _cast(column, source, target)
    except Exception:  # a kernel is not sure, or Arrow fails on a value: each value decides for itself
        cast = caster(source, target, safe=safe)
        values = to_values(column, source)
        return to_array([None if value is None else cast(value) for value in values], target)


def _cast(column: pa.Array, source: DataType, target: DataType) -> Any:
    """The cast by kernels alone."""
    if isinstance(target, DecimalType):
        return _to_decimal(column, source, target)
    if not isinstance(target, ScalarType):
        raise Uncertain
    if isinstance(source, DecimalType) and target.name == "double":
        return _decimal_to_double(column, source)
    if isinstance(source, DecimalType):
        return _decimal_to_scalar(column, source, target.name)
    if not isinstance(source, ScalarType):
        raise Uncertain
    return _scalar(column, source.name, target.name)


def _scalar(column: pa.Array, source: str, target: str) -> Any:
    wanted = arrow_type(ScalarType(target))
    if source in INTEGER_BITS and (target in INTEGER_BITS or target in ("float", "double", "string", "boolean")):
        # An integer becomes the nearest floating-point number, which Arrow's safe cast refuses.
        return pc.cast(column, wanted, safe=target not in ("float", "double"))
    if source == "boolean" and target in (*INTEGER_BITS, "double", "string"):
        return pc.cast(column, wanted)
    if (source, target) in (("float", "double"), ("double", "float")):
        return pc.cast(column, wanted, safe=False)
    if source in ("float", "double") and target in INTEGER_BITS:
        return _float_to_integer(column, target)
    if source == "string" and target in _PLAIN:
        return _of_text(column, target, wanted)
    if target == "string" and source in ("date", "timestamp"):
        return _time_to_text(column, source)
    if (source, target) == ("date", "timestamp"):
        return pc.cast(column.cast(pa.timestamp("s")), pa.timestamp("us")).view(wanted)
    if (source, target) == ("timestamp", "date"):
        days = numbers(column.view(pa.int64())) // DAY
        return with_nulls_of(days.astype(np.int32), pa.int32(), column).view(wanted)
    raise Uncertain


def _float_to_integer(column: pa.Array, target: str) -> Any:
    values = numbers(column)
    limit = float(1 << (INTEGER_BITS[target] - 1))
    if not ((values > -limit) & (values < limit)).all():  # also false for NaN
        raise Uncertain
    return with_nulls_of(values.astype(f"int{INTEGER_BITS[target]}"), arrow_type(ScalarType(target)), column)


_DATE = r"\d{4}-\d\d-\d\d"
_PLAIN = {
    **dict.fromkeys(INTEGER_BITS, r"-?\d{1,18}"),
    "double": r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?",
    "date": _DATE,
    "timestamp": rf"{_DATE}(?:[ T]\d\d:\d\d:\d\d(?:\.\d{{1,6}})?)?",
}
"""The usual form of a type's texts; others are read one by one."""


def _of_text(column: pa.Array, target: str, wanted: pa.DataType) -> Any:
    if target == "timestamp":
        if fits(column, _PLAIN[target] + "Z"):
            return pc.cast(column, wanted)
        wanted = pa.timestamp("us")
    if not fits(column, _PLAIN[target]):
        raise Uncertain
    return pc.cast(column, wanted).view(arrow_type(ScalarType(target)))


def _time_to_text(column: pa.Array, source: str) -> Any:
    if source == "date":
        return pc.cast(of_usual_years(column), pa.string())
    of_usual_years(_scalar(column, "timestamp", "date"))
    texts = pc.cast(column.view(pa.timestamp("us")), pa.string())  # with six digits behind the point
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, characters="0"), characters=".")


def _to_decimal(column: pa.Array, source: DataType, target: DecimalType) -> Any:
    if isinstance(source, DecimalType):
        return rounded_decimals(column, target)
    if source == ScalarType("string") and fits(column, usual_decimals(target)):
        return pc.cast(column, arrow_type(target))
    if source == ScalarType("double"):
        return _double_to_decimal(column, target)
    if str(source) in INTEGER_BITS and target.scale <= 19:
        return pc.cast(pc.cast(column, pa.decimal128(19 + target.scale, target.scale)), arrow_type(target))
    raise Uncertain


def _decimal_to_double(column: pa.Array, source: DecimalType) -> Any:
    """Unscaled digits over a power of ten: both are exact doubles, so their quotient is the nearest double."""
    if source.precision > _EXACT_DIGITS or len(column) == 0:
        raise Uncertain
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    return with_nulls_of(words.astype(np.float64) / float(10**source.scale), pa.float64(), column)


def _decimal_to_scalar(column: pa.Array, source: DecimalType, target: str) -> Any:
    if target in INTEGER_BITS:
        return pc.cast(pc.cast(pc.trunc(column), pa.int64()), arrow_type(ScalarType(target)))
    if target == "string" and source.scale <= 6:  # with more, Arrow shows some with an exponent
        return pc.cast(column, pa.string())
    raise Uncertain


def _double_to_decimal(column: pa.Array, target: DecimalType) -> Any:
    values = numbers(column)
    units, sure = nearest_units(values, target.scale)
    one = caster(ScalarType("double"), target)
    if target.scale > 15 or not (np.abs(units) < min(2.0**40, 10.0**target.precision)).all():  # also false for NaN
        raise Uncertain
    for row in np.flatnonzero(~sure).tolist():
        units[row] = int(one(values[row].item()).scaleb(target.scale))
    whole = with_nulls_of(units.astype(np.int64), pa.int64(), column).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(arrow_type(target), len(column), whole.buffers())
