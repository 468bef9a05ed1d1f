"""Gives the rows of kept tables to operators that begin empty: a new aggregate or foreign-key join.

The rows pass through the new plan's own nodes (`vsc.changes.fills`) as changes from nothing. The resulting records wait
for the new operator, before all other records: the first batch of the new query processes them, in the order of the
rows' event times. No other operator gets these changes. If a complete history is computed of them, they are the whole
history that the table keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vsc.changes.fills import Fill, fill_of
from vsc.plan.nodes import Materialize, Node, Plan, Stage, StageInput, ToTable
from vsc.runtime.expressions import bind_allowed
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.carry.columns import Columns
from vsc.runtime.operators.carry.stores import Move
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.layout import handed_on
from vsc.runtime.operators.partition import partition_codecs, split
from vsc.runtime.operators.views import Entry, Question
from vsc.runtime.operators.views.catalog import open_view
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.state.kv import MemoryKV, OrderedKV
from vsc.runtime.state.waiting import Waiting
from vsc.runtime.values import to_array

__all__ = ["Filled"]

_ROWS_AT_ONCE = 4096
_FIRST = Origin("#rows", -1, "")
"""The origin of records that come before those of all sources."""
_BEGINNING = -(2**63)
_PARTITIONS = 1 << 14
"""More than the possible number."""


@dataclass(frozen=True, slots=True)
class _Way:
    """The way from the rows of `table`, which `move` carries over, to their takers: records of `port` in stages `to`.

    `plan` has a stage `at` that makes these records from the table's rows, and nothing else.
    """

    move: Move
    columns: Columns
    table: Node
    port: str
    plan: Plan
    at: int
    to: tuple[int, ...]


class Filled:
    """What the operators of `new` that have no state yet get from the carried tables."""

    def __init__(
        self, old: Plan, new: Plan, partitions: int, moves: Sequence[Move], functions: tuple[str, ...] = ()
    ) -> None:
        self._old, self._new, self._partitions = old, new, partitions
        self._options = RunOptions(on_error="drop", functions=functions)
        self._codecs = partition_codecs(new)
        self._ways = list(self._found(moves))

    def rows(self, stage: int, partition: int, kv: OrderedKV, lost: Metrics) -> Iterator[tuple[int, int, Waiting]]:
        """The records from an old stage and partition: the new stage and partition, and the records to wait there.

        Records dropped on the way are counted in `lost`.
        """
        for way in self._ways:
            if way.move.was.stage == stage:
                for batch in self._given(way, partition, kv, lost):
                    for to, part in split(batch, self._codecs[way.port], self._partitions):
                        one = Waiting(way.port, Frontier.at(part).place, len(part), part.to_ipc())
                        yield from ((target, to, one) for target in way.to)

    def _found(self, moves: Sequence[Move]) -> Iterator[_Way]:
        begun = {move.now.node for move in moves if not move.now.is_table}
        kept = (move for move in moves if move.now.is_table and self._old.node(move.was.node).forget is None)
        tables = {(move.now.node, move.now.stage): move for move in kept}
        for node in self._new.nodes:
            fill = fill_of(self._new, node, lambda table: any(table.name == name for name, _ in tables))
            if fill is None or node.name in begun:
                continue
            for stage in self._new.stages:
                move = tables.get((fill.table.name, stage.id))
                if move is not None and not move.was.replicated and fill.through[-1].name in stage.nodes:
                    columns = Columns(move.was.value, move.now.value)
                    plan, to = _alone(self._new, stage, fill)
                    yield _Way(move, columns, fill.table, fill.through[-1].name, plan, stage.id, to)

    def _given(self, way: _Way, partition: int, kv: OrderedKV, lost: Metrics) -> Iterator[Batch]:
        """The records made from a table's rows, some rows at a time."""
        bind_allowed(self._old, self._options.functions)
        view, count = open_view(self._old, way.move.was, kv), 0
        history = way.plan.node(way.port).operation.complete
        found = (entry for entry in view.answer(Question(history=history)) if history or entry.value is not None)
        for some in _portions(found):
            task = LaterStage(way.plan, way.at, MemoryKV(), self._options, frozenset())
            result = task.process([(_entrance(way.table), _batch(way, some, partition, count))])
            lost.merge(result.metrics)
            count += len(some)
            yield from (batch.sorted() for name, batch in result.batches if name == way.port)


def _portions(found: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Some rows at a time, those of one key together."""
    some: list[Entry] = []
    for entry in found:
        if len(some) >= _ROWS_AT_ONCE and entry.encoded != some[-1].encoded:
            yield some
            some = []
        some.append(entry)
    if some:
        yield some


def _alone(plan: Plan, stage: Stage, fill: Fill) -> tuple[Plan, tuple[int, ...]]:
    """`plan` with an extra stage through which a table's rows pass on their way to one operator; and its place."""
    table, last = fill.table, fill.through[-1]
    entrance = Node(_entrance(table), "stream", table.schema, Materialize(), (), table.line)
    store = (
        None if table.store is None else replace(table.store, expire=None, history="latest")
    )  # it has the rows that are there
    filled = replace(table, operation=ToTable(None), inputs=(entrance.name,), store=store)
    nodes = (entrance, *(filled if node.name == table.name else node for node in plan.nodes))
    names = (table.name, *(node.name for node in fill.through))
    hands_on = tuple(one for one in stage.hands_on if one.node == last.name)
    alone = replace(stage, nodes=names, inputs=(StageInput(entrance.name),), emits=names, hands_on=hands_on)
    stages = tuple(alone if one.id == stage.id else one for one in plan.stages)
    return replace(plan, nodes=nodes, stages=stages), handed_on(stage)[last.name]


def _entrance(table: Node) -> str:
    return f"{table.name}#rows"


def _batch(way: _Way, entries: Sequence[Entry], partition: int, before: int) -> Batch:
    """Rows as records, in the order of event time; `before` is the number of records before them."""
    times = np.array([entry.extra[0] for entry in entries], dtype=np.int64)
    order = np.argsort(times, kind="stable")
    rows, count = [entries[i] for i in order.tolist()], len(entries)
    key, value = way.move.was.key, way.move.was.value
    keys = tuple(to_array([row.key[i] for row in rows], column.type) for i, column in enumerate(key))
    nothing = (None,) * len(value)
    values = tuple(to_array([(row.value or nothing)[i] for row in rows], column.type) for i, column in enumerate(value))
    number = (np.arange(before + 1, before + count + 1, dtype=np.int64) * _PARTITIONS + partition).reshape(count, 1)
    beginning = np.full(count, _BEGINNING, dtype=np.int64)
    places = Order(beginning, np.zeros(count, dtype=np.int32), times[order], number)
    present = np.array([row.value is not None for row in rows], dtype=np.bool_)
    new_values = values if way.columns.same else way.columns.arrays(values, count)
    return Batch(way.table.schema, (_FIRST,), places, times[order], present, keys, new_values)
