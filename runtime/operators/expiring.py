"""The rows of a table that expire: each is removed when the clock is `after` past its time, if it is still there.

A tombstone of that time + `after` goes on, at the place of what time releases (`clock`), in the order of (time, encoded
key). A change whose own time + `after` the clock has reached when it comes is refused: the row that is there stays. The
end of the input (``--drain``) removes nothing, as nothing is held back.

When a row expires is kept as `suppress` keeps what it holds, without the rows: these are in the table's store. Rows
from before the table could forget get their places there from that store, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.views.expiring import SUFFIX
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.suppressed import Suppressed, SuppressedRow
from vsc.runtime.state.timed_rows import TimestampedStore
from vsc.runtime.values import arrow_type

__all__ = ["Expiring"]


class Expiring:
    """When the rows of one table expire, in one batch."""

    def __init__(self, site: Site, after: int) -> None:
        self._site, self._after, self._space = site, after, site.space
        self._rows = Suppressed(site.kv, site.prefix + SUFFIX)

    def applied(self, changes: Flow) -> Flow:
        """The changes that are not too late, and among them the tombstones of the rows that expire."""
        count, after = len(changes), self._after
        timing = self._site.timing(changes, self._rows.stream_time)
        late = changes.time + after <= timing.clock
        self._site.lose(Dropped.EXPIRED, changes, late, self._site.node.schema)
        own = np.flatnonzero(~late)
        kept = replace(changes.select(~late), at=timing.given(own, np.zeros(len(own), dtype=np.int64)))

        stored = self._stored(kept, timing.kept)
        numbers, place = self._space.encoded([row.key for row in stored]), _numbers(row.place for row in stored)
        first, following = _renewals(kept.key, own, numbers, count)
        event, gone = self._expired(place, first, timing)
        there = np.flatnonzero(kept.present)
        own_event, own_gone = self._expired(kept.time[there], following[there], timing, own[there])

        stays = there[~own_gone & (following[there] == count)]
        removed = [row for row, out in zip(stored, gone | (first < count), strict=True) if out]
        self._keep(kept.key[stays], kept.time[stays], removed, timing.kept)
        number = np.concatenate([numbers[gone], kept.key[there[own_gone]]])
        due = np.concatenate([place[gone], kept.time[there[own_gone]]]) + after
        if not len(due):
            return kept
        tombstones = self._tombstones(number, due, np.concatenate([event[gone], own_event[own_gone]]), timing)
        return Flow.merged([replace(kept, old=None, latest=None), tombstones])

    def _expired(self, time: Int64s, renewed: Int64s, timing: Timing, own: Int64s | None = None) -> tuple[Int64s, Mask]:
        """The events at which rows of these times expire, and which of them do so in the batch.

        `renewed`: which change takes each row's place. `own`: those that have made them.
        """
        due = time + self._after
        event = timing.passes(due, own)
        return event, (event < timing.ended) & (renewed >= timing.seen(event, due))

    def _stored(self, changes: Flow, now: int) -> list[SuppressedRow]:
        """The rows from before the batch that may go: of the changed keys, and all that are due by now."""
        rows = self._rows
        rows.skip(rows.stream_time - self._after)
        if not rows.begun:
            table = TimestampedStore(self._site.kv, self._site.prefix)
            rows.replace([], [_row(key, time) for key, _, time in table.scan()], rows.stream_time)
        keys = [self._space.keys[number] for number in np.unique(changes.key).tolist()]
        found = {row.key: row for row in rows.get_many(keys) if row is not None}
        found.update((row.key, row) for row in rows.until(now - self._after))
        return list(found.values())

    def _keep(self, key: Int64s, time: Int64s, removed: Sequence[SuppressedRow], now: int) -> None:
        """Writes which rows expire from now on."""
        if len(key) or removed or now != self._rows.stream_time:
            keys = map(self._space.keys.__getitem__, key.tolist())
            self._rows.replace(removed, list(map(_row, keys, time.tolist())), now)

    def _tombstones(self, number: Int64s, due: Int64s, event: Int64s, timing: Timing) -> Flow:
        """The tombstones of rows that expire at these events, in their order."""
        keys, schema = [self._space.keys[one] for one in number.tolist()], self._site.node.schema
        order, at = timing.sent(event, due, keys)
        count = len(order)
        columns = self._space.codec.decode_columns([keys[place] for place in order.tolist()])
        values = tuple(pa.nulls(count, arrow_type(column.type)) for column in schema.value)
        there = np.zeros(count, dtype=np.bool_)
        return Flow(at, number[order], self._space, due[order], there, columns, values)


def _row(key: bytes, time: int) -> SuppressedRow:
    return SuppressedRow(time, key, None, None, time)


def _numbers(found: Iterable[int]) -> Int64s:
    return np.fromiter(found, dtype=np.int64)


def _renewals(key: Int64s, own: Int64s, stored: Int64s, never: int) -> tuple[Int64s, Int64s]:
    """Of each stored key the first change, of each change of a `key` the next one of the same: their places in `own`
    order, `never` without one."""
    order = np.argsort(key, kind="stable")
    ordered, place = key[order], np.append(own[order], never)
    begin = np.searchsorted(ordered, stored)
    same = np.append(ordered, -1)[begin] == stored
    following = np.empty(len(key), dtype=np.int64)
    following[order] = np.where(np.append(ordered[1:], -1)[: len(key)] == ordered, place[1:], never)
    return np.where(same, place[begin], never), following
