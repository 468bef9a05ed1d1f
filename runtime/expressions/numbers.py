"""Arithmetic on internal values, one function per type, with the checks of SQL's ANSI mode.

Guarantees: Spark's results, rounding (half up) and failures. Integers are checked against their width, decimals
against their precision; floats are IEEE, where only a division by zero fails.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from ctypes import c_float
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.expressions.failure import fail, short
from vsc.runtime.values import INTEGER_BITS

__all__ = ["EXACT", "absolute", "binary", "fit_decimal", "instant", "negated", "rounded", "to_float32", "whole"]

EXACT = Context(prec=120, rounding=ROUND_HALF_UP, Emin=-999999, Emax=999999)
"""Exact for sums, products and remainders of two decimals of 38 digits."""

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def to_float32(value: float) -> float:
    """`value` rounded to 32 bits."""
    return c_float(value).value


def fit_decimal(value: Decimal, type: DecimalType) -> Decimal:
    """`value` rounded half up to the type's scale; fails if it has too many digits for the type."""
    try:
        fitted = value.quantize(_unit(type.scale), context=EXACT)
    except InvalidOperation:
        fitted = None
    if fitted is None or (len(fitted.as_tuple().digits) > type.precision and fitted):
        fail("NUMERIC_VALUE_OUT_OF_RANGE", f"{short(value)} cannot be represented as {type}")
    return fitted if fitted else _unit(type.scale) * 0


def _unit(scale: int) -> Decimal:
    return _UNITS[scale] if 0 <= scale < len(_UNITS) else Decimal(1).scaleb(-scale)


_UNITS = [Decimal(1).scaleb(-scale) for scale in range(39)]


def instant(micros: int) -> int:
    """A timestamp, in microseconds; fails if it does not fit in 64 bits."""
    if _LONG_MIN <= micros <= _LONG_MAX:
        return micros
    fail("ARITHMETIC_OVERFLOW", "long overflow")


# --------------------------------------------------------------------------------------------------- two operands


_Operation = Callable[[Any, Any], Any]


def binary(function: str, type: DataType) -> _Operation:
    """The function for ``add subtract multiply divide modulo`` whose result is of `type`."""
    operation: _Operation
    fit: Callable[[Any], Any] | None
    if isinstance(type, DecimalType):
        operation, fit = _DECIMALS[function], lambda value: fit_decimal(value, type)
    elif str(type) in INTEGER_BITS:
        operation, fit = _INTEGERS[function], _fitting(str(type))
    else:
        operation, fit = _FLOATS[function], to_float32 if str(type) == "float" else None
    if function in _BY_ZERO:
        operation = _by_zero_failing(operation, *_BY_ZERO[function])
    return operation if fit is None else lambda a, b: fit(operation(a, b))


def _by_zero_failing(operation: _Operation, error_class: str, text: str) -> _Operation:
    def checked(a: Any, b: Any) -> Any:
        if not b:
            fail(error_class, text)
        return operation(a, b)

    return checked


def _fitting(name: str) -> Callable[[int], int]:
    """The function that lets through what the integer type holds."""
    high = (1 << (INTEGER_BITS[name] - 1)) - 1
    low = -high - 1

    def checked(value: int) -> int:
        if low <= value <= high:
            return value
        fail("ARITHMETIC_OVERFLOW", f"{name} overflow")

    return checked


def _integer_remainder(a: int, b: int) -> int:
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _float_remainder(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    """a / b rounded half up to 39 digits after the point, which Spark rounds a second time.

    No quotient of two decimals of 38 digits is so close to the middle between two results, without being it, that the
    digits of `EXACT` do not tell on which side it is: it is as good as rounded once.
    """
    return EXACT.divide(a, b).quantize(_QUOTIENT, context=EXACT)


_QUOTIENT = Decimal(1).scaleb(-39)
_PLAIN = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
_INTEGERS = {**_PLAIN, "modulo": _integer_remainder}
_FLOATS = {**_PLAIN, "divide": operator.truediv, "modulo": _float_remainder}
_DECIMALS: dict[str, _Operation] = {
    "add": EXACT.add,
    "subtract": EXACT.subtract,
    "multiply": EXACT.multiply,
    "divide": _quotient,
    "modulo": EXACT.remainder,
}
_BY_ZERO = {"divide": ("DIVIDE_BY_ZERO", "division by zero"), "modulo": ("REMAINDER_BY_ZERO", "remainder by zero")}


# ----------------------------------------------------------------------------------------------------- one operand


def negated(type: DataType) -> Callable[[Any], Any]:
    """Unary minus."""
    if str(type) in INTEGER_BITS:
        fit = _fitting(str(type))
        return lambda a: fit(-a)
    if isinstance(type, DecimalType):
        return lambda a: a.copy_negate() if a else a
    return lambda a: -a


def absolute(type: DataType) -> Callable[[Any], Any]:
    """``abs``."""
    if isinstance(type, DecimalType):
        return lambda a: a.copy_abs()
    if str(type) in INTEGER_BITS:
        fit = _fitting(str(type))
        return lambda a: fit(abs(a))
    return math.fabs


def whole(function: str, type: DataType, result: DataType) -> Callable[[Any], Any]:
    """``ceil`` and ``floor`` of a value of `type`.

    NaN gives 0, as in Spark. What no bigint can hold, an infinity too, is an overflow, as in Spark from 4.3 on; before,
    Spark gave the nearest bigint.
    """
    rounding = "ROUND_CEILING" if function == "ceil" else "ROUND_FLOOR"
    if isinstance(result, DecimalType):
        return lambda a: fit_decimal(a.quantize(Decimal(1), rounding, EXACT), result)
    if str(type) in INTEGER_BITS:
        return lambda a: a
    step = math.ceil if function == "ceil" else math.floor

    def of_double(a: float) -> int:
        if math.isnan(a):
            return 0
        if math.isinf(a) or not _LONG_MIN <= step(a) <= _LONG_MAX:
            fail("ARITHMETIC_OVERFLOW", f"{function} of {a} does not fit a bigint")
        return step(a)

    return of_double


def rounded(digits: int, type: DataType, result: DataType) -> Callable[[Any], Any]:
    """``round`` half up to `digits` after the point (negative: before it)."""
    if isinstance(result, DecimalType):
        return lambda a: fit_decimal(a.quantize(Decimal(1).scaleb(-digits), context=EXACT) if digits < 0 else a, result)
    if str(type) in INTEGER_BITS:
        return _round_integer(digits, str(type))
    single = str(type) == "float"

    def of_double(a: float) -> float:
        if math.isnan(a) or math.isinf(a):
            return a
        exact = Decimal(repr(a))
        if int(exact.as_tuple().exponent) >= -digits:
            return a + 0.0  # as everywhere here, -0.0 is rounded to 0.0
        value = float(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)) + 0.0
        return to_float32(value) if single else value

    return of_double


_WIDE = Context(prec=400, rounding=ROUND_HALF_UP, Emin=-999999, Emax=999999)


def _round_integer(digits: int, name: str) -> Callable[[int], int]:
    fit = _fitting(name)
    unit = 10 ** max(0, -digits)

    def of_integer(a: int) -> int:
        near = (abs(a) * 2 + unit) // (2 * unit) * unit
        return fit(-near if a < 0 else near)

    return of_integer if digits < 0 else lambda a: a
