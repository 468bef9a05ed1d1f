"""What has to come out by the clock of the input (D25), in one partition, row by row.

A row that moves the clock of its source first releases what is due then, moment by moment: each through all stages
before the next. Then the row itself goes through. Everything a node does goes by what the clock shows there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.engines import by_records, size_of
from tests.oracle.epochs import EpochRow
from tests.oracle.playing import chunks, shown_records
from tests.oracle.records.stage import RecordStage, Released, Result
from vsc.plan.clocks import Branch, node_clocks, shortest_holds
from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.layout import handed_on
from vsc.runtime.operators.source.rows import latest_times
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import Batch, Metrics

__all__ = ["InputOracle"]

_END = 2**63 - 1
_ANY = "#any"
"""The end of the input, which moves the clocks of all sources."""


class InputOracle:
    """Takes rows in the order of D12. `records`: by node what came out; `metrics`: what was counted. `now`: see
    `RunOptions`."""

    def __init__(self, plan: Plan, now: int | None = None) -> None:
        recorded = by_records(plan)
        observed = frozenset(node.name for node in plan.nodes if node.part_of is None)
        self.records: dict[str, list[Any]] = defaultdict(list)
        self.metrics = Metrics()
        self._clocks, self._starts = node_clocks(plan), dict.fromkeys((node.name for node in plan.sources), -1)
        self._moment, self._ending = -1, False
        self._by, self._releasing = (
            "",
            False,
        )  # whose clock moves to the moment, and whether what is released is at work
        # Tables whose rows expire: the end of the input removes none.
        self._forgetting = {n.name for n in plan.nodes if n.store is not None and n.store.expire is not None}
        self._floors: dict[str, int] = {}
        self._places = {node.name: place for place, node in enumerate(plan.nodes)}
        self._plan, self._routes = plan, [handed_on(stage) for stage in plan.stages]
        self._given = [plan.given(stage) & observed for stage in plan.stages]
        latest = {} if now is None else latest_times(plan, now)
        self._source = StageZero(recorded, RunOptions(on_error="drop", now=now), observed, latest)
        self._stages = [RecordStage(plan, stage.id, "drop", observed, size_of, clock=self) for stage in plan.stages[1:]]

    def process(self, row: EpochRow) -> None:
        """Takes a row."""
        ((source, rows),) = chunks(self._plan, [row])
        result = self._source.process(source, rows)
        if result.clock is not None:
            self._release(result.clock, source)
            self._moment, self._by = result.clock, source
        self._through(Result(result.batches, result.metrics), {})
        if result.clock is not None:
            self._starts[source] = max(self._starts[source], result.clock)

    def quiet(self, until: int) -> None:
        """The clocks of all sources go on to a time."""
        for source in self._starts:
            if self._starts[source] < until:
                self._release(until, source)
                self._starts[source] = until

    def drain(self) -> None:
        """Ends the input. What is final then is left with clocks at which nothing that has come waits any more."""
        self._ending = True
        self._release(_END)
        self._ending, self._moment = False, -1
        for name, clock in self._clocks.items():
            node = self._plan.node(name)
            if node.operation.waits and (node.kind == "table" or node.operation.in_order):
                self._floors[name] = clock.of_input(self._starts) + clock.holds

    def shown(self, node: str) -> int:
        """See `InputTime`."""
        return max(self._at(node), self._floors.get(node, -1))

    def asked(self, node: str) -> int:
        """See `InputTime`."""
        return self._at(node)

    def of_input(self, node: str) -> int:
        """See `InputTime`."""
        return self._of(Branch(self._clocks[node].sources, 0))

    def _at(self, node: str) -> int:
        return min(self._of(branch) - branch.hold for branch in self._clocks[node].branches)

    def _of(self, branch: Branch) -> int:
        moment = self._moment if self._by == _ANY or self._by in branch.sources else -1
        return max(moment, branch.of_input(self._starts))

    def ahead_of(self, node: str) -> int:
        """See `InputTime`."""
        return self._at(node) if self._releasing else self._clocks[node].shown(self._starts)

    def soonest_ahead_of(self, node: str, table: str) -> int:
        """See `InputTime`."""
        if self._clocks[table].hold:
            return self.ahead_of(node)
        first = Branch(self._clocks[node].sources, shortest_holds(self._plan)[node])
        return (self._of(first) if self._releasing else first.of_input(self._starts)) - first.hold

    def kept(self, node: str) -> int:
        """See `InputTime`."""
        return self._clocks[node].shown(self._starts) if self._ending else self.shown(node)

    def _release(self, until: int, source: str | None = None) -> None:
        """What comes out up to a moment of the input's clock, if this source moves it there."""
        while True:
            due = [
                (moment, self._places[name], name)
                for stage in self._stages
                for name, due in stage.due().items()
                if source is not None or name not in self._forgetting
                for moment in self._moments(name, due, source)
            ]
            if not due or min(due)[0] > until:
                return
            self._moment, _, name = min(due)
            self._by, self._releasing = _ANY if source is None else source, True
            at_work = [number for number, stage in enumerate(self._stages, 1) if name in stage.due()]
            taken = [self._stages[number - 1].take_due(name) for number in at_work]
            for waiting in zip(*taken, strict=True):  # the copies of a node hold the same
                self._through(None, {number: (name, one) for number, one in zip(at_work, waiting, strict=True)})
            self._releasing = False

    def _moments(self, node: str, due: int, source: str | None) -> list[int]:
        """What the input's clock shows when this source, or the end of all, moves the node's to a time; none if other
        sources have to move, too."""
        branches = self._clocks[node].branches
        behind = [one for one in branches if one.of_input(self._starts) < due + one.hold]
        if any(source is not None and source not in one.sources for one in behind):
            return []
        moved = behind or [one for one in branches if source is None or source in one.sources]
        return [max(due + one.hold for one in moved)] if moved else []

    def _through(self, read: Result | None, released: Mapping[int, Released]) -> None:
        """What comes of what was read, or released in some stages, in all stages."""
        queues: list[list[tuple[str, Batch]]] = [[] for _ in self._plan.stages]
        if read is not None:
            self._hand_on(0, read, queues)
        for number, stage in enumerate(self._stages, 1):
            self._hand_on(number, stage.process(queues[number], released=released.get(number)), queues)

    def _hand_on(self, stage: int, result: Result, queues: Sequence[list[tuple[str, Batch]]]) -> None:
        self.metrics.merge(result.metrics)
        for name, batch in result.batches:
            if len(batch) and name in self._given[stage]:
                self.records[name] += shown_records(batch)
            for target in self._routes[stage].get(name, ()):
                queues[target].append((name, batch))
