"""The type that reads a column of parquet or ORC files whose types for it differ."""

from __future__ import annotations

from vsc.plan.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
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
    StructType,
)

__all__ = ["known", "widest"]

_INTEGERS: tuple[DataType, ...] = (TINYINT, SMALLINT, INT, BIGINT)
_WHOLE_DIGITS: dict[DataType, int] = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def widest(one: DataType, other: DataType, by_value: bool) -> DataType | None:
    """The type with which files of either type are read without loss; None if no type does. `by_value`: as parquet is,
    where whole numbers of 64 bits can be doubles, but for those that no double is."""
    if one == other:
        return one
    for a, b in ((one, other), (other, one)):
        if a == VOID:
            return b
        if by_value and a == BIGINT and b in (FLOAT, DOUBLE):
            return DOUBLE
        if by_value and (a, b) == (DATE, TIMESTAMP):
            return TIMESTAMP
        if a in _INTEGERS and b in _INTEGERS:
            return _INTEGERS[max(_INTEGERS.index(a), _INTEGERS.index(b))]
        if b == DOUBLE and a in (FLOAT, TINYINT, SMALLINT, INT):
            return DOUBLE
        if b == FLOAT and a in (TINYINT, SMALLINT, INT):
            return DOUBLE
        if isinstance(b, DecimalType) and a in _INTEGERS:
            return _decimal(_WHOLE_DIGITS[a], b.precision - b.scale, b.scale)
    return _widest_nested(one, other, by_value)


def _widest_nested(one: DataType, other: DataType, by_value: bool) -> DataType | None:
    match one, other:
        case DecimalType(), DecimalType():
            return _decimal(one.precision - one.scale, other.precision - other.scale, max(one.scale, other.scale))
        case ArrayType(a), ArrayType(b):
            element = widest(a, b, by_value)
            return None if element is None else ArrayType(element)
        case MapType(key, a), MapType(other_key, b):
            keys, values = widest(key, other_key, by_value=False), widest(a, b, by_value)
            return None if keys is None or values is None else MapType(keys, values)
        case StructType(fields), StructType(others):
            return _widest_struct(fields, others, by_value)
    return None


def _widest_struct(fields: tuple[Field, ...], others: tuple[Field, ...], by_value: bool) -> DataType | None:
    merged = {field.name: field.type for field in fields}
    for field in others:
        type = widest(merged[field.name], field.type, by_value) if field.name in merged else field.type
        if type is None:
            return None
        merged[field.name] = type
    return StructType(tuple(Field(name, type) for name, type in merged.items()))


def _decimal(whole: int, other: int, scale: int) -> DataType | None:
    precision = max(whole, other) + scale
    return DecimalType(precision, scale) if precision <= 38 else None


def known(type: DataType) -> DataType:
    """The type, with string wherever no file has a value."""
    match type:
        case ArrayType(element):
            return ArrayType(known(element))
        case MapType(key, value):
            return MapType(known(key), known(value))
        case StructType(fields):
            return StructType(tuple(Field(field.name, known(field.type)) for field in fields))
    return STRING if type == VOID else type
