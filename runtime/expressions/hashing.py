"""``xxhash64`` as Spark computes it: XXH64 of each value by its type, the hash of one value seeding the next."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType, StructType
from vsc.runtime.expressions.numbers import EXACT

__all__ = ["SEED", "hasher"]

SEED = 42
"""The seed of the first value."""

_MASK = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

Hasher = Callable[[Any, int], int]


def hasher(type: DataType) -> Hasher:
    """The function ``(value, seed) -> hash`` for values of `type`; a null gives the seed back."""
    found = _hasher(type)
    return lambda value, seed: seed if value is None else found(value, seed)


def _hasher(type: DataType) -> Hasher:
    match type:
        case DecimalType(precision, scale):
            if precision <= 18:
                return lambda value, seed: _long(int(value.scaleb(scale, EXACT)), seed)
            return lambda value, seed: _bytes(_big_endian(int(value.scaleb(scale, EXACT))), seed)
        case ArrayType(element):
            item = hasher(element)
            return lambda value, seed: _fold([item] * len(value), value, seed)
        case StructType(fields):
            members = [hasher(f.type) for f in fields]
            return lambda value, seed: _fold(members, value, seed)
        case ScalarType(name):
            return _SCALARS[name]
    raise ValueError(f"no hash for {type}")


def _fold(hashers: list[Hasher], values: Any, seed: int) -> int:
    for one, value in zip(hashers, values, strict=True):
        seed = one(value, seed)
    return seed


def _big_endian(number: int) -> bytes:
    """The bytes of Java's ``BigInteger.toByteArray``: the fewest that hold the number and its sign."""
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _MASK


def _finish(x: int) -> int:
    x = ((x ^ (x >> 33)) * _P2) & _MASK
    x = ((x ^ (x >> 29)) * _P3) & _MASK
    x ^= x >> 32
    return x - 2**64 if x >= 2**63 else x


def _int(value: int, seed: int) -> int:
    x = (seed + _P5 + 4) & _MASK
    x ^= ((value & 0xFFFFFFFF) * _P1) & _MASK
    return _finish((_rotate(x, 23) * _P2 + _P3) & _MASK)


def _lane(x: int, value: int) -> int:
    x ^= (_rotate((value * _P2) & _MASK, 31) * _P1) & _MASK
    return (_rotate(x, 27) * _P1 + _P4) & _MASK


def _long(value: int, seed: int) -> int:
    return _finish(_lane((seed + _P5 + 8) & _MASK, value & _MASK))


def _bytes(data: bytes, seed: int) -> int:
    at, size = 0, len(data)
    if size >= 32:
        x, at = _stripes(data, seed)
    else:
        x = (seed + _P5) & _MASK
    x = (x + size) & _MASK
    while at + 8 <= size:
        x = _lane(x, int.from_bytes(data[at : at + 8], "little"))
        at += 8
    if at + 4 <= size:
        x ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK
        x = (_rotate(x, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        x ^= (byte * _P5) & _MASK
        x = (_rotate(x, 11) * _P1) & _MASK
    return _finish(x)


def _stripes(data: bytes, seed: int) -> tuple[int, int]:
    """The whole stripes of 32 bytes, and where they end."""
    lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed & _MASK, (seed - _P1) & _MASK]
    end = len(data) - len(data) % 32
    for at in range(0, end, 32):
        for i, word in enumerate(struct.unpack_from("<4Q", data, at)):
            lanes[i] = (_rotate((lanes[i] + word * _P2) & _MASK, 31) * _P1) & _MASK
    x = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        x ^= (_rotate((lane * _P2) & _MASK, 31) * _P1) & _MASK
        x = (x * _P1 + _P4) & _MASK
    return x, end


def _bits(value: float, floating: str, integer: str) -> int:
    """The bits of a number as an integer; there is one NaN and one zero."""
    found: int = struct.unpack(integer, struct.pack(floating, value + 0.0 if value == value else math.nan))[0]
    return found


_SCALARS: dict[str, Hasher] = {
    "boolean": lambda value, seed: _int(int(value), seed),
    "tinyint": _int,
    "smallint": _int,
    "int": _int,
    "date": _int,
    "bigint": _long,
    "timestamp": _long,
    "float": lambda value, seed: _int(_bits(value, "<f", "<i"), seed),
    "double": lambda value, seed: _long(_bits(value, "<d", "<q"), seed),
    "string": lambda value, seed: _bytes(value.encode("utf-8"), seed),
    "binary": _bytes,
    "void": lambda value, seed: seed,
}
