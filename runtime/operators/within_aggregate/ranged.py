"""Calls over ranges of sorted rows, without looking at each row of a range.

Counts and sums of whole numbers and decimals are differences of running sums; the least and the greatest are found in a
sparse table; the first and the last lie at the ends. Doubles are added one after the other: they are here only if all
of their sums are exact, as those of whole numbers are, so that the order makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import AggregateCall
from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.operators.aggregate.functions.accumulators import column_accumulator
from vsc.runtime.operators.aggregate.functions.integers import decimals, narrow, unscaled, wide
from vsc.runtime.operators.aggregate.functions.numbers import is_float
from vsc.runtime.operators.aggregate.functions.order import ranks
from vsc.runtime.operators.aggregate.functions.states import Refused, floats, integers, valid
from vsc.runtime.operators.columns.flow import taken
from vsc.runtime.operators.columns.segments import SAFE, Floats, positive
from vsc.runtime.operators.within_aggregate.ranges import Pieces, highest
from vsc.runtime.records import Int64s
from vsc.runtime.values import arrow_type

__all__ = ["ranged"]

_WHOLE = ("tinyint", "smallint", "int", "bigint", "date", "timestamp")
_DIGITS = 53
"""The binary digits of a double."""
_LEAST_UNIT = -1000
"""As an exponent: smaller doubles have fewer digits."""
_LEAST = np.iinfo(np.int64).min


def ranged(call: AggregateCall, args: Sequence[pa.Array], pieces: Pieces) -> tuple[pa.Array, Refused] | None:
    """The results of a call for each left record, and which have none, by its arguments in the order of the places;
    None for a call that needs each row."""
    match call.function:
        case "count" if not call.distinct:
            return pa.array(_valid(args[0], pieces) if args else pieces.counts), {}
        case "sum" | "avg" if not is_float(call.args[0].type):
            return _summed(call, args[0], pieces)
        case "sum" | "avg":
            return _added(call, args[0], pieces)
        case "min" | "max":
            return _extreme(args[0], call.args[0].type, call.function == "max", pieces), {}
        case "min_by" | "max_by":
            won = _winners(args[1], call.args[1].type, call.function == "max_by", pieces, last_of_equal=True)
            return taken(args[:1], won)[0], {}
        case "first":
            count, some = len(args[0]), pieces.high > pieces.low
            won = pieces.most(np.where(some, count - pieces.low, 0))
            return taken(args, np.where(won > 0, count - won, -1))[0], {}
        case "last":
            return taken(args, pieces.most(np.where(pieces.high > pieces.low, pieces.high - 1, -1)))[0], {}
        case _:
            return None


def _valid(column: pa.Array, pieces: Pieces) -> Int64s:
    """How many values there are."""
    return _total(valid(column).astype(np.int64), pieces) if column.null_count else pieces.counts


def _total(values: Int64s, pieces: Pieces) -> Int64s:
    passed = np.concatenate([np.zeros(1, dtype=values.dtype), np.cumsum(values, dtype=values.dtype)])
    return pieces.summed(passed[pieces.high] - passed[pieces.low])


def _summed(call: AggregateCall, column: pa.Array, pieces: Pieces) -> tuple[pa.Array, Refused]:
    numbers = unscaled(column) if isinstance(call.args[0].type, DecimalType) else integers(column)
    if numbers.dtype != object and np.abs(numbers.astype(np.float64)).sum() >= SAFE:
        numbers = wide(numbers)
    accumulator, state = column_accumulator(call, table=False), (_valid(column, pieces), _total(numbers, pieces))
    return accumulator.results(state), accumulator.refused(state)


def _added(call: AggregateCall, column: pa.Array, pieces: Pieces) -> tuple[pa.Array, Refused] | None:
    """``sum`` and ``avg`` of doubles; None if a sum may be rounded."""
    found = _exact(floats(column))
    if found is None:
        return None
    numbers, unit = found
    total = np.ldexp(_total(numbers, pieces).astype(np.float64), unit)
    accumulator, state = column_accumulator(call, table=False), (_valid(column, pieces), total)
    return accumulator.results(state), accumulator.refused(state)


def _exact(values: Floats) -> tuple[Int64s, int] | None:
    """Doubles as multiples of a power of two, which is the second; None if not all of their sums are doubles, too."""
    if not np.isfinite(values).all():
        return None
    mantissa, exponent = np.frexp(values[values != 0])
    whole = np.ldexp(mantissa, _DIGITS).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    unit = int((exponent - _DIGITS + zeros).min(initial=0))
    if unit < _LEAST_UNIT:
        return None
    with np.errstate(over="ignore"):  # it is too much then
        multiples = np.ldexp(values, -unit)
        most = np.abs(multiples).sum()
    return (multiples.astype(np.int64), unit) if most < 2 ** (_DIGITS - 1) else None


def _extreme(column: pa.Array, of: DataType, greatest: bool, pieces: Pieces) -> pa.Array:
    """``min`` and ``max``. Numbers are compared as they are; of other values, those that win are."""
    found = _numbers(column, of)
    if found is None:
        return taken([column], _winners(column, of, greatest, pieces))[0]
    numbers, back = found
    least = _LEAST if numbers.dtype == np.int64 else -np.inf
    numbers = numbers if greatest else (~numbers if numbers.dtype == np.int64 else -numbers)
    if column.null_count:
        numbers = np.where(valid(column), numbers, least)
    won = pieces.most(highest(numbers, pieces.low, pieces.high, least))
    won = won if greatest else (~won if numbers.dtype == np.int64 else -won)
    return back(won, _valid(column, pieces) == 0)


def _numbers(column: pa.Array, of: DataType) -> tuple[Any, Callable[[Any, Any], pa.Array]] | None:
    """Values as numbers of 64 bits that compare as they do and tell each value, and the way back."""
    to = arrow_type(of)
    if isinstance(of, DecimalType):
        numbers = unscaled(column)
        return (numbers, lambda won, none: decimals(np.where(none, 0, won), none, to)) if narrow(numbers) else None
    if not isinstance(of, ScalarType):
        return None
    if of.name in _WHOLE:
        width = f"int{to.bit_width}"
        return ranks(column, of, True), lambda won, none: pa.array(
            np.where(none, 0, won).astype(width), mask=none
        ).view(to)
    if is_float(of):
        values = floats(column)
        if np.isnan(values).any() or (np.signbit(values) & (values == 0)).any():
            return None  # they compare otherwise
        return values, lambda won, none: pa.array(won.astype(to.to_pandas_dtype()), mask=none)
    return None


def _winners(column: pa.Array, of: DataType, greatest: bool, pieces: Pieces, last_of_equal: bool = False) -> Int64s:
    """The place of the row whose value wins, -1 where there is none; of equal ones the first place, or the last."""
    count, known = len(column), valid(column)
    number, _ = positive(ranks(column, of, greatest), known, max(count, 1))
    place = np.arange(count)
    packed = np.where(known, number * count + (place if last_of_equal else count - 1 - place), -1)
    won = pieces.most(highest(packed, pieces.low, pieces.high, -1))
    at = won % max(count, 1)
    return np.where(won < 0, -1, at if last_of_equal else count - 1 - at)
