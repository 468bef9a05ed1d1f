"""First step of a foreign-key join: what a change of the left table means for the right one's partition.

The rules are those of Kafka Streams 4.3.1 (with KAFKA-16394, 16407, 16434 and 18713 in): a left change gives at most
one result. The left row travels with its subscription, so that the right table's partition can compute results alone.
"""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.foreign_keys import UNCHANGED, Instruction, no_key
from tests.oracle.records.getters import Getter
from tests.oracle.records.tables import TableStore
from tests.runtime.state.model import INFINITE
from vsc.plan.types import DataType
from vsc.runtime.metrics import Dropped, Missed

__all__ = ["Subscribe"]


class Subscribe:
    """Takes the changes of the left table. `columns` are the places of the value columns that travel.

    `versioned`: the left table's status: then a change that is not its key's newest is dropped and counted. A row whose
    foreign key cannot be computed is dropped, and as good as gone. If the join's history is complete, `store` is the
    one behind the left table, and `get` looks into that.
    """

    __slots__ = (
        "_columns",
        "_context",
        "_foreign",
        "_forward",
        "_get",
        "_left",
        "_name",
        "_none",
        "_span",
        "_store",
        "_versioned",
    )

    def __init__(
        self,
        name: str,
        foreign_key: Values,
        keys: tuple[DataType, ...],
        left: bool,
        versioned: bool,
        columns: tuple[int, ...],
        context: Context,
        forward: RecordConsumer,
        store: TableStore | None = None,
        get: Getter | None = None,
    ) -> None:
        self._store, self._get = store, get
        self._span: tuple[object, ...] = ()
        self._name = name
        self._foreign = foreign_key
        self._none = no_key(keys)
        self._left = left
        self._versioned = versioned
        self._columns = columns
        self._context = context
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        try:
            now = self._key_of(key, new, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            now, new = None, None
        try:
            before = self._key_of(key, old, time)
        except NodeFailure:
            before = None  # it failed, and was dealt with, when it was the new row
        if self._store is not None:
            self._span = self._valid(key, now, self._store.until(key, time))
        send = self._left_join if self._left else self._inner_join
        send(key, new, now, old, before, time)

    def _valid(self, key: Row, now: Row | None, until: int) -> tuple[object, ...]:
        """Until when the row is valid, and whether another key is referred to from then on."""
        following = None
        if until < INFINITE and self._get is not None:
            try:
                found = self._get(key, until)
                following = None if isinstance(found, Missed) else self._key_of(key, found[0], found[1])
            except NodeFailure:
                pass  # it is counted when it is a change
        return until, until < INFINITE and (now is None or now != following)

    def _inner_join(
        self, key: Row, new: Row | None, now: Row | None, old: Row | None, before: Row | None, time: int
    ) -> None:
        if now is None:
            if before is not None:
                self._send(before, key, None, Instruction.DELETE_AND_ANSWER, time)
        elif before is not None and before != now:
            self._send(before, key, None, Instruction.DELETE, time)
            self._send(now, key, new, Instruction.KEEP, time)
        else:
            self._send(now, key, new, Instruction.KEEP_IF_VALUE | self._unchanged(new, old), time)

    def _left_join(
        self, key: Row, new: Row | None, now: Row | None, old: Row | None, before: Row | None, time: int
    ) -> None:
        if new is None and old is None:
            return
        if before is not None and (now is None or before != now):
            self._send(before, key, None, Instruction.DELETE, time)
        if now is not None:
            self._send(now, key, new, Instruction.KEEP | self._unchanged(new, old), time)
        else:
            self._send(self._none, key, new, Instruction.GONE if new is None else Instruction.ALONE, time)

    def _key_of(self, key: Row, row: Row | None, time: int) -> Row | None:
        """The foreign key of a row; None without a row, or with a null in the key."""
        if row is None:
            return None
        found = self._foreign(key + row, None, time, None)
        return None if None in found else found

    @staticmethod
    def _unchanged(new: Row | None, old: Row | None) -> int:
        if new is None or old is None:
            return 0
        return UNCHANGED if all(one == other for one, other in zip(new, old, strict=True)) else 0

    def _send(self, foreign_key: Row, key: Row, row: Row | None, instruction: int, time: int) -> None:
        columns = [None if row is None else row[i] for i in self._columns]
        self._forward(foreign_key, (*key, *columns, *self._span, int(instruction)), time)
