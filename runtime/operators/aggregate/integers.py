"""Integers as the aggregates keep them: as few bytes as it takes, little endian, signed; zero is no byte at all.

The bytes of ``int.to_bytes(bit_length // 8 + 1)``, for whole columns of numbers of up to 63 bits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import NotColumnar
from vsc.runtime.records import Int64s

__all__ = ["bytes_of", "integers_of"]

_WORD = 8
_EDGES = np.array([0, *(1 << (8 * n - 1) for n in range(1, _WORD))], dtype=np.int64)
"""From these numbers on it takes a byte more."""


def bytes_of(values: Int64s) -> pa.BinaryArray:
    """The bytes of each number; their magnitude is below 2**62."""
    magnitude = np.abs(values)
    lengths = np.where(magnitude == 0, 0, np.searchsorted(_EDGES, magnitude, side="right"))
    raw = np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, _WORD)
    data = raw[np.arange(_WORD) < lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data.tobytes())])


def integers_of(column: pa.BinaryArray) -> Int64s:
    """The numbers again, 0 for null; NotColumnar where one has more than 64 bits."""
    if column.null_count:
        column = column.fill_null(b"")
    count = len(column)
    if not count:
        return np.zeros(0, dtype=np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int32, count + 1, column.offset * 4).astype(np.int64)
    lengths = np.diff(offsets)
    if int(lengths.max()) > _WORD:
        raise NotColumnar
    raw = np.zeros((count, _WORD), dtype=np.uint8)
    data = column.buffers()[2]
    if data is not None:
        raw[np.arange(_WORD) < lengths[:, None]] = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
    values = raw.view("<i8").reshape(-1).astype(np.int64)
    unused = 8 * (_WORD - np.maximum(lengths, 1))
    extended: Int64s = (values << unused) >> unused
    return extended
