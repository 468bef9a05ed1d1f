"""Aggregates without window: the groups of a stream, and those of a table, whose rows are also taken back."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.records.aggregate.groups import Calls, Group, Member
from tests.oracle.records.aggregate.results import Result, Results
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row
from tests.oracle.records.group_changes import NEW, OLD
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Aggregate, Node, Plan
from vsc.runtime.metrics import Dropped

__all__ = ["StreamGroups", "TableGroups", "TravelledRows"]


class _Groups:
    """The groups by their keys."""

    def __init__(self, node: Node, calls: Calls, results: Results, context: Context) -> None:
        self._name, self._calls, self._results, self._context = node.name, calls, results, context
        self._order = rows_in_order([c.type for c in node.schema.key])
        self._groups: dict[Row, Group] = {}
        self._arrivals = 0

    def content(self) -> Content:
        """The groups: (key, result or None if it fails, its time, number of rows, what it is)."""
        found = []
        for key in sorted(self._groups, key=self._order):
            group = self._groups[key]
            row = self._result(key, group)
            found.append((key, row, group.time, group.count, "expression_failed" if row is None else "row"))
        return None, 0, found

    def _result(self, key: Row, group: Group) -> Row | None:
        try:
            return self._calls.result(group, key)
        except NodeFailure:
            return None

    def _arrive(self) -> int:
        self._arrivals += 1
        return self._arrivals


class StreamGroups(_Groups):
    """The groups of a stream: each record gives its group a new result, at the highest time of its records.

    A record without value (D14) or key (D26) is dropped and counted; so is one on whose arguments an expression fails,
    if the options say so, and one whose result a versioned store refuses (it is not part of its group then, as in Kafka
    Streams). One whose result fails stays in its group (D34).
    """

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        known = self._groups.get(key)
        try:
            member = Member(self._calls.args(key + value, time), time, self._arrive())
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        group = self._calls.added(known or Group(), member)
        group = replace(group, time=max(group.time, time))
        if self._results.refuses(group.time):
            self._context.dropped(self._name, Dropped.EXPIRED)
            return
        self._groups[key] = group
        try:
            new = self._calls.result(group, key)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._results.send(Result(key, new, group.time))


class TravelledRows:
    """Splits a grouped change into the row of the table to take back and the row to add."""

    def __init__(self, plan: Plan, node: Node, operation: Aggregate) -> None:
        changes = plan.node(node.inputs[0])
        table = plan.node(changes.inputs[0]).schema.key
        travelled = [c.name for c in changes.schema.value]
        names = [c.name for c in (*operation.row.key, *operation.row.value)]
        self._old, self._new = ([travelled.index(side + name) for name in names] for side in (OLD, NEW))
        self._ident = [names.index(c.name) for c in table]

    def rows(self, change: Row) -> tuple[Row | None, Row | None]:
        """The row to take back and the row to add; each may be None."""
        old, new = change[0], change[1]
        return (
            tuple(change[i] for i in self._old) if old else None,
            tuple(change[i] for i in self._new) if new else None,
        )

    def ident(self, row: Row) -> Row:
        """The row's identity: its key in its table."""
        return tuple(row[i] for i in self._ident)


class TableGroups(_Groups):
    """The groups of a table. A change takes the old row back and adds the new one, and gives one result.

    A group that has lost its last row is a tombstone (D13). A change that finds nothing to take back still gives the
    group's result again, as in Kafka Streams. A row on which an expression fails is not part of its group, if the
    options say that it is to be dropped.
    """

    def __init__(self, node: Node, calls: Calls, travelled: TravelledRows, results: Results, context: Context) -> None:
        super().__init__(node, calls, results, context)
        self._travelled = travelled

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a grouped change."""
        assert value is not None
        taken, added = self._travelled.rows(value)
        known = self._groups.get(key)
        group = known or Group()
        if taken is not None:
            group = group.without(self._travelled.ident(taken))
        if added is not None:
            group = self._added(group, added, time)
        group = replace(group, time=max(group.time, time))
        self._groups.pop(key, None)
        if group.count:
            self._groups[key] = group
        try:
            new = self._calls.result(group, key) if group.count else None
        except NodeFailure as failure:
            self._context.failed(failure)  # what the group holds is right, only that it has no result
            return
        newest = max((m.time for m in group.own), default=group.time) if self._calls.timed else group.time
        self._results.send(Result(key, new, newest))

    def _added(self, group: Group, row: Row, time: int) -> Group:
        try:
            args = self._calls.args(row, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            return group
        return self._calls.added(group, Member(args, time, self._arrive(), self._travelled.ident(row)))
