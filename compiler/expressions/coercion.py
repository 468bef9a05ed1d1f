"""Which types are compatible, by Spark SQL's ANSI rules (4.x), decided at compile time.

Guarantees: the functions are total over types, and know nothing of names or places. The rules of the operators and
functions, which use the types found here, are in other modules.
"""

from __future__ import annotations

from collections.abc import Iterable

from vsc.plan.expressions import Cast, Expr, Literal
from vsc.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    ScalarType,
    StructType,
)

__all__ = [
    "INTEGERS",
    "adjusted",
    "can_cast",
    "coerce",
    "common_type",
    "common_type_of",
    "convert",
    "decimal_of",
    "is_numeric",
    "is_orderable",
    "tightest_type",
    "wider_decimal",
]

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
_NUMBERS = (*INTEGERS, FLOAT, DOUBLE)
_BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_MIN_ADJUSTED_SCALE = 6


# ---------------------------------------------------------------------------------------------------- kinds of types


def is_numeric(type: DataType) -> bool:
    """Whether `type` is an integer, floating or decimal type."""
    return isinstance(type, DecimalType) or type in _NUMBERS


def is_orderable(type: DataType) -> bool:
    """Whether values of `type` can be compared: everything without a map or a duration in it."""
    match type:
        case MapType():
            return False
        case ArrayType(element):
            return is_orderable(element)
        case StructType(fields):
            return all(is_orderable(f.type) for f in fields)
        case _:
            return type != INTERVAL


# --------------------------------------------------------------------------------------------------------- decimals


def decimal_of(type: DataType, value: object = None) -> DecimalType | None:
    """The decimal that holds every value of the integer `type` (or only the constant `value`); None for floats."""
    if isinstance(type, DecimalType):
        return type
    if isinstance(value, int) and not isinstance(value, bool):
        return DecimalType(len(str(abs(value))), 0)
    digits = _DIGITS.get(type) if isinstance(type, ScalarType) else None
    return None if digits is None else DecimalType(digits, 0)


def adjusted(precision: int, scale: int) -> DecimalType:
    """``decimal(precision, scale)``, cut to 38 digits as Spark does when precision loss is allowed.

    Digits after the point are given up for digits before it, but at least six of them (or all, if fewer) are kept.
    """
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, _MIN_ADJUSTED_SCALE))
    return DecimalType(MAX_PRECISION, kept)


def wider_decimal(a: DecimalType, b: DecimalType, *, keep_fraction: bool) -> DecimalType:
    """The decimal that holds the values of both.

    Beyond 38 digits, the fraction is kept in full with `keep_fraction` (comparisons), else it is shortened.
    """
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    excess = precision - MAX_PRECISION
    if excess <= 0:
        return DecimalType(precision, scale)
    return DecimalType(MAX_PRECISION, scale if keep_fraction else max(0, scale - excess))


# ----------------------------------------------------------------------------------------------------- common types


def tightest_type(a: DataType, b: DataType) -> DataType | None:
    """The narrowest type that both widen to, without converting strings; None if no such type exists."""
    return _common(a, b, strings=False)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """The least common type of two branches (``coalesce``, ``case``, ``in``, ...); None if no such type exists.

    As in Spark's ANSI mode, a string is converted to the other type if that is atomic.
    """
    return _common(a, b, strings=True)


def common_type_of(types: Iterable[DataType], *, strings: bool = True) -> DataType | None:
    """The least common type of all `types` (``void`` if `types` is empty); None if no such type exists."""
    ordered = sorted(types, key=lambda t: not _holds_string(t))  # in Spark's order, because the rule is not associative
    found: DataType | None = VOID
    for type in ordered:
        found = None if found is None else _common(found, type, strings=strings)
    return found


def _holds_string(type: DataType) -> bool:
    return type == STRING or (isinstance(type, ArrayType) and _holds_string(type.element))


def _common(a: DataType, b: DataType, *, strings: bool) -> DataType | None:
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b)
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if strings and a == STRING:
        return _instead_of_string(b)
    if strings and b == STRING:
        return _instead_of_string(a)
    return _common_nested(a, b, strings)


def _common_number(a: DataType, b: DataType) -> DataType:
    if isinstance(a, DecimalType) or isinstance(b, DecimalType):
        left, right = decimal_of(a), decimal_of(b)
        return DOUBLE if left is None or right is None else wider_decimal(left, right, keep_fraction=False)
    wider = max(a, b, key=_NUMBERS.index)
    return DOUBLE if wider == FLOAT else wider  # an integer would lose digits in a float


def _instead_of_string(other: DataType) -> DataType | None:
    if other in INTEGERS:
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return other if other in (BOOLEAN, BINARY, DATE, TIMESTAMP) else None


def _common_nested(a: DataType, b: DataType, strings: bool) -> DataType | None:
    match a, b:
        case ArrayType(x), ArrayType(y):
            element = _common(x, y, strings=strings)
            return None if element is None else ArrayType(element)
        case MapType(k, v), MapType(l, w):
            key, value = _common(k, l, strings=strings), _common(v, w, strings=strings)
            return None if key is None or value is None else MapType(key, value)
        case StructType(fs), StructType(gs) if [f.name for f in fs] == [g.name for g in gs]:
            types = [_common(f.type, g.type, strings=strings) for f, g in zip(fs, gs, strict=True)]
            fields = [Field(f.name, t) for f, t in zip(fs, types, strict=True) if t is not None]
            return StructType(tuple(fields)) if len(fields) == len(fs) else None
    return None


# ------------------------------------------------------------------------------------------------------------ casts


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether ANSI mode has a cast from `source` to `target` (it may still fail on a value)."""
    if source in (target, VOID):
        return target not in (VOID, INTERVAL) or source == target
    match source, target:
        case ArrayType(a), ArrayType(b):
            return can_cast(a, b)
        case MapType(k, v), MapType(l, w):
            return can_cast(k, l) and can_cast(v, w)
        case StructType(fs), StructType(gs):
            return len(fs) == len(gs) and all(can_cast(f.type, g.type) for f, g in zip(fs, gs, strict=True))
    if target == STRING:
        return source != INTERVAL
    if source == STRING:
        return target in (BOOLEAN, BINARY, DATE, TIMESTAMP) or is_numeric(target)
    if is_numeric(source):
        return is_numeric(target) or target in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return is_numeric(target)
    if source == TIMESTAMP:
        return is_numeric(target) or target == DATE
    return source == DATE and target == TIMESTAMP


def coerce(expr: Expr, to: DataType) -> Expr | None:
    """`expr` as a value of type `to` if the cast is lossless for every value of its type; None otherwise."""
    return convert(expr, to) if _is_lossless(expr.type, to) else None


def _is_lossless(source: DataType, target: DataType) -> bool:
    if source in (target, VOID):
        return target not in (VOID, INTERVAL) or source == target
    match source, target:
        case ArrayType(a), ArrayType(b):
            return _is_lossless(a, b)
        case MapType(k, v), MapType(l, w):
            return _is_lossless(k, l) and _is_lossless(v, w)
        case StructType(fs), StructType(gs):
            same = [f.name for f in fs] == [g.name for g in gs]
            return same and all(_is_lossless(f.type, g.type) for f, g in zip(fs, gs, strict=True))
        case _, DecimalType(precision, scale):
            digits = decimal_of(source)
            return digits is not None and digits.scale <= scale and digits.precision - digits.scale <= precision - scale
        case ScalarType(), ScalarType():
            if source in INTEGERS and target in INTEGERS:
                return _BITS[source] <= _BITS[target]
            if source in INTEGERS and target in (FLOAT, DOUBLE):
                return _BITS[source] <= (16 if target == FLOAT else 32)
            return (source, target) in ((FLOAT, DOUBLE), (DATE, TIMESTAMP))
    return False


def convert(expr: Expr, to: DataType) -> Expr:
    """`expr` cast to `to`. A constant whose cast cannot fail becomes a constant of that type."""
    if expr.type == to:
        return expr
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, to)
        if isinstance(expr.value, int) and expr.type in INTEGERS:
            return _convert_integer(expr, expr.value, to)
    return Cast(expr, to)


def _convert_integer(literal: Literal, value: int, to: DataType) -> Expr:
    if to in INTEGERS and isinstance(to, ScalarType):
        limit = 1 << (_BITS[to] - 1)
        return Literal(value, to) if -limit <= value < limit else Cast(literal, to)
    if to == DOUBLE and abs(value) <= 1 << 53:
        return Literal(float(value), DOUBLE)
    if isinstance(to, DecimalType) and len(str(abs(value))) <= to.precision - to.scale:
        return Literal(f"{value}.{'0' * to.scale}" if to.scale else str(value), to)
    return Cast(literal, to)
