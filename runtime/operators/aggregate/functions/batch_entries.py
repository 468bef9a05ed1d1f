"""The entries that a batch reads and changes, for many groups at once: counts of values, and rows by identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.collected import IDENT
from vsc.runtime.operators.aggregate.functions.states import ColumnAccumulator, EntryRanges, State, Writes
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type

__all__ = ["Counts", "GroupEntries", "OnlyEntries"]


class Counts:
    """How often groups have each of the batch's values: an entry for each value of a group has its count.

    By group and value: `group`, `value` (its place in the given `names`) and `known`, the count before the batch.
    `change` is 1 where a record makes a value appear in its group, -1 where it makes one disappear.
    """

    def __init__(
        self, ranges: EntryRanges, segments: Segments, steps: Int64s, counted: Int64s, names: Sequence[bytes],
        index: Int64s, decode: Callable[[pa.BinaryArray], Int64s],
    ) -> None:  # fmt: skip
        """`counted` are the records with a value, `index` says which, `steps` whether it is added (1) or taken back."""
        pairs, pair = np.unique(segments.group[counted] * len(names) + index, return_inverse=True)
        # (group, value) is one number, which takes both apart again. Each pair has a record, so no segment is empty.
        self.group, self.value = np.divmod(pairs, max(len(names), 1))
        groups, values = self.group.tolist(), self.value.tolist()
        self._entries = [ranges.prefixes[g] + names[v] for g, v in zip(groups, values, strict=True)]
        stored = np.flatnonzero(ranges.stored[self.group])
        found = ranges.kv.get_many([self._entries[i] for i in stored.tolist()])
        self.known = np.zeros(len(pairs), dtype=np.int64)
        self.known[stored] = decode(pa.array(found, pa.binary()))
        by_pair = Segments(pair.reshape(-1), len(pairs))
        running = by_pair.counts(steps[counted][by_pair.order], self.known)
        before = by_pair.before(running, self.known)
        self._ended = running[by_pair.ends - 1]
        # A distinct value counts once: a record matters where the count of its value leaves zero, or comes back to it.
        self.change = np.zeros(len(segments), dtype=np.int64)
        self.change[counted[by_pair.order]] = (running > 0).astype(np.int64) - (before > 0)

    def writes(self, chosen: Mask, encode: Callable[[Int64s, Int64s], Sequence[bytes]]) -> Writes:
        """The changed counts of the `chosen` groups, encoded together with their values."""
        changed = chosen[self.group] & (self._ended != self.known)
        put, gone = np.flatnonzero(changed & (self._ended > 0)), np.flatnonzero(changed & (self._ended == 0))
        data, entries = encode(self._ended[put], self.value[put]), self._entries
        return [(entries[i], row) for i, row in zip(put.tolist(), data, strict=True)], [
            entries[i] for i in gone.tolist()
        ]


class GroupEntries:
    """What a batch changes in the entries of one group, whose names begin with `prefix`.

    `added` are entries by suffix, with the number of the value (-1: none), `gone` those of the store that are removed;
    one that has come back is in both.
    """

    __slots__ = ("_idents", "_read", "_stored", "added", "gone", "prefix")

    def __init__(self, ranges: EntryRanges, group: int) -> None:
        self.prefix, self._stored = ranges.prefixes[group], ranges.kv if ranges.stored[group] else None
        self.added: dict[bytes, int] = {}
        self.gone: set[bytes] = set()
        self._idents: dict[bytes, list[bytes]] = {}
        self._read: set[bytes] = set()

    def delete(self, suffix: bytes) -> None:
        """Removes an entry."""
        if self.added.pop(suffix, None) is None:
            self.gone.add(suffix)

    def identified(self, ident: bytes, place: bytes) -> None:
        """Notes that the row `ident` is at `place`."""
        self._idents.setdefault(ident, []).append(place)
        self.added[IDENT + ident + place] = -1

    def taken(self, ident: bytes) -> bytes | None:
        """Removes the row `ident` and returns its place; None if there is none."""
        places = self._idents.setdefault(ident, [])
        if self._stored is not None and ident not in self._read:
            self._read.add(ident)
            prefix = self.prefix + IDENT + ident
            places += [row[len(prefix) :] for row, _ in self._stored.between(prefix, prefix_end(prefix))]
        if not places:
            return None
        place = min(places)
        places.remove(place)
        self.delete(IDENT + ident + place)
        return place


class OnlyEntries(ColumnAccumulator):
    """Base of the accumulators without cells: their values in `row`s of their own.

    `changed`: the entries by group; `values`: what their numbers mean.
    """

    keeps = True
    ranges: EntryRanges

    def __init__(self, of: DataType) -> None:
        self.row, self.values = RowCodec([of]), pa.array([], arrow_type(of))
        self.changed: dict[int, GroupEntries] = {}

    def load(self, cells: Sequence[pa.Array]) -> State:
        return ()

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return ()

    def writes(self, chosen: Mask) -> Writes:
        names: list[bytes] = []
        numbers: list[int] = []
        gone: list[bytes] = []
        for group, entries in self.changed.items():
            if chosen[group]:
                prefix = entries.prefix
                names += [prefix + suffix for suffix in entries.added]
                numbers += entries.added.values()
                gone += [prefix + suffix for suffix in entries.gone]
        places = pa.array(np.maximum(np.array(numbers, dtype=np.int64), 0))
        data = self.row.encode_columns([self.values.take(places)], len(names)).to_pylist()
        return [(k, v if n >= 0 else b"") for k, v, n in zip(names, data, numbers, strict=True)], gone
