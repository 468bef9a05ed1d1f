"""Values of any type in Spark SQL's order: as bytes that sort, as Python values to compare, as numbers.

The bytes of two values compare as the values do. No value's bytes are a prefix of another's, so anything may follow
them. Beyond the types of key columns (see `state.keys`) there are floats (-0.0 equals 0.0; NaN is one value, the
greatest) and arrays (element by element, null elements first, an array before a longer one that begins with it).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType, StructType
from vsc.runtime.operators.columns import keyspace
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import to_values

__all__ = ["comparable", "order_bytes", "ordered", "ranks"]

_DOUBLE = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_FLOATS = ("float", "double")
_NUMBERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64}


def order_bytes(data_type: DataType) -> Callable[[Any], bytes]:
    """The function from non-null values of `data_type` to their bytes. Raises TypeError for a type without order."""
    if isinstance(data_type, ScalarType) and data_type.name in _FLOATS:
        return _float_bytes
    if isinstance(data_type, ArrayType):
        return _array_bytes(order_bytes(data_type.element))
    if isinstance(data_type, StructType):
        return _struct_bytes([order_bytes(field.type) for field in data_type.fields])
    codec = KeyCodec([data_type])
    return lambda value: codec.encode((value,))


def comparable(data_type: DataType) -> Callable[[Any], Any]:
    """The function from non-null values of `data_type` to what Python compares as Spark compares the values."""
    if isinstance(data_type, ScalarType):
        return _comparable_float if data_type.name in _FLOATS else _itself
    if isinstance(data_type, ArrayType | StructType):
        return order_bytes(data_type)
    return _itself


def _itself(value: Any) -> Any:
    return value


def _comparable_float(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _float_bytes(value: float) -> bytes:
    if math.isnan(value):
        return _BITS.pack(_ALL)
    (bits,) = _BITS.unpack(_DOUBLE.pack(value + 0.0))  # -0.0 becomes 0.0
    return _BITS.pack(bits ^ _ALL if bits & _SIGN else bits | _SIGN)


def _array_bytes(element: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def encode(values: Any) -> bytes:
        return b"".join(b"\x01" if v is None else b"\x02" + element(v) for v in values) + b"\x00"

    return encode


def _struct_bytes(fields: list[Callable[[Any], bytes]]) -> Callable[[Any], bytes]:
    def encode(values: Any) -> bytes:
        return b"".join(b"\x00" if v is None else b"\x01" + f(v) for f, v in zip(fields, values, strict=True))

    return encode


def ordered(of: DataType, column: pa.Array) -> tuple[Sequence[bytes], Int64s]:
    """The distinct values of a column without nulls, as `order_bytes`, and for each row which of them it has."""
    if isinstance(of, DecimalType) or (isinstance(of, ScalarType) and of.name not in _FLOATS):
        return KeyCodec([of]).encode_columns([column])
    encode, numbers = order_bytes(of), dict[bytes, int]()
    index = [numbers.setdefault(encode(value), len(numbers)) for value in to_values(column, of)]
    return list(numbers), np.array(index, dtype=np.int64)


def ranks(column: pa.Array, data_type: DataType, ascending: bool) -> Int64s:
    """A number for each value, equal for equal values (-0.0 equals 0.0, NaN is the greatest). Any number for null."""
    rank = _ascending(column, data_type)
    return rank if ascending else -1 - rank  # unlike a negation, never overflows


def _ascending(column: pa.Array, data_type: DataType) -> Int64s:
    name = data_type.name if isinstance(data_type, ScalarType) else ""
    if name in _NUMBERS:
        numbers = column.view(f"int{_NUMBERS[name]}")
        whole: Int64s = (numbers.fill_null(0) if numbers.null_count else numbers).to_numpy().astype(np.int64)
        return whole
    if name in _FLOATS:
        return _of_floats(column)
    if isinstance(data_type, ArrayType | StructType):
        names, index = ordered(data_type, column.drop_null())
        found = np.zeros(len(column), dtype=np.int64)
        found[column.is_valid().to_numpy(zero_copy_only=False)] = keyspace.ranks(pa.array(names, pa.binary()))[index]
        return found
    encoded = column.dictionary_encode()
    indices = encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices
    places = keyspace.ranks(encoded.dictionary)
    return places[indices.to_numpy()] if len(places) else np.zeros(len(column), dtype=np.int64)


def _of_floats(column: pa.Array) -> Int64s:
    """The bits of each double as an integer; negative doubles have theirs inverted."""
    values = (column.fill_null(0.0) if column.null_count else column).to_numpy().astype(np.float64) + 0.0
    bits = values.view(np.int64)
    ordered: Int64s = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return np.where(np.isnan(values), np.iinfo(np.int64).max, ordered)
