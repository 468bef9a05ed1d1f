"""Values of any type in Spark SQL's order: as bytes that sort, or as Python values to compare.

The bytes of two values compare as the values do. No value's bytes are a prefix of another's, so anything may follow
them. Beyond the types of key columns (see `state.keys`) there are floats (-0.0 equals 0.0; NaN is one value, the
greatest) and arrays (element by element, null elements first, an array before a longer one that begins with it).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from vsc.plan.types import ArrayType, DataType, ScalarType, StructType
from vsc.runtime.state.keys import KeyCodec

__all__ = ["comparable", "order_bytes"]

_DOUBLE = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_FLOATS = ("float", "double")


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
