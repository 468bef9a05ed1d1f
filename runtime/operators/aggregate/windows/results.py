"""The results of windows that a loop has found, as columns, and in the result table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.groups.derived import Derivations
from vsc.runtime.operators.aggregate.groups.state import Windows
from vsc.runtime.operators.columns.evaluation import Computed, Failed
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import LAST, Moments
from vsc.runtime.operators.columns.rows import columns_of, there
from vsc.runtime.operators.columns.segments import numbered
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import arrow_type

__all__ = ["Named", "Sent", "WindowResults", "names_of"]

Sent = tuple[int, int, int, Any]
"""A change: the record that made it, the start of its window, its time; and the result, its state if it is computed
later, or why there is none."""

_MILLISECOND = 1000
_TIMESTAMP = 1 << 63
_BOUNDS = 16
_AFTER = 2**63 - 1
"""The first level of a moment after the batch."""


@dataclass(frozen=True, slots=True)
class Named:
    """Windows by the numbers of their keys, and with their key columns."""

    number: Int64s
    keys: tuple[pa.Array, ...]


class WindowResults:
    """The results of a windowed aggregate in one batch."""

    def __init__(self, site: Site) -> None:
        self._site = site
        key = site.node.schema.key
        self._columns, self._bound = key[:-2], arrow_type(key[-1].type)
        self._codec = KeyCodec([c.type for c in self._columns])

    def decode(self, kb: bytes) -> Row:
        """A group's key."""
        return self._codec.decode(kb)

    def flow(
        self, at: Moments, names: Named, time: Int64s, values: Sequence[Any], derived: Derivations | None
    ) -> tuple[Flow, Failed]:
        """The changes of these windows at moments, and which of them cannot be computed.

        `values` are the results or why there is none, None where a window is taken back; those of `derived` are states,
        negative where one is taken back.
        """
        new: Computed
        if derived is not None:
            states = np.array(values, dtype=np.int64)
            new, present = derived.results(names.keys, time, states), states >= 0
        else:
            new, present = self._computed(values), there(values)
        present[list(new.failed)] = False
        return Flow(at, names.number, self._site.space, time, present, names.keys, new.columns), new.failed

    def of_records(self, flow: Flow, record: Int64s, start: Int64s, end: Int64s) -> Named:
        """Windows of the groups of records of `flow`."""
        key = flow.key[record]
        number, firsts = numbered(numbered(key, start)[0], end)
        kbs = [flow.space.keys[one] for one in key[firsts].tolist()]
        encoded = self._site.space.encoded(names_of(kbs, start[firsts], end[firsts]))
        return Named(encoded[number], self.bounded(taken(flow.keys, record), start, end))

    def of_groups(self, flow: Flow, windows: Windows, end: Int64s) -> Named:
        """Windows of any groups."""
        number = self._site.space.encoded(names_of(windows.kb, windows.start, end))
        return Named(number, self.bounded(self.group_keys(flow, windows.kb), windows.start, end))

    def kept(self, flow: Flow, record: Int64s, failed: Failed) -> Mask:
        """Which results are left, given the records of `flow` that gave them. The records of those that have `failed`
        stay in their windows (D34)."""
        kept = np.ones(len(record), dtype=np.bool_)
        if failed:
            rows = np.array(list(failed), dtype=np.int64)
            kept[rows] = False
            self._site.kept(flow.take(record[rows]), dict(enumerate(failed.values())))
        return kept

    def _computed(self, results: Sequence[Row | NodeFailure | None]) -> Computed:
        """The value columns of results, null where there is none."""
        failed = {row: result for row, result in enumerate(results) if isinstance(result, NodeFailure)}
        rows: Any = [None if isinstance(result, NodeFailure) else result for result in results] if failed else results
        return Computed(columns_of(rows, self._site.node.schema.value), failed)

    def removed(self, flow: Flow, keys: Int64s, record: Int64s, stored: Mask) -> None:
        """Silently removes windows from the result table, each after the results of its record of `flow`; by the clock
        of the input after the batch, as no node sees them any more.

        Call it before the results are stored. `keys` are the windows' by number; `stored`: those from before the batch.
        """
        table = self._site.table
        if not len(keys) or table is None:
            return
        if self._site.batch.clock is None:
            at = self._site.give(flow.at.take(record), np.full(len(record), LAST))
        else:
            at = Moments((np.full(len(keys), _AFTER, dtype=np.int64),))
        table.forget(keys, at, stored)

    def bounded(self, keys: Sequence[pa.Array], start: Int64s, end: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of windows: their groups' key columns, and their bounds."""
        return (*keys, *(pa.array(bound * _MILLISECOND).view(self._bound) for bound in (start, end)))

    def group_keys(self, flow: Flow, kbs: Sequence[bytes]) -> tuple[pa.Array, ...]:
        """The key columns of groups: from a record of the group, or decoded if the batch has none."""
        keys = flow.space.keys
        place = {keys[number]: row for row, number in enumerate(flow.key.tolist())}
        columns = flow.keys
        if decoded := [kb for kb in dict.fromkeys(kbs) if kb not in place]:
            place.update((kb, len(flow) + number) for number, kb in enumerate(decoded))
            columns = stacked(columns, self._codec.decode_columns(decoded))
        return taken(columns, _numbers([place[kb] for kb in kbs]))


def _numbers(values: Sequence[int]) -> Int64s:
    return np.array(values, dtype=np.int64)


def names_of(kbs: Sequence[bytes], start: Int64s, end: Int64s) -> list[bytes]:
    """The encoded keys of windows: their groups', and their bounds as a KeyCodec encodes timestamps."""
    bounds = np.stack([start, end], axis=1) * _MILLISECOND
    packed = (bounds.astype(np.uint64) + np.uint64(_TIMESTAMP)).astype(">u8").tobytes()
    return [kb + packed[at : at + _BOUNDS] for kb, at in zip(kbs, range(0, len(packed), _BOUNDS), strict=True)]
