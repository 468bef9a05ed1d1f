"""Stores columns of bigints in as few bytes as they need: a base and small unsigned offsets, or only the base.

A record's place in the order is mostly constants and counters, and is copied many times on its way through Spark.
Exact for every bigint. Not for users' columns: those keep their types.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["narrowed", "widened"]

_UNSIGNED = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))


def narrowed(values: npt.NDArray[np.integer]) -> tuple[int, pa.Array | None]:
    """`values` as a base and the offsets to add to it; the offsets are None if all values are the same."""
    if not len(values):
        return 0, None
    low, high = int(values.min()), int(values.max())
    if low == high:
        return low, None
    for bound, kind in _UNSIGNED:
        if high - low < bound:
            return low, pa.array((values - low).astype(kind))
    return 0, pa.array(values.astype(np.int64, copy=False))


def widened(base: int, added: pa.Array | None, rows: int) -> npt.NDArray[np.int64]:
    """The `rows` values that `narrowed` was given."""
    if added is None:
        return np.full(rows, base, dtype=np.int64)
    values: npt.NDArray[np.int64] = added.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return values + base if base else values
