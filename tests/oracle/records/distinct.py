"""`distinct`: a record passes if none of its key that has passed is near it in time.

"Near" is less than `within`, before or behind. A record more than `within` + `grace` behind stream time is expired.
What has passed is remembered as long as it matters: until stream time is 2 x `within` + `grace` beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node
from vsc.plan.operations import Distinct as Operation
from vsc.plan.types import DataType
from vsc.runtime.metrics import GRACE_NEEDED, Dropped

__all__ = ["Distinct"]


class Distinct:
    """`back` gives a record its own key and its value again, of the columns that came to the operator."""

    def __init__(
        self,
        node: Node,
        operation: Operation,
        key: Sequence[DataType],
        back: Callable[[Row, Row | None], tuple[Row, Row | None]],
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._node, self._name, self._operation = node.name, node.owner, operation
        self._back, self._context, self._forward = back, context, forward
        self._order = rows_in_order(key)
        self._passed: list[tuple[Row, int]] = []
        self._stream_time = -1

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without key is dropped (D26)."""
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        within, grace = self._operation.within, self._operation.grace
        self._stream_time = self._context.stream_time_after(self._node, self._stream_time, time)
        if self._stream_time > time + within + grace:
            self._context.dropped(self._name, Dropped.EXPIRED)
            self._context.metrics.peak(self._name, GRACE_NEEDED, self._stream_time - time - within)
        elif any(key == other and abs(time - at) < within for other, at in self._passed):
            self._context.dropped(self._name, Dropped.DUPLICATE)
        else:
            self._passed.append((key, time))
            self._forward(*self._back(key, value), time)
        kept = self._stream_time if self._context.clock is None else self._context.clock.kept(self._node)
        self._passed = [(k, at) for k, at in self._passed if kept < at + 2 * within + grace]

    def content(self) -> Content:
        """What it remembers: (key, nothing, time, the stream time at which it forgets it)."""
        kept = 2 * self._operation.within + self._operation.grace
        rows = [(key, (), time, time + kept) for key, time in sorted(self._passed, key=self._place)]
        return None if self._stream_time < 0 else self._stream_time, 0, rows

    def _place(self, passed: tuple[Row, int]) -> tuple[object, int]:
        return self._order(passed[0]), passed[1]
