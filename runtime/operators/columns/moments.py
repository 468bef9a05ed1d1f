"""When, in one batch, a record reaches an operator: the place of that event in Kafka's depth-first order.

In Kafka a record that enters a stage is processed completely before the next one: through the consumers of its node in
the plan's order, each completely. Here each node runs once over a whole batch, so every record carries its *moment*. A
reader sees an operator's state as of the reader's moment.

A stage's *routes* are its paths through the graph of nodes, numbered depth-first (`Routes`). A moment is an integer,
``cause * routes + route``: the place of the record that entered, then the route that led here. A node that may give
several records for one (`explode`, windows, `suppress`, a join that waits) *opens* a level, ``turn * routes + route``,
which is compared after the levels of the record that caused them. Moments compare level by level; a missing level
counts as 0. Two events at one operator never have the same moment.

What time releases by the input's clock (`operators.clock`) comes before the record that moved the clock: its first
level is ``cause * routes``, as no route is numbered 0. The next ones are the clock at which it was due and its node's
place in the plan, then zeros up to the node's own level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vsc.plan.nodes import Plan, Stage
from vsc.runtime.operators import layout
from vsc.runtime.records import Int64s, Mask

__all__ = ["LAST", "Moments", "Routes", "arrivals", "processing", "turns"]

Rows = Int64s | npt.NDArray[np.bool_]
_OUT = -1
_RELEASED = 3
"""How many levels come before a node's own one where time releases: the cause, the clock, the node's place."""
_BEYOND = 1 << 62
"""A level behind all that time releases ahead of a record."""
LAST = 1 << 31
"""The turn of what happens at an operator after all that it gives for an event."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of several events; each level is an array with a number for each event."""

    levels: tuple[Int64s, ...]

    def __len__(self) -> int:
        return len(self.levels[0])

    def take(self, rows: Rows) -> Moments:
        """The moments at `rows`, a mask or places."""
        return Moments(tuple(level[rows] for level in self.levels))

    @staticmethod
    def concat(parts: Sequence[Moments]) -> Moments:
        """All moments of `parts`; missing levels are filled up."""
        depth = max(len(part.levels) for part in parts)
        return Moments(tuple(np.concatenate([_level(part, i) for part in parts]) for i in range(depth)))


def _level(moments: Moments, number: int) -> Int64s:
    # Zero is below every number of a level, as routes count from 1: an event comes before all that it has caused.
    return moments.levels[number] if number < len(moments.levels) else np.zeros(len(moments), dtype=np.int64)


def processing(moments: Moments) -> Int64s:
    """The places of the events in the order of processing."""
    if len(moments.levels) == 1:
        return np.argsort(moments.levels[0], kind="stable")
    return np.lexsort(moments.levels[::-1])


def arrivals(one: Moments, other: Moments) -> tuple[Int64s, Int64s]:
    """Numbers that compare like the moments of both."""
    # Ranks would tell equal moments apart; there are none, as no two events at one operator have the same moment.
    if len(one.levels) == len(other.levels) == 1:
        return one.levels[0], other.levels[0]
    order = processing(Moments.concat([one, other]))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[: len(one)], ranks[len(one) :]


def turns(cause: Int64s) -> Int64s:
    """The place of each record, from 1, among those of the same cause, which must be adjacent."""
    rows = np.arange(len(cause), dtype=np.int64)
    # The running maximum of the places at which a cause begins is the beginning of each record's own cause.
    begins = np.append(True, cause[1:] != cause[:-1]) if len(cause) else np.zeros(0, dtype=np.bool_)
    return rows - np.maximum.accumulate(np.where(begins, rows, 0)) + 1


class Routes:
    """The routes of a stage. `handed_out` are the nodes whose records leave it."""

    def __init__(self, plan: Plan, stage: Stage, handed_out: frozenset[str]) -> None:
        self._plan, self._stage, self._handed_out = plan, stage, handed_out
        self._places = {n.name: i for i, n in enumerate(plan.nodes)}
        self._count = 1  # route 0 is none: it is what time releases, before the record of its cause
        self._fed: dict[str, int] = {}
        self._steps: dict[tuple[str, int], dict[int, int]] = {}
        entering = layout.entrances(plan, stage)
        opened = self._opened(entering)
        starts = dict.fromkeys([*entering, *(n for n in stage.nodes if n in opened)])
        self._starts: dict[str, int] = {}
        self._given: dict[str, int] = {}
        for name in entering:
            self._starts[name] = self._number()
            if name not in opened:
                self._visit(name, self._starts[name], opened)
        for name in starts:
            if name in opened:
                self._given[name] = self._number()
                self._visit(name, self._given[name], opened)
        self._tables = {edge: self._table(steps) for edge, steps in self._steps.items()}

    def opens(self, name: str) -> bool:
        """Whether node `name` may give several records for one."""
        return name in self._given

    def enter(self, name: str, cause: Int64s) -> Moments:
        """The moments of records of input `name`; `cause` are their places among all that enter the stage."""
        return Moments((cause * self._count + self._starts[name],))

    def released(self, cause: Int64s, name: str) -> Moments:
        """The moments at which records that wait at node `name` come out by themselves; `cause` are their places."""
        route = 0 if self.opens(name) else int(self._tables[name, 0].max())
        return Moments((cause * self._count + route,))

    def reach(self, moments: Moments, reader: str, port: int) -> Moments:
        """When records reach input `port` of node `reader`."""
        return self._step(moments, (reader, port))

    def leave(self, moments: Moments, name: str) -> Moments:
        """When records of node `name` leave the stage."""
        return self._step(moments, (name, _OUT))

    def given(self, moments: Moments, name: str, turn: Int64s) -> Moments:
        """The moments of the records that node `name`, which opens a level, gives for events; `turn`: their places."""
        return Moments((*moments.levels, turn * self._count + self._given[name]))

    def beside(self, moments: Moments, name: str, turn: Int64s) -> Moments:
        """As `given`, with as many levels as what time releases of node `name` has."""
        missing = self._fed[name] - len(moments.levels)
        nothing = np.zeros(len(moments), dtype=np.int64)
        return self.given(Moments((*moments.levels, *([nothing] * missing))), name, turn)

    def released_at(self, name: str, cause: Int64s, clock: Int64s, place: int, turn: Int64s) -> Moments:
        """The moments of what time releases of node `name`, which has this place in the plan, before these causes.

        `clock` is the input's clock there; `turn` numbers what the node releases in the batch, in the order of moments.
        """
        between = [np.zeros(len(cause), dtype=np.int64)] * (self._fed[name] - _RELEASED)
        levels = (cause * self._count, clock, np.full(len(cause), place, dtype=np.int64), *between)
        return self.given(Moments(levels), name, turn)

    def is_released(self, moments: Moments) -> Mask:
        """Which moments are those of what time has released, or of what that has caused."""
        if len(moments.levels) <= _RELEASED:
            return np.zeros(len(moments), dtype=np.bool_)
        mask: Mask = moments.levels[0] % self._count == 0
        return mask

    def turn(self, moments: Moments, name: str) -> Int64s:
        """The `turn` that `released` was given, of what time has released of node `name`, or what that has caused."""
        return moments.levels[self._fed[name]] // self._count

    def cause(self, moments: Moments) -> Int64s:
        """The places of the causes among the records that entered the stage."""
        return moments.levels[0] // self._count

    def ahead(self, moments: Moments) -> Moments:
        """The moments ahead of all that the causes of these lead to: records, or what time has released of a node at a
        moment; only one of both."""
        if len(moments) and self.is_released(moments).all():
            return Moments((*moments.levels[:_RELEASED], np.zeros(len(moments), dtype=np.int64)))
        cause = self.cause(moments) * self._count
        return Moments((cause, np.full(len(moments), _BEYOND, dtype=np.int64)))

    def causes(self, moments: Moments) -> tuple[Int64s, ...]:
        """Columns that are equal where the cause is: see `ahead`."""
        released = self.is_released(moments)
        levels = moments.levels[1:_RELEASED] if released.any() else ()
        return (self.cause(moments), *(np.where(released, level, -1) for level in levels))

    def _step(self, moments: Moments, edge: tuple[str, int]) -> Moments:
        # Only the route of the innermost level changes. Numbers of routes grow depth-first, and so does the moment:
        # what a record causes comes after it, and before what the next route of its cause causes.
        *outer, last = moments.levels
        route = last % self._count
        led = self._tables[edge][route]
        assert not (led < 0).any(), "there is no such route"
        return Moments((*outer, last - route + led))

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    def _visit(self, name: str, route: int, opened: frozenset[str]) -> None:
        readers = layout.readers(self._plan, self._stage, name)
        steps = [
            ((self._places[reader.name], reader.operation.turn_of(port)), (reader.name, port))
            for reader, port in readers
        ]
        if name in self._handed_out:
            steps.append(((layout.outside(self._plan, self._stage, name), _OUT), (name, _OUT)))
        # In the plan's order, each reader completely before the next one: that is the order of the numbers. Where a
        # node opens a level, the path ends; it goes on from the node's own number, on the next level.
        for _, edge in sorted(steps):
            number = self._number()
            self._steps.setdefault(edge, {})[route] = number
            if edge[1] != _OUT and edge[0] not in opened:
                self._visit(edge[0], number, opened)

    def _table(self, steps: dict[int, int]) -> Int64s:
        table = np.full(self._count, -1, dtype=np.int64)
        table[list(steps)] = list(steps.values())
        return table

    def _opened(self, entering: Sequence[str]) -> frozenset[str]:
        """The nodes that open a level; a node whose inputs have different numbers of levels opens one to align them."""
        depths = dict.fromkeys(entering, 1)
        opened = set()
        for name in self._stage.nodes:
            node = self._plan.node(name)
            feeding = [depths[read] for read in node.taken if read in depths]
            before = max(feeding, default=1)
            stays = self._stage.id == 0  # nothing is kept there, so no row expires
            if (node.operation.waits if stays else node.waits) and self._plan.clock == "input":
                before = max(before, _RELEASED)
            self._fed[name] = before
            if (node.operation.branches if stays else node.branches) or len(set(feeding)) > 1:
                opened.add(name)
                before += 1
            depths[name] = before
        return frozenset(opened)
