"""A view of sliding windows and sessions over a table: each with its present result, computed from its rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vsc.plan.nodes import Aggregate, Node
from vsc.runtime.operators.aggregate.functions.calls import Calls, Group
from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.groups.folding import arguments_of
from vsc.runtime.operators.aggregate.windows.kept_rows import KeptRows
from vsc.runtime.operators.aggregate.windows.layouts import Bounds, layout_of
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Entry, clock
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_memory import MemoryKV

__all__ = ["RowsView"]

_BOUNDS = 2
_MILLISECOND = 1000


class RowsView:
    """The windows of one aggregate. `timestamp` is the time of a window's result, `rows` the number of its rows."""

    held = 0

    def __init__(self, node: Node, operation: Aggregate, info: StoreInfo, kv: OrderedKV) -> None:
        assert operation.window is not None
        self._rows, self._layout = KeptRows(kv, info.prefix, operation), layout_of(operation.window)
        self._arguments = arguments_of(node, operation)
        self._calls = Calls(node, replace(operation, over="stream"))
        self._whole = KeyCodec([c.type for c in info.key])
        self._group = KeyCodec([c.type for c in info.key[:-_BOUNDS]])

    @property
    def stream_time(self) -> int | None:
        """The clock of its windows."""
        return clock(self._rows.stream_time)

    def rows(self) -> int:
        """How many rows the windows are computed from."""
        return sum(len(self._rows.of(kb)[0]) for kb in self._rows.groups())

    def answer(self, question: Question) -> Iterator[Entry]:
        """The windows, by key and then by the window's start."""
        found = False
        for kb in self._rows.groups():
            for entry in self._entries(kb):
                if question.wants(entry.encoded):
                    found = True
                    yield entry
        if question.key is not None and not found:
            yield Entry(Status.NO_RECORD, question.key, self._whole.decode(question.key), None, (None, None))

    def _entries(self, kb: bytes) -> Iterator[Entry]:
        names, rows = self._rows.of(kb)
        times = [at for at, _ in names]
        computed = self._arguments.rows(self._rows.decoded(rows), np.array(times, dtype=np.int64))
        args = self._calls.rows(computed.columns, len(times))
        for window in self._layout.every(times):
            low, high = bisect_left(times, window[0]), bisect_right(times, window[1])
            group, entries = self._calls.empty(), MemoryKV()
            for place in range(low, high):
                self._calls.add(group, args[place], At(times[place], place, b""), entries, b"")
            group.time = times[high - 1]
            result = self._result_of(group, self._key(kb, window), entries)
            yield self._entry(kb, window, result, group.time, high - low)

    def _key(self, kb: bytes, window: Bounds) -> Row:
        return (*self._group.decode(kb), *(bound * _MILLISECOND for bound in window))

    def _result_of(self, group: Group, key: Row, entries: OrderedKV) -> Row | None:
        try:
            return self._calls.result(group, key, entries, b"")
        except NodeFailure:
            return None

    def _entry(self, kb: bytes, window: Bounds, row: Row | None, time: int, count: int) -> Entry:
        key = self._key(kb, window)
        status = Status.CLOSED if self._layout.closed(window, self._rows.closed) else Status.OPEN
        return Entry(Status.FAILED if row is None else status, self._whole.encode(key), key, row, (time, count))
