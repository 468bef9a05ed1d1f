"""`distinct`: a stream without repeats.

A record passes if its key has no passed record less than `within` away in event time, before or after; records are
decided in the order of processing. A record more than `within` + `grace` behind stream time is `expired` and does not
pass. A repeated record is a `duplicate`. Both are counted.

To keep every decision exact, a time is remembered as long as a record less than `within` away could still pass: until
stream time is 2 x `within` + `grace` beyond it. A loop goes through the records; the times of a key are read once and
written once a batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vsc.plan.nodes import Column, Node, Plan
from vsc.plan.operations import Distinct
from vsc.runtime.metrics import GRACE_NEEDED, Dropped
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, clock
from vsc.runtime.records import Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.passed import MOVING, PassedTimes

__all__ = ["OPERATOR"]


class _Distinct(Step):
    def __init__(self, site: Site, operation: Distinct) -> None:
        self._site, self._operation = site, operation
        self._store = PassedTimes(site.kv, site.prefix)
        self._changed: dict[bytes, list[int]] = {}
        self._added: list[tuple[int, bytes]] = []
        self._clock = self._store.stream_time

    def process(self, flow: Flow) -> Flow:
        operation, site = self._operation, self._site
        timing = site.timing(flow, self._clock)
        behind = timing.clock - operation.within - flow.time
        late = behind > operation.grace
        if late.any():
            site.peak(GRACE_NEEDED, int(behind[late].max()))
        late |= flow.time < self._oldest()
        self._clock = timing.kept
        passed = self._passed(flow, late)
        site.lose(Dropped.EXPIRED, flow, late)
        site.lose(Dropped.DUPLICATE, flow, ~late & ~passed)
        flow = flow.select(passed)
        if not operation.rekeyed:
            return flow
        names = [c.name for c in (*site.inputs[0].key, *site.inputs[0].value)]
        keys, values = (
            tuple(flow.columns[names.index(column.name)] for column in part)
            for part in (site.node.schema.key, site.node.schema.value)
        )
        return replace(flow, key=site.space.columns(keys, len(flow)), space=site.space, keys=keys, values=values)

    def _oldest(self) -> int:
        """The oldest time that may pass: older records would be compared with times forgotten under a shorter grace."""
        return self._store.floor + self._operation.within - 1 if self._store.floor else 0

    def commit(self) -> None:
        if self._changed or self._clock != self._store.stream_time:
            self._store.write(self._changed, self._added, self._clock, self._clock - _kept(self._operation) + 1)

    def _passed(self, flow: Flow, late: Mask) -> Mask:
        within, keys, changed, added = self._operation.within, flow.space.keys, self._changed, self._added
        numbers = np.unique(flow.key[~late]).tolist()
        times = dict(zip(numbers, self._store.get_many([keys[number] for number in numbers]), strict=True))
        passed = np.zeros(len(flow), dtype=np.bool_)
        rows = np.flatnonzero(~late)
        for row, number, time in zip(rows.tolist(), flow.key[rows].tolist(), flow.time[rows].tolist(), strict=True):
            before = times[number]
            place = bisect_left(before, time)
            if place and time - before[place - 1] < within:
                continue
            if place < len(before) and before[place] - time < within:
                continue
            before.insert(place, time)
            changed[keys[number]] = before
            added.append((time, keys[number]))
            passed[row] = True
        return passed


def _kept(operation: Distinct) -> int:
    """How long a time is remembered, in ms."""
    return 2 * operation.within + operation.grace


class _View:
    """The records that have passed; `due`: the stream time after which one is forgotten."""

    held = 0

    def __init__(self, node: Node, operation: Distinct, info: StoreInfo, kv: OrderedKV) -> None:
        self._store, self._kept = PassedTimes(kv, info.prefix), _kept(operation)
        self._keys = KeyCodec([c.type for c in info.key])

    @property
    def stream_time(self) -> int | None:
        return clock(self._store.stream_time)

    def rows(self) -> int:
        return sum(len(times) for _, times in self._store.scan())

    def answer(self, question: Question) -> Iterator[Entry]:
        for key, times in self._store.scan():
            if question.wants(key):
                row = self._keys.decode(key)
                yield from (Entry(Status.ROW, key, row, (), (time, time + self._kept)) for time in times)


def _contents(plan: Plan, node: Node, operation: Distinct) -> Contents:
    before = plan.node(node.inputs[0])
    return Contents(("timestamp", "due"), before.schema.key, (), before.name)


def _encoded(plan: Plan, node: Node, operation: Distinct) -> tuple[Column, ...]:
    return ()


OPERATOR = Operator(_Distinct, side_store=SideStore(b"", _contents, _View, lambda _: MOVING, _encoded))
