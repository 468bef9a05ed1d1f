"""Integers as the aggregates keep them: in as few bytes as possible, little endian, signed; zero takes no bytes.

The bytes of ``int.to_bytes(bit_length // 8 + 1)``, for whole columns. Numbers that do not fit in 64 bits are arrays of
Python integers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.segments import SAFE
from vsc.runtime.records import Int64s, Mask

__all__ = ["bytes_of", "decimals", "integers_of", "narrow", "unscaled", "wide"]

_WORD = 8
_LOW = 2**64 - 1
_EDGES = np.array([0, *(1 << (8 * n - 1) for n in range(1, _WORD))], dtype=np.int64)
"""From each of these numbers on, an integer takes one byte more."""


def narrow(values: Int64s, most: int = SAFE) -> bool:
    """Whether all numbers are between `-most` and `most`, both excluded."""
    return not len(values) or (int(values.max()) < most and int(values.min()) > -most)


def wide(values: Int64s) -> Int64s:
    """The same numbers as Python integers, which do not overflow."""
    return values.astype(object)


def bytes_of(values: Int64s) -> pa.BinaryArray:
    """The bytes of each number."""
    if values.dtype == object or not narrow(values):
        return pa.array([_bytes(number) for number in values.tolist()], pa.binary())
    magnitude = np.abs(values)
    lengths = np.where(magnitude == 0, 0, np.searchsorted(_EDGES, magnitude, side="right"))
    raw = np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, _WORD)
    data = raw[np.arange(_WORD) < lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data.tobytes())])


def integers_of(column: pa.BinaryArray) -> Int64s:
    """The numbers that `bytes_of` encoded, 0 for null."""
    if column.null_count:
        column = column.fill_null(b"")
    count = len(column)
    if not count:
        return np.zeros(0, dtype=np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int32, count + 1, column.offset * 4).astype(np.int64)
    lengths = np.diff(offsets)
    if int(lengths.max()) > _WORD:
        return np.array([int.from_bytes(data, "little", signed=True) for data in column.to_pylist()], dtype=object)
    raw = np.zeros((count, _WORD), dtype=np.uint8)
    data = column.buffers()[2]
    if data is not None:
        raw[np.arange(_WORD) < lengths[:, None]] = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
    values = raw.view("<i8").reshape(-1).astype(np.int64)
    unused = 8 * (_WORD - np.maximum(lengths, 1))
    extended: Int64s = (values << unused) >> unused
    return extended


def unscaled(column: pa.Decimal128Array) -> Int64s:
    """The unscaled values of decimals, 0 for null."""
    halves = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset).copy()
    low, high = halves[::2], halves[1::2]
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        low[null] = high[null] = 0
    if (high == low >> 63).all():
        return low
    return wide(high) * 2**64 + wide(low.view(np.uint64))


def decimals(values: Int64s, nothing: Mask, of: pa.Decimal128Type) -> pa.Decimal128Array:
    """Decimals from unscaled values of at most 127 bits, null where `nothing`."""
    if values.dtype == object:
        both = values.tolist()
        halves = np.array([half for n in both for half in (n & _LOW, (n >> 64) & _LOW)], dtype=np.uint64)
    else:
        halves = np.empty(2 * len(values), dtype="<i8")
        halves[::2], halves[1::2] = values, values >> 63
    validity = pa.py_buffer(np.packbits(~nothing, bitorder="little"))
    return pa.Array.from_buffers(of, len(values), [validity, pa.py_buffer(halves)])


def _bytes(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True) if number else b""
