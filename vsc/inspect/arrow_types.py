"""The type with which Spark can read parquet or ORC files whose types for a column differ."""

from __future__ import annotations

from vsc.plan.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TINYINT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    StructType,
)

__all__ = ["widest"]

_INTEGERS: tuple[DataType, ...] = (TINYINT, SMALLINT, INT, BIGINT)
_WHOLE_DIGITS: dict[DataType, int] = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def widest(one: DataType, other: DataType) -> DataType | None:
    """The type with which Spark reads files of either type without loss; None if no type does."""
    if one == other:
        return one
    for a, b in ((one, other), (other, one)):
        if a in _INTEGERS and b in _INTEGERS:
            return _INTEGERS[max(_INTEGERS.index(a), _INTEGERS.index(b))]
        if b == DOUBLE and a in (FLOAT, TINYINT, SMALLINT, INT):
            return DOUBLE
        if b == FLOAT and a in (TINYINT, SMALLINT, INT):
            return DOUBLE
        if isinstance(b, DecimalType) and a in _INTEGERS:
            return _decimal(_WHOLE_DIGITS[a], b.precision - b.scale, b.scale)
    return _widest_nested(one, other)


def _widest_nested(one: DataType, other: DataType) -> DataType | None:
    match one, other:
        case DecimalType(), DecimalType():
            return _decimal(one.precision - one.scale, other.precision - other.scale, max(one.scale, other.scale))
        case ArrayType(a), ArrayType(b):
            element = widest(a, b)
            return None if element is None else ArrayType(element)
        case StructType(fields), StructType(others):
            return _widest_struct(fields, others)
    return None


def _widest_struct(fields: tuple[Field, ...], others: tuple[Field, ...]) -> DataType | None:
    merged = {field.name: field.type for field in fields}
    for field in others:
        type = widest(merged[field.name], field.type) if field.name in merged else field.type
        if type is None:
            return None
        merged[field.name] = type
    return StructType(tuple(Field(name, type) for name, type in merged.items()))


def _decimal(whole: int, other: int, scale: int) -> DataType | None:
    precision = max(whole, other) + scale
    return DecimalType(precision, scale) if precision <= 38 else None
