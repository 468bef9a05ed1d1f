"""What becomes of the columns of parquet files that pyarrow has read: a conversion for each pair of what a file holds
and what is declared.

Guarantees: the declared type holds every value of the file's type, or there is no conversion. Three exceptions go by
the value, which is null where it does not fit: whole numbers of 64 bits as `double`, small ones as `boolean`, and times
beyond those that microseconds can count. Not for nested types (`parquet_nested`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.values import INTEGER_BITS, arrow_type

__all__ = ["Conversion", "conversion", "held_type"]

Conversion = Callable[[pa.Array], pa.Array]

_DIGITS = {
    pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19,
    pa.uint8(): 3, pa.uint16(): 5, pa.uint32(): 10, pa.uint64(): 20,
}  # fmt: skip
"""How many digits before the point a decimal must have to hold every number of the type."""
_FLOAT_EXACT, _DOUBLE_EXACT = 16, 32
"""Integers of so many bits are exact as numbers of single and of double precision."""
_MOST_MICROS = 2**63 - 1
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_HYPHENS = (8, 13, 18, 23)
"""Where the text of a UUID, of 36 characters, has its hyphens."""
_FLOATS = {"float": (pa.float16(), pa.float32()), "double": (pa.float16(), pa.float32(), pa.float64())}


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
    is_uuid = isinstance(held, pa.UuidType) and str(declared) == "string"
    found = _uuid_texts if is_uuid else _conversion(physical, held_type(held), declared)
    return None if found is None else partial(_converted, found)


def _converted(convert: Conversion, column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return convert(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)


def _conversion(physical: str, held: pa.DataType, declared: DataType) -> Conversion | None:
    name, wanted = str(declared), arrow_type(declared)
    same = partial(pc.cast, target_type=wanted)
    if pa.types.is_null(held):
        return lambda column: pa.nulls(len(column), wanted)
    if pa.types.is_integer(held):
        return _of_integers(held, declared, wanted)
    if pa.types.is_decimal(held):
        return same if _holds_decimals(held, declared) else None
    if pa.types.is_boolean(held):
        if name in INTEGER_BITS:
            return lambda column: column.cast(pa.int8()).cast(wanted)
        return same if name == "boolean" else None
    if pa.types.is_floating(held):
        return same if held in _FLOATS.get(name, ()) else None
    if _is_text(held):
        lenient = pc.CastOptions(target_type=wanted, allow_invalid_utf8=True)  # stage 0 looks at all texts
        return partial(pc.cast, options=lenient) if name in ("string", "binary") else None
    if pa.types.is_fixed_size_binary(held):
        return same if name == "binary" else None
    return _of_times(physical, held, name, wanted)


def _of_integers(held: pa.DataType, declared: DataType, wanted: pa.DataType) -> Conversion | None:
    name, signed, same = str(declared), pa.types.is_signed_integer(held), partial(pc.cast, target_type=wanted)
    bits = held.bit_width - signed
    if isinstance(declared, DecimalType):
        return same if declared.precision - declared.scale >= _DIGITS[held] else None
    if name in INTEGER_BITS:
        return same if bits < INTEGER_BITS[name] else None
    if name == "boolean" and held.bit_width == 8:
        return lambda column: pc.if_else(pc.or_(pc.equal(column, 0), pc.equal(column, 1)), column, None).cast(wanted)
    if name == "float":
        return same if bits <= _FLOAT_EXACT else None
    if name == "double":
        return same if bits <= _DOUBLE_EXACT else _exact_doubles
    return None


def _of_times(physical: str, held: pa.DataType, name: str, wanted: pa.DataType) -> Conversion | None:
    if pa.types.is_timestamp(held) and name == "timestamp":
        return _timestamps
    if pa.types.is_date(held):
        if name == "timestamp":
            return lambda column: _timestamps(column.cast(pa.date32()).cast(pa.timestamp("s")))
        return partial(pc.cast, target_type=wanted) if name == "date" else None
    is_short = pa.types.is_time32(held)
    if (name == "bigint" and physical != "INT96") or (name == "int" and is_short):
        return lambda column: _numbers(column).cast(wanted)
    return None


def _holds_decimals(held: pa.DataType, declared: DataType) -> bool:
    """Whether the declared type holds every decimal of the file's type."""
    if isinstance(declared, DecimalType):
        more = declared.scale - held.scale
        return bool(0 <= more <= declared.precision - held.precision)
    bits = INTEGER_BITS.get(str(declared), 0)
    return bool(held.scale == 0 and 10**held.precision <= 2 ** (bits - 1)) if bits else False


def _is_text(held: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
             pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)  # fmt: skip
    return any(is_kind(held) for is_kind in kinds)


def _exact_doubles(column: pa.Array) -> pa.Array:
    """The numbers that a double holds exactly; null for the others."""
    found = pc.cast(column, pa.float64(), safe=False)
    back = pc.cast(found, pa.decimal128(38, 0), safe=False)
    return pc.if_else(pc.equal(back, pc.cast(column, pa.decimal128(38, 0))), found, None)


def _timestamps(column: pa.Array) -> pa.Array:
    """Timestamps, of whatever zone, by the microseconds since the epoch that they are: nanoseconds are cut off. Null
    for a time that is too far away to have any, as some programs write for "never"."""
    type, numbers = column.type, column.view(pa.int64())
    if type.unit == "ns":
        values = np.floor_divide(numbers.fill_null(0).to_numpy(zero_copy_only=False), 1000)
        micros = pa.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))
    else:
        most = _MOST_MICROS // _MICROS[type.unit]
        held = pc.and_(pc.less_equal(numbers, most), pc.greater_equal(numbers, -most))
        micros = pc.multiply(pc.if_else(held, numbers, None), _MICROS[type.unit])
    return micros.view(pa.timestamp("us", "UTC"))


def _uuid_texts(column: pa.Array) -> pa.Array:
    """UUIDs as they are written: 32 digits in five groups."""
    count, start = len(column), column.offset
    raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)[16 * start : 16 * (start + count)].reshape(count, 16)
    texts = np.full((count, 36), ord("-"), np.uint8)
    digits = np.delete(np.arange(36), _HYPHENS)
    texts[:, digits] = _HEX[np.stack([raw >> 4, raw & 15], axis=2).reshape(count, 32)]
    offsets = np.arange(count + 1, dtype=np.int32) * 36
    found = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found


def _numbers(column: pa.Array) -> pa.Array:
    """The numbers that the file holds in the place of times: of its own unit, as Spark reads them."""
    if column.type == pa.time32("s"):
        column = column.cast(pa.time32("ms"))
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
