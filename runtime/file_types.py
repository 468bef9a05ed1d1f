"""The types to declare for the columns of parquet and ORC files: the reverse of `arrow_type`."""

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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)

__all__ = ["declared"]

_PLAIN: dict[pa.DataType, DataType] = {
    pa.bool_(): BOOLEAN, pa.int8(): TINYINT, pa.int16(): SMALLINT, pa.int32(): INT, pa.int64(): BIGINT,
    pa.uint8(): SMALLINT, pa.uint16(): INT, pa.uint32(): BIGINT, pa.uint64(): DecimalType(20, 0),
    pa.float16(): FLOAT, pa.float32(): FLOAT, pa.float64(): DOUBLE, pa.date32(): DATE, pa.date64(): DATE,
    pa.string(): STRING, pa.large_string(): STRING, pa.string_view(): STRING,
    pa.binary(): BINARY, pa.large_binary(): BINARY, pa.binary_view(): BINARY,
    pa.time32("s"): INT, pa.time32("ms"): INT, pa.null(): VOID,
}  # fmt: skip


def declared(type: pa.DataType) -> DataType | None:
    """The type to declare for a column of a file, VOID if it has nothing but nulls; None if it cannot be read."""
    if type in _PLAIN:
        return _PLAIN[type]
    if pa.types.is_dictionary(type):
        return declared(type.value_type)
    if pa.types.is_timestamp(type):
        return TIMESTAMP
    if isinstance(type, pa.UuidType):
        return STRING
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
