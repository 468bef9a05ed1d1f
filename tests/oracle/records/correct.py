"""`correct`: a stream-table join whose results are corrected by versions of the table that come late.

A record is joined at once, and kept until the clock is more than `within` past its time. A version is valid until the
next one of its key. Each kept record for which it is valid is joined again, the earliest first; if the result is not
what was sent last, it is sent, or a tombstone where there is none any more. The records of a table replace and remove
what is kept of their rows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.getters import Getter
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content, TableStore
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import parts
from vsc.plan.nodes import Node, Schema
from vsc.plan.operations import Correct as Operation
from vsc.runtime.metrics import GRACE_NEEDED, RETENTION_NEEDED, Dropped, Group, Missed

__all__ = ["Correct"]


@dataclass
class _Kept:
    key: Row
    value: Row
    time: int
    by: Row
    sent: Row | None = None
    revision: int = 0


class Correct:
    """The join at `node`. `by` computes the key of a result, `values` its value of the record, which ends with its
    revision, and of the table's row. `store` has the history that `get` looks up."""

    def __init__(
        self,
        node: Node,
        operation: Operation,
        left: Schema,
        get: Getter,
        store: TableStore,
        by: Values,
        values: Values,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._node, self._name, self._operation = node.name, node.owner, operation
        self._get, self._store, self._by, self._values = get, store, by, values
        self._context, self._forward = context, forward
        self._order = rows_in_order([c.type for c in left.key])
        read = {
            part.name for item in operation.items for part in parts(item.expr)
            if isinstance(part, ColumnExpr) and part.input == 0
        }  # fmt: skip
        self._read = [place for place, column in enumerate(left.value) if column.name in read]
        self._kept: list[_Kept] = []
        self._time = -1
        store.watching.append(self._version)

    def record(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        context, operation = self._context, self._operation
        if value is None:
            context.dropped(self._name, Dropped.NO_VALUE)
            return
        if None in key and not operation.left:
            context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        try:
            by = self._by(key + value, None, time, None)
        except NodeFailure as failure:
            context.failed(failure, self._name)
            return
        if None in by:
            context.dropped(self._name, Dropped.NULL_KEY)
            return
        one = _Kept(key, value, time, by)
        old, new = value[:2] if operation.table else (False, True)
        late = self._clock() - time > operation.within
        if late and new:
            context.metrics.count(self._name, Group.MISSED_LOOKUPS, Missed.NOT_CORRECTED)
        free = not late and None not in key
        before = self._before(one) if old and free else None
        if before is not None:
            self._kept.remove(before)
            one.revision = before.revision
        there, result = False, ()
        try:
            there, result = self._joined(one, first=True) if new else (False, ())
        except NodeFailure as failure:
            context.failed(failure, self._name)
            free = False
        if new and free:
            self._kept.append(one)
            self._kept.sort(key=lambda kept: kept.time)  # stable: then by arrival
        unknown = old and before is None
        last = None if before is None else before.sent
        one.sent = result if there else None
        if unknown or there != (last is not None) or (there and _told(result) != _told(last)):
            self._send(one, result if there else None)

    def _before(self, one: _Kept) -> _Kept | None:
        """What is kept of the row that a table's record is of."""
        found = (k for k in self._kept if (k.key, k.time, k.by) == (one.key, one.time, one.by))
        return next((kept for kept in found if kept.time >= self._limit()), None)

    def change(self, key: Row, new: Row | None, old: object, latest: bool, time: int) -> None:
        """Takes a version of the table."""
        after = int(self._operation.strictly_before)
        until = self._store.until(key, time)
        limit = self._clock() - self._operation.within
        for one in list(self._kept):
            if one.key == key and time + after <= one.time < until + after and one.time >= limit:
                try:
                    there, result = self._joined(one)
                except NodeFailure as failure:
                    self._context.failed(failure, self._name)
                    continue
                if there != (one.sent is not None) or (there and _told(result) != _told(one.sent)):
                    self._send(one, result if there else None)

    def content(self) -> Content:
        """What is kept: (key, whether a row is out, its number and key, what items read, the result; time, due)."""
        nothing = (None,) * len(self._operation.items)
        limit = self._limit()
        rows = [
            (one.key, (one.sent is not None, one.revision, *one.by, *(one.value[place] for place in self._read),
                       *(one.sent if one.sent is not None else nothing)), one.time,
             one.time + self._operation.within + 1)
            for one in sorted(self._kept, key=lambda one: (self._order(one.key), one.time)) if one.time >= limit
        ]  # fmt: skip
        return None if self._time < 0 else self._time, 0, rows

    def _limit(self) -> int:
        clock = self._context.clock
        assert clock is not None
        self._time = max(self._time, clock.kept(self._node))
        return self._time - self._operation.within

    def _clock(self) -> int:
        clock = self._context.clock
        assert clock is not None
        return clock.asked(self._node)

    def _version(self, time: int) -> None:
        """Notes a version that the table has accepted: it is late if records that it concerns are final."""
        clock = self._context.clock
        assert clock is not None
        behind = clock.ahead_of(self._node) - time
        if behind > self._operation.within:
            self._context.metrics.late(self._name, 1)
            needed = behind + (0 if self._operation.strictly_before else 1)
            self._context.metrics.peak(self._name, GRACE_NEEDED, needed)

    def _joined(self, one: _Kept, first: bool = False) -> tuple[bool, Row]:
        """Whether there is a result, and which, as revision 0."""
        operation, asked = self._operation, one.time - int(self._operation.strictly_before)
        found = None if None in one.key else self._get(one.key, asked)
        if operation.max_age is not None and isinstance(found, tuple) and one.time - found[1] > operation.max_age:
            found = Missed.TOO_OLD
        if isinstance(found, tuple):
            return True, self._values(one.key + one.value + (0,), one.key + found[0], one.time, found[1])
        there = operation.left and not (operation.drop_older and found is Missed.OLDER_THAN_RETENTION)
        result = self._values(one.key + one.value + (0,), None, one.time, None) if there else ()
        if first and found is not None:
            self._context.metrics.count(self._name, Group.MISSED_LOOKUPS, found)
            if found is Missed.OLDER_THAN_RETENTION:
                self._context.metrics.peak(self._name, RETENTION_NEEDED, self._clock() - asked)
        return there, result

    def _send(self, one: _Kept, result: Row | None) -> None:
        """Sends the next result of a record; what it looks like depends on how many there were."""
        shown = result
        if result is not None and one.revision:
            found = None if None in one.key else self._get(one.key, one.time - int(self._operation.strictly_before))
            row, since = (one.key + found[0], found[1]) if isinstance(found, tuple) else (None, None)
            age = self._operation.max_age
            if since is not None and age is not None and one.time - since > age:
                row = since = None
            shown = self._values(one.key + one.value + (one.revision,), row, one.time, since)
        one.sent, one.revision = result, one.revision + 1
        self._forward(one.by, shown, one.time)


def _told(row: Row | None) -> str:
    """A text that is the same for the same values: of NaN, too, and not for 0.0 and -0.0."""
    return repr([struct.pack("<d", one) if isinstance(one, float) else one for one in row or ()])
