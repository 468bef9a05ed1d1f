"""`suppress` (KIP-328): holds a table's changes back, so only the last of several comes out.

``window_closes``: a row is held until stream time is `wait` past its window's end, then sent once; tombstones are not
sent (the rows that they take back were not sent either). ``time_limit``: a key's newest row is held for `wait` from the
first change on. After each change all due rows come out, in the order of (time, encoded key), each with the event time
of its last change. The old row sent with it is the one that was sent before (D17).

Array expressions (`spans`), with bounds a loop (`bounded`), find which change of a key is held and when it comes out.
What is held at the end of a batch is written once per key; rows that come and go within a batch never reach the
buffer's rows. Look-ups into the table are answered as if the held changes had not happened yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Suppress
from vsc.runtime.metrics import HELD_RECORDS
from vsc.runtime.operators.clock import Timing, by_records
from vsc.runtime.operators.columns.flow import Flow, Old, stacked, taken
from vsc.runtime.operators.columns.moments import Moments, arrivals
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.suppress.bounded import Buffer
from vsc.runtime.operators.suppress.held import SUFFIX, Hidden
from vsc.runtime.operators.suppress.spans import Spans
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.tables.search import latest_before
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.suppressed import FAR, Suppressed, SuppressedRow

__all__ = ["Holding"]

_MILLISECOND = 1000


class Holding(Step):
    """What one `suppress` holds, in one batch."""

    def __init__(self, site: Site, operation: Suppress) -> None:
        self._site, self._operation, self._wait = site, operation, operation.wait
        self._windows = operation.until == "window_closes"
        self._held, self._space = Suppressed(site.kv, site.prefix + SUFFIX), site.space
        self._rows = RowCodec([c.type for c in site.node.schema.value])
        self._stored: list[SuppressedRow] = []
        self._flow = Flow.empty(site.node.schema, self._space)
        self._spans = _spans_of(np.zeros(0, dtype=np.int64), [], np.zeros(0, dtype=np.int64))
        self._never, self._out = 0, (np.zeros(0, dtype=np.int64), self._flow.at)

    def process(self, flow: Flow) -> Flow:
        """The changes that come out at the changes of its input, at each in the order of (place, encoded key)."""
        held = self._held
        timing = self._site.timing(flow, held.stream_time)
        keys = [self._space.keys[number] for number in np.unique(flow.key).tolist()]
        stored = {row.key: row for row in held.get_many(keys) if row is not None}
        held.skip(held.stream_time - self._wait)
        self._flow, places = flow, flow.time
        if self._windows and len(flow):
            places = flow.keys[-1].view(pa.int64()).to_numpy() // _MILLISECOND
        if self._operation.max_records is None and self._operation.max_bytes is None:
            stored.update((row.key, row) for row in held.until(timing.now - self._wait))
            self._stored = list(stored.values())
            before = np.array([row.place for row in self._stored], dtype=np.int64)
            self._spans = Spans.of(flow.key, places, timing, self._wait, self._space.encoded(stored), before)
        else:
            self._spans = self._bounded(places, timing, stored.values())
        self._never = timing.never
        self._account(timing)
        self._keep(timing.kept)
        return self._sent(timing)

    def waiting(self) -> list[tuple[int, SuppressedRow]]:
        """Takes out all held rows, each with its place in time; moves the clock to where all are due."""
        stored = self._held.all()
        if stored:
            self._held.replace(stored, [], max(self._held.stream_time, stored[-1].place + self._wait))
        return [(row.place, row) for row in stored]

    def release(self, waiting: Sequence[tuple[int, SuppressedRow]], at: Moments) -> Flow:
        """The held rows, each at its moment."""
        self._stored = [row for _, row in waiting]
        number = self._space.encoded([row.key for row in self._stored])
        every = np.arange(len(number), dtype=np.int64)
        self._spans = _spans_of(number, self._stored, every)
        self._flow, self._never = replace(self._flow, at=at), len(at)
        return self._sent(by_records(self._site.routes, self._site.node.name, at, every, -1))

    # ---------------------------------------------------------------------------------------------- what becomes of it

    def _bounded(self, places: Int64s, timing: Timing, stored: Iterable[SuppressedRow]) -> Spans:
        """The spans, as the bounds have it."""
        flow, space = self._flow, self._space
        buffer = Buffer(self._site.name, self._operation, self._held, stored, timing)
        keys = map(space.keys.__getitem__, flow.key.tolist())
        sizes = self._sizes(flow.values, flow.present)
        befores = [0] * len(flow) if flow.old is None else self._sizes(flow.old.values, flow.old.present)
        changes = zip(places.tolist(), keys, sizes, befores, strict=True)
        for event, change in enumerate(changes):
            buffer.change(event, *change)
        buffer.end()
        self._stored = buffer.rows
        return buffer.spans(space)

    def _sizes(self, columns: Sequence[pa.Array], present: Mask) -> list[int]:
        """The lengths of encoded rows, 0 without a row."""
        lengths = pc.binary_length(self._rows.encode_columns(columns, len(present))).to_numpy()
        sizes: list[int] = np.where(present, lengths, 0).tolist()
        return sizes

    def _account(self, timing: Timing) -> None:
        """Notes in the metrics how many keys are held at each change, before any comes out there."""
        spans, changes = self._spans, len(self._flow)
        if changes:
            came = np.bincount(spans.first[spans.first >= 0], minlength=changes)
            out = spans.end < self._never
            gone = timing.seen(spans.end[out], spans.place[out] + self._wait)
            left = np.bincount(gone, minlength=changes + 1)[:changes]
            most = self._held.count + int(np.cumsum(came - left).max())
            self._site.peak(HELD_RECORDS, most)

    def _keep(self, now: int) -> None:
        """Writes the rows held from now on."""
        spans = self._spans
        if not len(spans.end) and now == self._held.stream_time:
            return
        stays = spans.end >= self._never
        changed = np.flatnonzero(stays & (spans.last >= 0))
        kept = self._kept(changed, spans.last[changed])
        same = (stays & (spans.last < 0)).tolist()
        gone = [row for row, stayed in zip(self._stored, same, strict=False) if not stayed]
        self._held.replace(gone, kept, now)

    def _kept(self, changed: Int64s, last: Int64s) -> list[SuppressedRow]:
        """The held rows of the spans that have `changed`, each with its last change."""
        spans, flow, stored = self._spans, self._flow, self._stored
        new = self._encoded(flow.values, flow.present, last)
        fresh = changed >= len(stored)
        before = [row.before for row in map(stored.__getitem__, changed[~fresh].tolist())]
        if flow.old is None:
            before += [None] * int(np.count_nonzero(fresh))
        else:
            before += self._encoded(flow.old.values, flow.old.present, spans.first[changed[fresh]])
        keys = map(self._space.keys.__getitem__, spans.key[changed].tolist())
        return list(map(SuppressedRow, spans.place[changed].tolist(), keys, new, before, flow.time[last].tolist()))

    def _encoded(self, columns: Sequence[pa.Array], present: Mask, at: Int64s) -> list[bytes | None]:
        found: list[bytes | None] = self._rows.encode_columns(taken(columns, at), len(at)).to_pylist()
        for place in np.flatnonzero(~present[at]).tolist():
            found[place] = None
        return found

    # --------------------------------------------------------------------------------------------------- what comes out

    def _sent(self, timing: Timing) -> Flow:
        spans, stored = self._spans, self._stored
        new, timestamp = self._newest()
        span, at = self._released(timing)
        if self._windows:
            there = new[span] >= 0
            span, at = span[there], at.take(there)
        new = new[span]
        rows = Pool(self._rows, pa.array([row.row for row in stored], pa.binary()), self._flow.values)
        sent = Flow(
            at, spans.key[span], self._space, timestamp[span], new >= 0, self._keys(span), rows.take(new)
        )  # fmt: skip
        if not self._site.owes_old:
            return self._site.stored(sent)
        before = self._before(len(stored))[span]
        rows_before = self._known([row.before for row in stored]).take(before)
        return replace(sent, old=Old(before >= 0, sent.time, rows_before))  # its time is kept by stores alone

    def _released(self, timing: Timing) -> tuple[Int64s, Moments]:
        """The spans that end in the batch, in the order in which they come out, and when."""
        spans = self._spans
        span = np.flatnonzero(spans.end < self._never)
        keys = [self._space.keys[number] for number in spans.key[span].tolist()]
        order, at = timing.sent(spans.end[span], spans.place[span] + self._wait, keys)
        self._out = span[order], at
        return self._out

    def _newest(self) -> tuple[Int64s, Int64s]:
        """For each span the place and time of its last row (-1: none), in the stored rows, then in the batch."""
        spans, flow, stored = self._spans, self._flow, self._stored
        last, none = spans.last, [-1] * (len(spans.last) - len(stored))
        known = np.array([-1 if row.row is None else i for i, row in enumerate(stored)] + none, dtype=np.int64)
        times = np.array([row.timestamp for row in stored] + none, dtype=np.int64)
        changed = np.flatnonzero(last >= 0)
        known[changed] = np.where(flow.present[last[changed]], len(stored) + last[changed], -1)
        times[changed] = flow.time[last[changed]]
        return known, times

    def _before(self, known: int) -> Int64s:
        """For each span the place of the row before it (-1: none), in the `known` rows, then the batch's old rows."""
        spans, flow, stored = self._spans, self._flow, self._stored
        fresh = spans.first[len(stored) :]
        own = np.full(len(fresh), -1, dtype=np.int64)
        if flow.old is not None:
            own = np.where(flow.old.present[fresh], known + fresh, -1)
        return np.array([-1 if row.before is None else i for i, row in enumerate(stored)] + own.tolist(), np.int64)

    def _known(self, before: Sequence[bytes | None]) -> Pool:
        old = self._flow.old
        return Pool(self._rows, pa.array(before, pa.binary()), None if old is None else old.values)

    def _keys(self, span: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of spans: from a change, or decoded for a span without a change in the batch."""
        spans, flow = self._spans, self._flow
        last = spans.last[span]
        unknown = np.flatnonzero(last < 0)
        if not len(unknown):
            return taken(flow.keys, last)
        decoded = self._space.codec.decode_columns([self._space.keys[n] for n in spans.key[span[unknown]].tolist()])
        last[unknown] = len(flow.keys[0]) + np.arange(len(unknown)) if flow.keys else 0
        return taken(stacked(flow.keys, decoded), last)

    # --------------------------------------------------------------------------------------------------------- look-ups

    def hidden(self, flow: Flow) -> Hidden:
        """For which records the key is held back, and the place of the row before (-1: none)."""
        spans, asked = self._spans, np.unique(flow.key)
        asked = asked[~np.isin(asked, spans.key)]
        others = self._held.get_many([self._space.keys[number] for number in asked.tolist()])
        there = [row for row in others if row is not None]
        asked = asked[np.array([row is not None for row in others], dtype=np.bool_)]
        began, (ended, out) = np.flatnonzero(spans.first >= 0), self._out
        # a key comes out at its own turn: rows that came out before it at the same event do not see that yet
        begun = self._site.give(self._flow.at.take(spans.first[began]), np.zeros(len(began), dtype=np.int64))
        own, now = arrivals(Moments.concat([begun, out]), flow.at)
        key = np.append(spans.key, asked)
        since, until = np.full(len(key), -1, dtype=np.int64), np.full(len(key), FAR, dtype=np.int64)
        since[began], until[ended] = np.split(own, [len(began)])
        stored = len(self._stored)
        befores = [row.before for row in self._stored] + [row.before for row in there]
        beyond = [-1 if row.before is None else stored + i for i, row in enumerate(there)]
        before = np.append(self._before(len(befores)), np.array(beyond, dtype=np.int64))
        order = np.argsort(since, kind="stable")
        at = latest_before(key[order], since[order], flow.key, now)
        span = np.append(order, -1)[at]
        held = (at >= 0) & (np.append(until, -1)[span] >= now)
        return Hidden(held, np.where(held, np.append(before, -1)[span], -1), self._known(befores))


def _spans_of(key: Int64s, stored: Sequence[SuppressedRow], end: Int64s) -> Spans:
    """Spans without changes of the batch."""
    none = np.full(len(key), -1, dtype=np.int64)
    return Spans(key, np.array([row.place for row in stored], dtype=np.int64), none, none, end)
