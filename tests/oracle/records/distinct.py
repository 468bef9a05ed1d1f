"""`distinct`: a record passes if none of its key that has passed is near it in time.

"Near" is less than `within`, before or behind. A record more than `within` + `grace` behind stream time is expired.
What has passed is remembered as long as it matters: until stream time is 2 x `within` + `grace` beyond it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from vsc.plan.operations import Distinct as Operation
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.passed import PassedTimes

__all__ = ["Distinct"]


class Distinct:
    """`back` gives a record its own key and its value again, of the columns that came to the operator."""

    def __init__(
        self,
        name: str,
        operation: Operation,
        store: PassedTimes,
        back: Callable[[Row, Row | None], tuple[Row, Row | None]],
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name, self._operation, self._store = name, operation, store
        self._back, self._context, self._forward = back, context, forward

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without key is dropped (D26)."""
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        store, within, grace = self._store, self._operation.within, self._operation.grace
        clock = max(store.stream_time, time)
        (times,) = store.get_many([kb])
        added: list[tuple[int, bytes]] = []
        if clock > time + within + grace:
            self._context.dropped(self._name, Dropped.EXPIRED)
        elif any(abs(time - other) < within for other in times):
            self._context.dropped(self._name, Dropped.DUPLICATE)
        else:
            added.append((time, kb))
            own_key, own_value = self._back(key, value)
            self._forward(kb if own_key is key else b"", own_key, own_value, time)
        changed = {kb: sorted([*times, time])} if added else {}
        store.write(changed, added, clock, clock - 2 * within - grace + 1)
