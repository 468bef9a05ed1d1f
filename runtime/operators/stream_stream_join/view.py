"""The state of a join of streams as its users see it: the records that can be found, then those that wait."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Column, Node, Plan, StreamStreamJoin
from vsc.runtime.operators.stream_stream_join.sides import bucket_width, kept_columns
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, clock
from vsc.runtime.state.joined import MOVING, Joined, RecordKey, unpacked
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec

__all__ = ["RECORDS"]


class _View:
    """`due`: the stream time at which a record is found no more, or comes out without a partner."""

    def __init__(self, node: Node, operation: StreamStreamJoin, info: StoreInfo, kv: OrderedKV) -> None:
        self._state, self._operation = Joined(kv, info.prefix, bucket_width(operation)), operation
        self._keys, self._rows = KeyCodec([c.type for c in info.key]), RowCodec([c.type for c in info.value])
        self.stream_time, self.held = clock(self._state.stream_time), self._state.waiting

    def rows(self) -> int:
        """How many records can be found, and how many wait."""
        return sum(1 for _ in self.answer(Question()))

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested ones: by side, time and key."""
        operation, state = self._operation, self._state
        for place, value in state.scan():
            if question.wants(place.key):
                for time, row in _records(value):
                    if time >= state.floor[place.side]:
                        yield self._entry(Status.ROW, place, row, time, time + operation.span + 1)
        for place, value in state.scan_waiting():
            if question.wants(place.key):
                late = operation.ahead[place.side] + operation.grace + 1
                for time, row in _records(value):
                    yield self._entry(Status.WAITING, place, row, time, time + late)

    def _entry(self, status: Status, place: RecordKey, row: bytes, time: int, due: int) -> Entry:
        return Entry(status, place.key, self._keys.decode(place.key), self._rows.decode(row), (time, due, place.side))


def _records(value: bytes) -> Iterator[tuple[int, bytes]]:
    _, times, rows = unpacked([value])
    yield from zip(times.tolist(), rows.to_pylist(), strict=True)


def _contents(plan: Plan, node: Node, operation: StreamStreamJoin) -> Contents:
    return Contents(("timestamp", "due", "right"), node.schema.key, _encoded(plan, node, operation), node.inputs[0])


def _encoded(plan: Plan, node: Node, operation: StreamStreamJoin) -> tuple[Column, ...]:
    left, right = (plan.node(name).schema for name in node.inputs)
    return kept_columns(left, right)


def _due(node: Node, operation: StreamStreamJoin, kv: OrderedKV, prefix: bytes) -> int | None:
    state = Joined(kv, prefix, bucket_width(operation))
    first = (state.first_waiting(side) for side in (0, 1))
    after = [ahead + operation.grace + 1 for ahead in operation.ahead]
    return min((time + wait for time, wait in zip(first, after, strict=True) if time is not None), default=None)


RECORDS = SideStore(b"", _contents, _View, lambda _: MOVING, _encoded, _due)
"""What a join of streams keeps."""
