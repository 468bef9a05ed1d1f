"""Stream-table join (KIP-914): a stream's record meets the row that was valid at its time, or the newest one.

Only stream records give results; the table's records only change what later look-ups find.
"""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.getters import Getter
from tests.oracle.records.tables import TableStore
from vsc.plan.nodes import Node
from vsc.plan.nodes import StreamTableJoin as Operation
from vsc.runtime.metrics import GRACE_NEEDED, RETENTION_NEEDED, Dropped, Group, Missed

__all__ = ["StreamTableJoin"]


class StreamTableJoin:
    """Joins each record at once; see `grace` for the one that waits.

    `store` is the table's own or the one behind its filters and maps: its stream time tells by how much a look-up was
    too old; None where there is no such store, and nothing is read as of a time.
    """

    __slots__ = ("_context", "_forward", "_get", "_left", "_name", "_node", "_operation", "_store", "_table", "_values")

    def __init__(
        self,
        node: Node,
        operation: Operation,
        get: Getter,
        store: TableStore | None,
        values: Values,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._node, self._name, self._table = node.name, node.owner, node.inputs[1]
        self._operation, self._left = operation, operation.left
        self._get = get
        self._store = store
        self._values = values
        self._context = context
        self._forward = forward
        if operation.as_of and store is not None and context.clock is not None:
            store.watching.append(self._version)

    def _version(self, time: int) -> None:
        """Notes a version that the table has accepted: if it is late, records that are gone may have missed it."""
        clock, join = self._context.clock, self._operation
        assert clock is not None
        own = 0 if join.strictly_before else 1
        needed = clock.ahead_of(self._node) - time + own
        passed = clock.soonest_ahead_of(self._node, self._table) - time + own if join.grace is None else needed
        if passed > (join.grace or 0) and self._name not in self._context.repeated:
            self._context.metrics.late(self._name, 1)
            self._context.metrics.peak(self._name, GRACE_NEEDED, max(needed, 1))

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if self.takes(key, value):
            assert value is not None
            self.join(key, value, time)

    def takes(self, key: Row, value: Row | None) -> bool:
        """Whether a record is joined; one without value is not (D14), and one without key only in a left join (D26)."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
        elif None in key and not self._left:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
        else:
            return True
        return False

    def join(self, key: Row, value: Row, time: int) -> None:
        """Looks up the partner and sends on the result: with the record's own key and time."""
        join = self._operation
        asked = time - 1 if join.strictly_before else time
        try:
            found = None if None in key else self._get(key, asked if join.as_of else None)
            if join.max_age is not None and isinstance(found, tuple) and time - found[1] > join.max_age:
                found = Missed.TOO_OLD
            if found is None:
                result = self._values(key + value, None, time, None)
            elif isinstance(found, Missed):
                self._missed(found, asked)
                if not join.left or (join.drop_older and found is Missed.OLDER_THAN_RETENTION):
                    return
                result = self._values(key + value, None, time, None)
            else:
                result = self._values(key + value, key + found[0], time, found[1])
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            return
        self._forward(key, result, time)

    def _missed(self, reason: Missed, time: int) -> None:
        metrics = self._context.metrics
        metrics.count(self._name, Group.MISSED_LOOKUPS, reason)
        if reason is Missed.OLDER_THAN_RETENTION and self._store is not None:
            metrics.peak(self._name, RETENTION_NEEDED, self._clock() - time)

    def _clock(self) -> int:
        """The clock by which the look-up was answered."""
        assert self._store is not None
        context = self._context
        return self._store.stream_time if context.clock is None else context.clock.asked(context.asker)
