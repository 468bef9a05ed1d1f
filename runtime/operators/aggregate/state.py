"""What an aggregate keeps in its stage's key-value store, beside its result table.

Layout, format version 1 (root: the length of the prefix as two bytes, big endian, and the prefix; times in keys are
eight bytes, big endian, so that they sort)::

    root "m"                      "VSTA", u16 format version, u16 zero, then i64 (little endian): stream time, arrivals,
                                  closed up to, highest window start, open windows
    root "g" group                a group's row: its result's time, its rows, the cells of its calls (`RowCodec`)
    root "e" group u16 call ...   what an accumulator keeps beside its cells (`entries`)
    root "t" time ...             the windows by time (`windows`)

A group is its encoded key, in a windowed aggregate followed by the window's start. Everything that one record changes
is written at once by `commit`, or forgotten by `discard`. The state is complete: it knows nothing of the result table,
which may be versioned and refuse or forget results (D18).
"""

from __future__ import annotations

import struct
from typing import Final

from vsc.runtime.errors import StateError
from vsc.runtime.operators.aggregate.entries import At
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["FORMAT_VERSION", "AggregateState"]

FORMAT_VERSION: Final = 1

_MAGIC: Final = b"VSTA"
_META: Final = struct.Struct("<4sHHqqqqq")


class AggregateState:
    """The groups of one aggregate, its clock and its counters. `numbered`: rows are told apart by their arrival.

    `stream_time` is the highest time so far (-1 at first), `arrivals` how many rows were numbered, `closed` up to
    where windows are closed (-1: none), `highest` the highest window start that was ever written, `open` how many
    windows are not closed.
    """

    __slots__ = (
        "_kept",
        "_meta",
        "_numbered",
        "arrivals",
        "closed",
        "entries",
        "groups",
        "highest",
        "kv",
        "open",
        "stream_time",
        "times",
    )

    def __init__(self, kv: OrderedKV, prefix: bytes, numbered: bool) -> None:
        """Open what `kv` has under `prefix`; StateError when what lies there is something else."""
        root = store_root(prefix)
        self.kv = OverlayKV(kv)
        self._numbered = numbered
        self._meta = root + b"m"
        self.groups, self.entries, self.times = root + b"g", root + b"e", root + b"t"
        self._kept = _read_meta(kv.get(self._meta))
        self._reset()

    def get(self, group: bytes) -> bytes | None:
        """A group's row, or None."""
        return self.kv.get(self.groups + group)

    def put(self, group: bytes, data: bytes) -> None:
        """Writes a group's row."""
        self.kv.write([(self.groups + group, data)])

    def remove(self, group: bytes, entries: bool) -> None:
        """Removes a group's row, and with `entries` what its accumulators keep beside it."""
        self.kv.write((), [self.groups + group])
        if entries:
            self.clear(self.entries + group)

    def clear(self, prefix: bytes) -> None:
        """Removes all rows that begin with `prefix`."""
        end = prefix_end(prefix)
        assert end is not None
        self.kv.write((), (), [(prefix, end)])

    def rows(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """All rows that begin with `prefix`."""
        return list(self.kv.scan(prefix, prefix_end(prefix)))

    def arrive(self, time: int, ident: bytes = b"") -> At:
        """The place of the next row."""
        self.arrivals += self._numbered
        return At(time, self.arrivals, ident)

    def commit(self) -> None:
        """Writes what has changed, all at once."""
        now = (self.stream_time, self.arrivals, self.closed, self.highest, self.open)
        if now != self._kept:
            self.kv.write([(self._meta, _META.pack(_MAGIC, FORMAT_VERSION, 0, *now))])
            self._kept = now
        self.kv.commit()

    def discard(self) -> None:
        """Forgets what has changed since the last commit."""
        self.kv.discard()
        self._reset()

    def _reset(self) -> None:
        self.stream_time, self.arrivals, self.closed, self.highest, self.open = self._kept


def _read_meta(data: bytes | None) -> tuple[int, int, int, int, int]:
    if data is None:
        return -1, 0, -1, -1, 0
    if len(data) != _META.size or data[:4] != _MAGIC or struct.unpack_from("<H", data, 4)[0] != FORMAT_VERSION:
        raise StateError(
            f"what lies here is not the state of an aggregate in format version {FORMAT_VERSION}, or it is damaged",
            "use the version of vsc that wrote it, or build the state anew",
        )
    _, _, _, time, arrivals, closed, highest, count = _META.unpack(data)
    return time, arrivals, closed, highest, count
