"""Accumulators of numbers: count, sum and avg.

Integers and decimals are summed exactly, with any number of digits. A result that does not fit its type is refused, as
in ANSI mode. Doubles over a stream are summed in order of arrival, as in Spark and Kafka Streams. Over a table the
exact sum is kept, as mantissa and exponent, so a row that is taken back leaves no trace.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

from vsc.plan.types import BIGINT, BINARY, DOUBLE, INT, DataType, DecimalType, ScalarType
from vsc.runtime.expressions import ExpressionFailure
from vsc.runtime.operators.aggregate.functions.entries import At, Entries

__all__ = ["Count", "CountDistinct", "ExactFloatSum", "ExactSpread", "ExactSum", "RunningFloatSum"]

_WIDE = Context(prec=100)
_BIGINT_MAX = 2**63 - 1
_BIGINT_MIN = -(2**63)


class Count:
    """``count(*)`` and ``count(e)``."""

    types: tuple[DataType, ...] = (BIGINT,)
    has_entries = False

    def start(self) -> tuple[Any, ...]:
        return (0,)

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        """Adds a row; `cells[i:]` are this accumulator's."""
        if not args or args[0] is not None:
            cells[i] += 1

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        cells[i] += other[i]

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        return cells[i]


class CountDistinct(Count):
    """``count(distinct e)``: a row for each value, with its count."""

    has_entries = True

    def __init__(self, encode: Any) -> None:
        self._encode = encode

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is None:
            return
        value = self._encode(args[0])
        found = entries.get(value)
        cells[i] += found is None
        entries.put(value, _to_bytes(1 + _from_bytes(found or b"")))

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        for value, times in list(others.scan()):
            found = entries.get(value)
            cells[i] += found is None
            entries.put(value, _to_bytes(_from_bytes(found or b"") + _from_bytes(times)))


class ExactSum:
    """``sum`` and ``avg`` of integers and decimals. Cells: the number of values, and their exact sum."""

    types: tuple[DataType, ...] = (BIGINT, BINARY)
    has_entries = False

    def __init__(self, of: DataType, to: DataType, average: bool) -> None:
        self._scale = of.scale if isinstance(of, DecimalType) else None
        self._to = to
        self._average = average

    def start(self) -> tuple[Any, ...]:
        return 0, b""

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._change(cells, i, 1, self._exact(args[0]))

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        self._change(cells, i, other[i], _from_bytes(other[i + 1]))

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The sum or the mean; null without values."""
        count, total = cells[i], _from_bytes(cells[i + 1])
        if count == 0:
            return None
        return self._mean(total, count) if self._average else self._sum(total)

    def _change(self, cells: list[Any], i: int, count: int, value: int) -> None:
        total = _from_bytes(cells[i + 1]) + value
        cells[i] += count
        cells[i + 1] = _to_bytes(total)

    def _exact(self, value: Any) -> int:
        return value if self._scale is None else int(value.scaleb(self._scale, _WIDE))

    def _sum(self, total: int) -> Any:
        if isinstance(self._to, DecimalType):
            return _decimal(total, self._to)
        if not _BIGINT_MIN <= total <= _BIGINT_MAX:
            raise ExpressionFailure("[ARITHMETIC_OVERFLOW] long overflow")
        return total

    def _mean(self, total: int, count: int) -> Any:
        if not isinstance(self._to, DecimalType):
            return total / count
        shifted = total * 10 ** (self._to.scale - (self._scale or 0))
        half_up = (2 * abs(shifted) + count) // (2 * count)
        return _decimal(half_up if shifted >= 0 else -half_up, self._to)


class RunningFloatSum:
    """``sum`` and ``avg`` of floats over a stream: added up in order of arrival."""

    types: tuple[DataType, ...] = (BIGINT, DOUBLE)
    has_entries = False

    def __init__(self, average: bool) -> None:
        self._average = average

    def start(self) -> tuple[Any, ...]:
        return 0, 0.0

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            cells[i] += 1
            cells[i + 1] += args[0]

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        cells[i] += other[i]
        cells[i + 1] += other[i + 1]

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The sum or the mean; null without values."""
        count, total = cells[i], cells[i + 1]
        if count == 0:
            return None
        return total / count if self._average else total


class ExactFloatSum:
    """``sum`` and ``avg`` of floats over a table: the exact sum as a mantissa times a power of two.

    Cells: the numbers of values, NaNs, infinities and negative infinities; mantissa; exponent.
    """

    types: tuple[DataType, ...] = (BIGINT, BIGINT, BIGINT, BIGINT, BINARY, INT)
    has_entries = False

    def __init__(self, average: bool) -> None:
        self._average = average

    def start(self) -> tuple[Any, ...]:
        return 0, 0, 0, 0, b"", 0

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The sum or the mean; null without values."""
        count, nans, infinities, negative, mantissa, exponent = cells[i : i + 6]
        if count == 0:
            return None
        if nans or (infinities and negative):
            return math.nan
        if infinities or negative:
            return math.inf if infinities else -math.inf
        total = _rounded(_from_bytes(mantissa), exponent)
        return total / count if self._average else total

    def change(self, cells: list[Any], i: int, value: float, sign: int) -> None:
        """Adds a value (`sign` 1), or takes it back (-1)."""
        cells[i] += sign
        if math.isnan(value):
            cells[i + 1] += sign
        elif math.isinf(value):
            cells[i + (2 if value > 0 else 3)] += sign
        else:
            numerator, denominator = value.as_integer_ratio()
            power = 1 - denominator.bit_length()  # the denominator is a power of two
            cells[i + 4 : i + 6] = _added(cells[i + 4], cells[i + 5], sign * numerator, power)


class ExactSpread(ExactFloatSum):
    """``variance`` and ``stddev`` of a sample, from its exact sum and its exact sum of squares.

    So nothing is lost if the values are close to each other and far from zero, and a row can be taken back. Cells: as a
    sum's, then mantissa and exponent of the squares.
    """

    types: tuple[DataType, ...] = (*ExactFloatSum.types, BINARY, INT)

    def __init__(self, root: bool) -> None:
        self._root = root

    def start(self) -> tuple[Any, ...]:
        return 0, 0, 0, 0, b"", 0, b"", 0

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self.change(cells, i, args[0], 1)

    def change(self, cells: list[Any], i: int, value: float, sign: int) -> None:
        super().change(cells, i, value, sign)
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            power = 2 - 2 * denominator.bit_length()
            cells[i + 6 : i + 8] = _added(cells[i + 6], cells[i + 7], sign * numerator * numerator, power)

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        for n in range(i, i + 4):
            cells[n] += other[n]
        for n in (i + 4, i + 6):
            cells[n : n + 2] = _added(cells[n], cells[n + 1], _from_bytes(other[n]), other[n + 1])

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """Null for fewer than two values, NaN if one is not finite."""
        count, nans, infinities, negative, mantissa, exponent, squares, power = cells[i : i + 8]
        if count < 2:
            return None
        if nans or infinities or negative:
            return math.nan
        total, lowest = _from_bytes(mantissa), min(2 * exponent, power)
        spread = (count * _from_bytes(squares) << (power - lowest)) - (total * total << (2 * exponent - lowest))
        variance = _rounded(spread, lowest, count * (count - 1))
        return math.sqrt(variance) if self._root else variance


def _added(mantissa: bytes, exponent: int, value: int, power: int) -> tuple[bytes, int]:
    """The sum of two numbers, each times a power of two."""
    lowest = min(exponent, power)
    total = (_from_bytes(mantissa) << (exponent - lowest)) + (value << (power - lowest))
    if total == 0:
        return b"", 0
    spare = (total & -total).bit_length() - 1
    return _to_bytes(total >> spare), lowest + spare


def _rounded(mantissa: int, exponent: int, divisor: int = 1) -> float:
    try:
        return (mantissa << exponent) / divisor if exponent >= 0 else mantissa / (divisor << -exponent)
    except OverflowError:
        return math.inf if mantissa > 0 else -math.inf


def _decimal(unscaled: int, data_type: DecimalType) -> Decimal:
    if abs(unscaled) >= 10**data_type.precision:
        raise ExpressionFailure(f"[NUMERIC_VALUE_OUT_OF_RANGE] the result does not fit {data_type}")
    return Decimal(unscaled).scaleb(-data_type.scale, _WIDE)


def _to_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True) if value else b""


def _from_bytes(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def is_float(data_type: DataType) -> bool:
    """Whether values of the type are floats."""
    return isinstance(data_type, ScalarType) and data_type.name in ("float", "double")
