"""The results of windows that a loop has found, as columns, and in the result table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.groups.derived import Derivations, Derived
from vsc.runtime.operators.columns.evaluation import Computed, Failed
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import LAST, Moments, turns
from vsc.runtime.operators.columns.rows import columns_of, there
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import arrow_type

__all__ = ["Result", "Sent", "WindowResults", "names_of"]

Result = Row | Derived | NodeFailure
"""The result of a window; the group, if it is computed after the loop; or why there is none."""

Sent = tuple[int, bytes, int, int, Result | None, bool, int]
"""A change: the record that made it, the group's encoded key, the bounds, the new row, whether it replaces the row that
the result table has of the window, if any, the event time."""

_MILLISECOND = 1000
_TIMESTAMP = 1 << 63
_BOUNDS = 16
_AFTER = 2**63 - 1
"""The first level of a moment after the batch."""


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
        self, flow: Flow, sent: Sequence[Sent], derived: Derivations | None, at: Moments | None = None
    ) -> tuple[Flow, Failed]:
        """The changes that were sent for the records of `flow`, and which of them cannot be computed.

        `at`: when they come, if not with the records.
        """
        fields: Any = zip(*sent, strict=True) if sent else [()] * 7
        records, kbs, starts, ends, news, _, times = fields
        record, start, end = _numbers(records), _numbers(starts), _numbers(ends)
        keys = self.bounded(self.group_keys(flow, kbs), start, end)
        new = self._computed(news, keys, derived)
        site, present = self._site, there(news)
        present[list(new.failed)] = False
        at = site.give(flow.at.take(record), turns(record)) if at is None else at
        key = site.space.encoded(names_of(kbs, start, end))
        return Flow(at, key, site.space, _numbers(times), present, keys, new.columns), new.failed

    def kept(self, flow: Flow, record: Int64s, failed: Failed) -> Mask:
        """Which results are left, given the records of `flow` that gave them. The records of those that have `failed`
        stay in their windows (D34)."""
        kept = np.ones(len(record), dtype=np.bool_)
        if failed:
            rows = np.array(list(failed), dtype=np.int64)
            kept[rows] = False
            self._site.kept(flow.take(record[rows]), dict(enumerate(failed.values())))
        return kept

    def _computed(
        self, results: Sequence[Result | None], keys: Sequence[pa.Array], derived: Derivations | None
    ) -> Computed:
        """The value columns of results, null where there is none."""
        if derived is not None:
            groups: Any = results
            return derived.results(keys, groups)
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
