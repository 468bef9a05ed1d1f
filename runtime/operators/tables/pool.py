"""The rows that look-ups into a table can find in one batch: of the store, and of the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import stacked, taken
from vsc.runtime.records import Int64s
from vsc.runtime.state.rows import RowCodec

__all__ = ["Pool"]


class Pool:
    """Rows by position: the encoded `stored` ones first, then those of the columns `fresh`.

    Stored rows are decoded on demand, each at most once.
    """

    __slots__ = ("_codec", "_fresh", "_stored")

    def __init__(self, codec: RowCodec, stored: pa.BinaryArray, fresh: Sequence[pa.Array] | None) -> None:
        self._codec = codec
        self._stored = stored
        self._fresh = fresh

    def take(self, positions: Int64s) -> tuple[pa.Array, ...]:
        """The value columns at `positions`, null where a position is negative."""
        count = len(self._stored)
        wanted = np.zeros(count, dtype=np.bool_)
        wanted[positions[(positions >= 0) & (positions < count)]] = True
        found = int(np.count_nonzero(wanted))
        stored = self._stored
        if 2 * found < count:
            stored = stored.filter(pa.array(wanted))
            places = np.cumsum(wanted) - 1 if count else np.zeros(0, dtype=np.int64)
            inside = np.clip(positions, 0, max(count - 1, 0))
            shifted = places[inside] if count else positions
            positions = np.where(positions >= count, positions - count + found, np.where(positions < 0, -1, shifted))
        columns = self._codec.decode_columns(stored)
        if self._fresh is not None:
            columns = stacked(columns, self._fresh)
        return taken(columns, positions)
