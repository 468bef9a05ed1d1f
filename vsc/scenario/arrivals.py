"""Runs the rows of a scenario in other orders of arrival, other micro-batches, on other partitions, with restarts.

Guarantees: an `Arrangement` that `Arrivals.allows` differs from what is written only in ways in which the topology
promises the same results. Results are what sinks and readers have at the end: of a table the row of each key, which is
the last one to come, of a versioned table the newest one; of a stream its records in any order. The time of a group's
result is that of the latest change, which may be of a row that is gone: it is not compared where a table is grouped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vsc.api import compile
from vsc.plan.nodes import Aggregate, Plan, Reorder
from vsc.plan.results import shows_results
from vsc.runtime.errors import VscRuntimeError
from vsc.scenario.model import Delete, Drain, Pipe, Quiet, Read, Scenario
from vsc.scenario.player import fields_of
from vsc.scenario.tolerance import tolerances
from vsc.scenario.written import fields_written, written
from vsc.testing import FileRows, Record, TopologyTestDriver

__all__ = ["Arrangement", "Arrival", "Arrivals", "Results"]

Results = Mapping[str, list[str]]
"""By node or question, what it gives, as sorted text."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row or a key of a step; without a source, a step of quiet to `timestamp`, or the end of the input.

    `time` is None if the source drops the row."""

    step: int
    source: str | None
    row: Mapping[str, Any]
    timestamp: int | None
    deleted: bool
    read: FileRows | None = None
    """The row itself, if it is of a file."""
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Arrivals by their numbers, in the order in which they come. Those in `joined` are in one micro-batch with the one
    before; before those in `restarted`, the query is restarted."""

    order: tuple[int, ...]
    joined: frozenset[int]
    restarted: frozenset[int]
    partitions: int

    def batches(self) -> Iterator[list[int]]:
        """The micro-batches."""
        batch: list[int] = []
        for number in self.order:
            if batch and number not in self.joined:
                yield batch
                batch = []
            batch.append(number)
        if batch:
            yield batch


class Arrivals:
    """The arrivals of a scenario that passes."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.plan: Plan = compile(scenario.topology, scenario.variables)
        self._tolerances = tolerances(self.plan)
        self._tables = {node.name for node in self.plan.nodes if node.kind == "table"}
        self._by_time = {
            node.name
            for node in self.plan.nodes
            if node.status is not None and node.status.versioned and not shows_results(self.plan, node.name)
        }
        self._untimed = _untimed(self.plan)
        self._letters = {node.name for node in self.plan.dead_letters}
        self._watched = sorted(
            {sink.owner for sink in self.plan.sinks} | {one.node for step in scenario.steps for one in step.expect}
        )
        self._as_written: dict[tuple[int, ...], Results] = {}
        self.all = self._timed(list(_arrivals(scenario)))

    @property
    def written(self) -> Arrangement:
        """As the file has it."""
        return Arrangement(tuple(range(len(self.all))), frozenset(), frozenset(), self.scenario.partitions)

    def as_written(self, arrangement: Arrangement) -> Results:
        """The results of the same arrivals as the file has them."""
        order = tuple(sorted(arrangement.order))
        if order not in self._as_written:
            self._as_written[order] = self.results(replace(self.written, order=order))
        return self._as_written[order]

    def may_swap(self, one: int, other: int) -> bool:
        """Whether these two may come in either order."""
        left, right = self.all[one], self.all[other]
        if left.time is None or right.time is None or left.source is None or right.source is None:
            return False
        tolerance, apart = self._tolerances[left.source, right.source], abs(left.time - right.time)
        if left.source == right.source and not apart:
            return False  # which version of one moment holds is a matter of their order
        return tolerance is None or apart < tolerance

    def allows(self, arrangement: Arrangement) -> bool:
        """Whether results may not depend on it."""
        order = arrangement.order
        later = ((one, other) for at, one in enumerate(order) for other in order[at + 1 :] if other < one)
        return all(map(self.in_order, arrangement.batches())) and all(self.may_swap(*pair) for pair in later)

    def in_order(self, batch: list[int]) -> bool:
        """Whether a query processes a micro-batch in this order: it merges its sources by their times."""
        if len(batch) == 1:
            return True
        highest: dict[str, int] = {}
        places = []
        for number in batch:
            arrival = self.all[number]
            if arrival.source is None or arrival.time is None:
                return False
            highest[arrival.source] = max(arrival.time, highest.get(arrival.source, 0))
            places.append((highest[arrival.source], self.plan.node(arrival.source).source.rank))
        return places == sorted(places)

    def results(self, arrangement: Arrangement) -> Results:
        """What comes out of it at the end of the input."""
        with self._driver(arrangement.partitions) as driver:
            try:
                for batch in arrangement.batches():
                    if batch[0] in arrangement.restarted:
                        driver.restart()
                    self._feed(driver, batch)
                answers = dict(self._answers(driver))
                driver.drain()
            except VscRuntimeError as error:
                return {"failed": [str(error)]}
            return {**answers, **{f"`{name}`": self._result(name, driver.read(name)) for name in self._watched}}

    # ------------------------------------------------------------------------------------------------------ inside

    def _driver(self, partitions: int, plan: Plan | None = None) -> TopologyTestDriver:
        return TopologyTestDriver(
            plan or self.plan, partitions=partitions, now=self.scenario.now, functions=self.scenario.functions
        )

    def _timed(self, arrivals: list[Arrival]) -> list[Arrival]:
        found = []
        with self._driver(self.scenario.partitions, _as_read(self.plan)) as driver:
            for arrival in arrivals:
                _do(driver, arrival)
                records = driver.read(arrival.source) if arrival.source is not None else []
                found.append(replace(arrival, time=records[0].timestamp) if records else arrival)
        return found

    def _feed(self, driver: TopologyTestDriver, batch: list[int]) -> None:
        if len(batch) == 1:
            _do(driver, self.all[batch[0]])
            return
        with driver.batch():
            for number in batch:
                _do(driver, self.all[number])

    def _answers(self, driver: TopologyTestDriver) -> Iterator[tuple[str, list[str]]]:
        for question in (one for step in self.scenario.steps for one in step.stores):
            seen = driver.store(question.store).get(question.key, as_of=question.as_of)
            as_of = "" if question.as_of is None else f" as of {question.as_of}"
            told = "null" if seen is None else fields_written(_rounded(fields_of(seen)))
            yield f"the store `{question.store}` for {written(dict(question.key))}{as_of}", [told]

    def _result(self, name: str, records: list[Record]) -> list[str]:
        if name in self._letters:
            records = [replace(one, value={**(one.value or {}), "position": None}) for one in records]
        if name in self._tables:
            if name in self._by_time:
                records = sorted(records, key=lambda one: one.timestamp)  # stable: of equal times the last one counts
            found = {written(one.key): one for one in records}
            records = [one for one in found.values() if one.value is not None]
        if name in self._untimed:
            records = [replace(one, timestamp=0) for one in records]
        return sorted(fields_written(_rounded(fields_of(one))) for one in records)


def _as_read(plan: Plan) -> Plan:
    """The plan, with sources that hold none of their rows back to put them in order."""
    return replace(plan, nodes=tuple(
        replace(node, operation=replace(node.operation, within=0))
        if isinstance(node.operation, Reorder) and node.part_of is not None else node for node in plan.nodes
    ))  # fmt: skip


def _untimed(plan: Plan) -> frozenset[str]:
    """The aggregates of tables, and what is computed from them."""
    found: set[str] = set()
    for node in plan.nodes:
        grouped = isinstance(node.operation, Aggregate) and node.operation.over == "table"
        if grouped or not found.isdisjoint(node.inputs):
            found.add(node.name)
    return frozenset(found)


def _arrivals(scenario: Scenario) -> Iterator[Arrival]:
    for step in scenario.steps:
        match step.action:
            case Pipe(source, rows, timestamp):
                yield from (Arrival(step.number, source, row, timestamp, False) for row in rows)
            case Read(rows):
                for one in map(rows.one, range(len(rows))):
                    yield Arrival(step.number, rows.node.name, one.values(), None, one.is_deleted, one)
            case Delete(source, keys, timestamp):
                yield from (Arrival(step.number, source, key, timestamp, True) for key in keys)
            case Quiet(until):
                yield Arrival(step.number, None, {}, until, False)
            case Drain():
                yield Arrival(step.number, None, {}, None, False)


def _do(driver: TopologyTestDriver, arrival: Arrival) -> None:
    if arrival.source is None and arrival.timestamp is not None:
        driver.quiet(arrival.timestamp)
    elif arrival.source is None:
        driver.drain()
    elif arrival.read is not None:
        driver.pipe_rows(arrival.read)
    elif arrival.deleted:
        driver.delete(arrival.source, arrival.row, timestamp=arrival.timestamp)
    else:
        driver.pipe(arrival.source, arrival.row, timestamp=arrival.timestamp)


def _rounded(value: Any) -> Any:
    """With floating-point numbers of 12 digits: a sum depends on its order in those behind."""
    match value:
        case float():
            return float(f"{value:.12g}")
        case dict():
            return {name: _rounded(one) for name, one in value.items()}
        case list():
            return [_rounded(one) for one in value]
    return value
