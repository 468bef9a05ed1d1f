"""The types of parquet and ORC files as Spark reads them into declared columns."""

from __future__ import annotations

import pyarrow as pa

from vsc.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)

__all__ = ["declared", "widest"]

_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): BOOLEAN, pa.int8(): TINYINT, pa.int16(): SMALLINT, pa.int32(): INT, pa.int64(): BIGINT,
    pa.uint8(): SMALLINT, pa.uint16(): INT, pa.uint32(): BIGINT, pa.uint64(): DecimalType(20, 0),
    pa.float32(): FLOAT, pa.float64(): DOUBLE, pa.date32(): DATE, pa.date64(): DATE,
    pa.string(): STRING, pa.large_string(): STRING, pa.string_view(): STRING,
    pa.binary(): BINARY, pa.large_binary(): BINARY, pa.binary_view(): BINARY,
    pa.time32("s"): INT, pa.time32("ms"): INT,
}  # fmt: skip
_INTEGERS: tuple[DataType, ...] = (TINYINT, SMALLINT, INT, BIGINT)
_WHOLE_DIGITS: dict[DataType, int] = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def declared(type: pa.DataType) -> DataType | None:
    """The type to declare for a column of a file; None if Spark cannot read it."""
    if type in _PLAIN:
        return _PLAIN[type]
    if pa.types.is_dictionary(type):
        return declared(type.value_type)
    if pa.types.is_timestamp(type):
        return BIGINT if type.unit == "ns" else TIMESTAMP  # Spark reads nanoseconds as the number that they are
    if pa.types.is_time64(type) or pa.types.is_duration(type):
        return BIGINT
    if pa.types.is_fixed_size_binary(type):
        return BINARY
    if pa.types.is_decimal(type):
        return DecimalType(type.precision, type.scale) if type.precision <= 38 else None
    return _nested(type)


def _nested(type: pa.DataType) -> DataType | None:
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        element = declared(type.value_type)
        return None if element is None else ArrayType(element)
    if pa.types.is_map(type):
        key, item = declared(type.key_type), declared(type.item_type)
        return None if key is None or item is None else MapType(key, item)
    if pa.types.is_struct(type):
        members = [(type.field(i).name, declared(type.field(i).type)) for i in range(type.num_fields)]
        fields = tuple(Field(name, found) for name, found in members if found is not None)
        return StructType(fields) if fields else None
    return None


def widest(one: DataType, other: DataType) -> DataType | None:
    """The type as which Spark reads files with either type without loss; None if there is none."""
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
