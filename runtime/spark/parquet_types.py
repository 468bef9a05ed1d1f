"""What Spark makes of the columns of parquet files, for columns that pyarrow has read: a conversion for each pair of
what a file holds and what is declared.

Guarantees: a value is the one that Spark's own reader gives; where Spark refuses a pair, there is no conversion. Spark
reads an unsigned number of 32 or 64 bits as a narrower type only from some pages of a file: here it is refused always.
Not for nested types: Spark reads these itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.values import arrow_type

__all__ = ["Conversion", "conversion", "held_type"]

Conversion = Callable[[pa.Array], pa.Array]

_SIGNED = {pa.int8(), pa.int16(), pa.int32(), pa.int64()}
_WIDE_UNSIGNED = {pa.uint32(), pa.uint64()}
_NUMBERS = {"tinyint", "smallint", "int", "bigint"}
_DIGITS = {"INT32": 10, "INT64": 20}
"""How many digits before the point a decimal must have to hold every number of that size."""
_UNITS = {"s", "ms", "us"}
"""Those of timestamps that Spark reads as such."""


def held_type(type: pa.DataType) -> pa.DataType:
    """The type of the values themselves: without dictionary, and without the name of an extension."""
    while True:
        if isinstance(type, pa.BaseExtensionType):
            type = type.storage_type
        elif pa.types.is_dictionary(type):
            type = type.value_type
        else:
            return type


def conversion(physical: str, held: pa.DataType, declared: DataType) -> Conversion | None:
    """How a column of type `held`, which a file has as `physical`, becomes one that is `declared`; None: not at all."""
    found = _conversion(physical, held_type(held), declared)
    return None if found is None else partial(_converted, found)


def _converted(convert: Conversion, column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return convert(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)


def _conversion(physical: str, held: pa.DataType, declared: DataType) -> Conversion | None:
    name, wanted = str(declared), arrow_type(declared)
    if isinstance(declared, DecimalType):
        if not _fits(physical, held, declared):
            return None
        return lambda column: (column if pa.types.is_decimal(column.type) else _numbers(column)).cast(wanted)
    match physical:
        case "BOOLEAN" | "FLOAT" | "DOUBLE":
            same = {"BOOLEAN": {"boolean"}, "FLOAT": {"float", "double"}, "DOUBLE": {"double"}}
            return partial(pc.cast, target_type=wanted) if name in same[physical] else None
        case "INT32":
            return _of_int32(held, name, wanted)
        case "INT64":
            if name == "timestamp" and pa.types.is_timestamp(held) and held.unit in _UNITS:
                return _timestamps
            return _numbers if name == "bigint" and held != pa.uint64() else None
        case "INT96":
            return _timestamps if name == "timestamp" else None
        case "BYTE_ARRAY" if name in ("string", "binary") and not pa.types.is_decimal(held):
            return partial(pc.cast, options=pc.CastOptions(target_type=wanted, allow_invalid_utf8=True))
        case "FIXED_LEN_BYTE_ARRAY" if name == "binary" and pa.types.is_fixed_size_binary(held):
            return partial(pc.cast, target_type=wanted)
    return None


def _of_int32(held: pa.DataType, name: str, wanted: pa.DataType) -> Conversion | None:
    if held in _WIDE_UNSIGNED and name not in ("bigint", "double"):
        return None
    if name in _NUMBERS:
        return lambda column: _numbers(column).cast(wanted, safe=False)
    if name == "double":
        return lambda column: _numbers(column).cast(wanted)
    return (lambda column: _numbers(column).cast(pa.int32()).view(wanted)) if name == "date" else None


def _fits(physical: str, held: pa.DataType, declared: DecimalType) -> bool:
    """Whether a decimal as declared holds every value of the file's type."""
    if pa.types.is_decimal(held):
        more = declared.scale - held.scale
        return bool(0 <= more <= declared.precision - held.precision)
    if held == pa.uint64():
        return (declared.precision, declared.scale) == (20, 0)
    if held not in _SIGNED and not pa.types.is_duration(held):
        return False
    return declared.precision - declared.scale >= _DIGITS[physical]


def _timestamps(column: pa.Array) -> pa.Array:
    """Timestamps, of whatever zone, by the microseconds since the epoch that they are."""
    return column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()).view(pa.timestamp("us", "UTC"))


def _numbers(column: pa.Array) -> pa.Array:
    """The numbers that the file holds in the place of the values."""
    type = column.type
    if pa.types.is_null(type):
        return pa.nulls(len(column), pa.int32())
    if pa.types.is_decimal(type):
        return _unscaled(column)
    if pa.types.is_date64(type):
        column = column.cast(pa.date32())
    elif type == pa.time32("s"):
        column = column.cast(pa.time32("ms"))
    if pa.types.is_integer(column.type):
        return column
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _unscaled(column: pa.Array) -> pa.Array:
    """The lower halves of decimals, which hold all of those that a file has as numbers."""
    column = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(column.buffers()[1], np.int64)[::2][column.offset : column.offset + len(column)]
    return pa.array(words, mask=column.is_null().to_numpy(zero_copy_only=False))
