"""The rows of a table that its sliding windows and sessions are computed from, in the state of their aggregate.

A row is one of its entries: the group, its time (eight bytes, big endian), its key in the table. What is removed as a
whole when time has passed it (a session, or the rows of one moment) is in the index by time, at its end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.runtime.operators.aggregate.groups.state import AggregateState, window_key
from vsc.runtime.operators.aggregate.windows.layouts import Bounds, layout_of
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.rows import RowCodec

__all__ = ["KeptRows", "Name"]

_NUMBER = struct.Struct(">Q")
_LAST = 2**64 - 1

Name = tuple[int, bytes]
"""A row of a group: its time, and its encoded key in the table."""


class KeptRows:
    """The rows of one aggregate. Writes come at once, with `write`."""

    def __init__(self, kv: OrderedKV, prefix: bytes, operation: Aggregate) -> None:
        """Open the state that `kv` has under `prefix`. Raises StateError if something else is stored there."""
        assert operation.window is not None
        self._state = AggregateState(kv, prefix, False)
        self._codec = RowCodec([column.type for column in operation.row.value])
        self._layout = layout_of(operation.window)
        self._names: list[bytes] = []
        self._deletes: list[bytes] = []
        self._puts: list[tuple[bytes, bytes]] = []
        self._known: set[tuple[bytes, Bounds]] = set()

    @property
    def kv(self) -> OrderedKV:
        """Where the rows are."""
        return self._state.below

    @property
    def stream_time(self) -> int:
        """What the clock has shown at the end of the last batch."""
        return self._state.stream_time

    @property
    def closed(self) -> int:
        """The place in time up to which windows are closed."""
        return self._state.closed

    def around(self, kb: bytes, low: int, high: int) -> tuple[list[Name], list[bytes]]:
        """The rows of a group that are in a window with a row from `low` to `high`, or could be, by time."""
        below, above = self._near(kb, low, False), self._near(kb, high, True)
        between = self._scanned(kb, low, high + 1)
        found = [*reversed(below), *between, *above]
        return [name for name, _ in found], [row for _, row in found]

    def decoded(self, rows: Sequence[bytes]) -> tuple[pa.Array, ...]:
        """The columns of rows."""
        return tuple(self._codec.decode_columns(pa.array(rows, pa.binary())))

    def change(
        self, kb: bytes, gone: Sequence[Name], new: Sequence[Name], before: Sequence[Bounds], after: Sequence[Bounds]
    ) -> None:
        """Notes which rows of a group go and come, and what is removed as a whole before and after that."""
        state = self._state
        self._deletes += [self._row(kb, name) for name in gone]
        self._names += [self._row(kb, name) for name in new]
        self._known.update((kb, unit) for unit in before)
        self._deletes += [state.index(end, start, kb) for start, end in set(before) - set(after)]
        self._puts += [(state.index(end, start, kb), b"") for start, end in set(after) - set(before)]

    def write(self, columns: Sequence[pa.Array], closed: int, now: int) -> None:
        """Writes what has changed, the new rows with these columns; removes what the clock has passed."""
        state, ranges = self._state, list[tuple[bytes, bytes]]()
        for row_key in state.places(state.forgotten + 1, self._layout.gone(closed)):
            end, start, kb = state.indexed(row_key)
            if (kb, (start, end)) not in self._known:
                self._deletes.append(row_key)
                ranges.append((window_key(state.entries + kb, start), window_key(state.entries + kb, end + 1)))
        rows = self._codec.encode_columns(columns, len(self._names)).to_pylist()
        puts = [*self._puts, *zip(self._names, rows, strict=True)]
        written = {key for key, _ in puts}
        state.stream_time, state.closed = now, max(state.closed, closed)
        state.forgotten = max(state.forgotten, self._layout.gone(closed) - 1)
        state.write(puts, [key for key in self._deletes if key not in written], ranges)

    def groups(self) -> list[bytes]:
        """The groups that have rows."""
        return sorted({self._state.indexed(row_key)[2] for row_key in self._state.places(0, None)})

    def of(self, kb: bytes) -> tuple[list[Name], list[bytes]]:
        """All rows of a group, by time."""
        found = self._scanned(kb, 0, _LAST)
        return [name for name, _ in found], [row for _, row in found]

    def _near(self, kb: bytes, time: int, forward: bool) -> list[tuple[Name, bytes]]:
        """The rows beside a time, one after the other, as long as one may have to do with it."""
        first, end = (time + 1, _LAST) if forward else (0, time)
        found: list[tuple[Name, bytes]] = []
        last = time
        for one in self._each(kb, first, end, not forward):
            (at, _), _ = one
            if not self._layout.goes_on(time, last, at):
                break
            found.append(one)
            last = at
        return found

    def _scanned(self, kb: bytes, first: int, end: int) -> list[tuple[Name, bytes]]:
        return list(self._each(kb, first, end, False))

    def _each(self, kb: bytes, first: int, end: int, reverse: bool) -> Iterator[tuple[Name, bytes]]:
        prefix = self._state.entries + kb
        for key, row in self.kv.scan(window_key(prefix, first), window_key(prefix, end), reverse=reverse):
            at = len(prefix)
            yield (_NUMBER.unpack_from(key, at)[0], key[at + _NUMBER.size :]), row

    def _row(self, kb: bytes, name: Name) -> bytes:
        return window_key(self._state.entries + kb, name[0]) + name[1]
