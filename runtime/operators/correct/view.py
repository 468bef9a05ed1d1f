"""The state of a corrected join as its users see it: the records that are kept, with what was sent last of each."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Column, Correct, Node, Plan
from vsc.runtime.operators.correct.layout import kept_columns
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, clock
from vsc.runtime.state.corrected import MOVING, Corrected
from vsc.runtime.state.joined import unpacked
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec

__all__ = ["CORRECTED"]


class _View:
    """`due`: the stream time from which on a record is kept no longer."""

    held = 0

    def __init__(self, node: Node, operation: Correct, info: StoreInfo, kv: OrderedKV) -> None:
        self._state, self._operation = Corrected(kv, info.prefix), operation
        self._keys, self._rows = KeyCodec([c.type for c in info.key]), RowCodec([c.type for c in info.value])
        self.stream_time = clock(self._state.stream_time)

    def rows(self) -> int:
        """How many records are kept."""
        return sum(1 for _ in self.answer(Question()))

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested ones, by key and time."""
        after = self._operation.within + 1
        found = []
        for place, value in self._state.scan():
            if question.wants(place.key):
                _, times, rows = unpacked([value])
                every = zip(times.tolist(), rows.to_pylist(), strict=True)
                found += [(place.key, time, row) for time, row in every if time >= self._state.floor]
        for key, time, row in sorted(found, key=lambda one: one[:2]):
            yield Entry(Status.ROW, key, self._keys.decode(key), self._rows.decode(row), (time, time + after))


def _contents(plan: Plan, node: Node, operation: Correct) -> Contents:
    left = plan.node(node.inputs[0])
    return Contents(("timestamp", "due"), left.schema.key, kept_columns(operation, left.schema), left.name)


def _encoded(plan: Plan, node: Node, operation: Correct) -> tuple[Column, ...]:
    return kept_columns(operation, plan.node(node.inputs[0]).schema)


CORRECTED = SideStore(b"", _contents, _View, lambda _: MOVING, _encoded)
"""What a corrected join keeps."""
