"""Rows of stores that keep a timestamp, then a value (an i64, little endian, then the bytes), as whole columns.

Guarantees: the bytes are those of the stores' single writes. Not for rows that are too short: `StateError`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.errors import StateError
from vsc.runtime.state.moving import Recode
from vsc.runtime.state.row_columns import fixed_width_binary

__all__ = ["packed", "recoded", "unpacked"]

_WIDTH = 8


def packed(values: pa.BinaryArray, times: npt.NDArray[np.int64]) -> list[bytes]:
    """One row for each of `values`, none of which is null."""
    heads = fixed_width_binary(np.ascontiguousarray(times, dtype="<i8").view(np.uint8).reshape(-1, _WIDTH))
    rows: list[bytes] = pc.binary_join_element_wise(heads, values, b"").to_pylist()
    return rows


def unpacked(rows: Sequence[bytes]) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    """The values and the timestamps of rows."""
    count = len(rows)
    data = pa.array(rows, pa.binary())
    starts = np.frombuffer(data.buffers()[1], dtype=np.int32, count=count + 1)
    if count and np.diff(starts).min() < _WIDTH:
        raise StateError("a row is damaged: it is too short to hold a timestamp")
    bounds = np.empty(2 * count + 1, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = starts[:-1] + _WIDTH
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), data.buffers()[2]])
    places = np.arange(count, dtype=np.int64) * 2
    heads = pieces.take(pa.array(places))
    times = np.frombuffer(heads.buffers()[2] or b"", dtype="<i8", count=count)
    return pieces.take(pa.array(places + 1)), times.astype(np.int64)


def recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    """The same row with its value recoded."""
    return value[:_WIDTH] + recode(value[_WIDTH:])
