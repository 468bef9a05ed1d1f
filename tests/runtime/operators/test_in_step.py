"""Inputs in step: files cut into epochs at random, crashes and restarts between, against one sort of everything.

The steps of the input's clock are in step as well, and tell how far each source has come in what has gone on.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from vsc.plan.nodes import Schema
from vsc.runtime.errors import StateError
from vsc.runtime.operators import in_step
from vsc.runtime.operators.in_step import Frontier, InStep
from vsc.runtime.operators.steps import gone_on
from vsc.runtime.records import Batch, Order, Origin, processing_order
from vsc.runtime.spark.connectors.spark_source import Backlog, Input
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.query.pacer import Pacer
from vsc.runtime.state.kv import MemoryKV, OverlayKV
from vsc.runtime.state.waiting import STEPS, WaitingBatches

NO_COLUMNS = Schema((), ())
RANKS = {"table": 0, "left": 1, "right": 2}
Place = tuple[int, int, str, int]
"""A record's place in D12's order: time, rank, file, offset."""


@dataclass(frozen=True)
class File:
    """A file of a source: its name and the event times of its rows."""

    source: str
    name: str
    times: tuple[int, ...]

    def places(self) -> list[Place]:
        clocks = [max(self.times[: i + 1]) for i in range(len(self.times))]
        return [(clock, RANKS[self.source], self.name, offset) for offset, clock in enumerate(clocks)]

    def steps(self, start: int) -> Batch:
        """Where its time rises, behind `start`."""
        places = self.places()
        return self.batch({p for p in places if p[0] > start and p == min(q for q in places if q[0] == p[0])})

    def batch(self, chosen: set[Place]) -> Batch:
        """Those of its records that are for a partition."""
        rows = [p for p in self.places() if p in chosen]
        time, offset = (np.array([p[i] for p in rows], dtype=np.int64) for i in (0, 3))
        order = Order(time, np.zeros(len(rows), np.int32), offset, np.ones((len(rows), 1), np.int64))
        return Batch(NO_COLUMNS, (Origin(self.source, RANKS[self.source], self.name),), order, time, time >= 0, (), ())


@dataclass(frozen=True)
class Bound:
    """What an epoch takes of a source: so many files, or files of so many rows together, but at least one file."""

    files: int = 1
    rows: int | None = None

    def taken(self, files: list[File]) -> int:
        """How many of the files that are left."""
        if self.rows is None:
            return min(self.files, len(files))
        sums = list(itertools.accumulate(len(file.times) for file in files))
        return max(sum(rows <= self.rows for rows in sums), min(1, len(files)))


@dataclass
class Query:
    """What outlives a crash: what of each source was handed out, the committed state, what the checkpoint keeps."""

    files: dict[str, list[File]]
    bounds: dict[str, Bound]
    taken: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RANKS, 0))
    state: list[MemoryKV] = field(default_factory=lambda: [MemoryKV(), MemoryKV()])
    paces: dict[int, str] = field(default_factory=dict)
    reports: dict[int, EpochReport] = field(default_factory=dict)
    wakes: int = 0

    def pace(self, epoch: int) -> str | None:
        return self.paces.get(epoch)

    def keep_pace(self, epoch: int, pace: str) -> None:
        assert epoch not in self.paces
        self.paces[epoch] = pace

    def report(self, epoch: int) -> EpochReport | None:
        return self.reports.get(epoch)

    def newest(self) -> EpochReport | None:
        return self.reports[max(self.reports)] if self.reports else None

    def request_wake(self) -> None:
        self.wakes += 1

    def pacer(self) -> Pacer:
        return Pacer(cast(Any, self), lambda: {name: Left(self, name) for name in RANKS}, lambda _: None)


@dataclass(frozen=True)
class Left(Input):
    """A source, as the pacer asks it."""

    query: Query
    source: str

    def backlog(self) -> Backlog:
        at = self.query.taken[self.source]
        return Backlog(min((f.name for f in self.query.files[self.source][at:] if f.times), default=None), at)


def random_query(chance: random.Random) -> Query:
    """Files of one source do not overlap in time, but they may touch; their names tell nothing about their order."""
    files: dict[str, list[File]] = {}
    for source in RANKS:
        names = chance.sample(range(100), chance.randint(0, 6))
        files[source], start = [], chance.randint(0, 15)
        for name in names:
            times = tuple(start + chance.randint(0, 6) for _ in range(chance.choice((0, 1, 2, 5))))
            files[source].append(File(source, f"{name:02}", times))
            start = max(times, default=start) + chance.choice((0, 0, 1, 9))
    bounds = {s: Bound(chance.randint(1, 3), chance.choice((None, None, 1, 4, 9))) for s in RANKS}
    return Query(files, bounds)


def epochs(query: Query) -> Iterator[list[File]]:
    """What each epoch reads; what is read counts as handed out."""
    while any(query.taken[source] < len(files) for source, files in query.files.items()):
        found = []
        for source, files in query.files.items():
            start = query.taken[source]
            query.taken[source] += query.bounds[source].taken(files[start:])
            found += files[start : query.taken[source]]
        yield found


@pytest.mark.parametrize("seed", range(60))
def test_no_cut_and_no_crash_shows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for name in ("_BATCH_BYTES", "_PORTION_BYTES"):  # a batch is a record or two, a portion some batches
        monkeypatch.setattr(in_step, name, chance.choice((1, 100, 1 << 20)))
    query = random_query(chance)
    places = sorted(place for files in query.files.values() for file in files for place in file.places())
    partition = {place: chance.randrange(2) for place in places}
    seen: list[list[Place]] = [[], []]
    pacer = query.pacer()
    for epoch, files in enumerate(epochs(query)):
        while True:  # until the epoch is committed
            pace = pacer.decide(epoch)
            assert pace.starts == highest(place for one in seen for place in one)
            result = run(query, pace, files, partition)
            crash = chance.choice(("", "", "before", "behind"))
            if crash != "before":
                states, found, report = result
                query.reports[epoch] = report
                pacer.done(report)
            if crash:
                pacer = query.pacer()
                pacer.resume()
            if crash != "before":
                break
        for overlay in states:
            overlay.commit()
        for one, more in zip(seen, found, strict=True):
            one += more
    assert [(len(store), store.steps) for store in map(WaitingBatches, query.state)] == [(0, 0), (0, 0)]
    assert seen == [[place for place in places if partition[place] == number] for number in range(2)]


def highest(places: Iterable[Place]) -> dict[str, int]:
    """The highest time of each source."""
    found: dict[str, int] = {}
    for time, rank, _, _ in places:
        source = next(name for name, its in RANKS.items() if its == rank)
        found[source] = max(time, found.get(source, time))
    return found


def run(
    query: Query, pace: Pace, files: list[File], partition: dict[Place, int]
) -> tuple[list[OverlayKV], list[list[Place]], EpochReport]:
    """An epoch in both partitions, its state not yet committed; a partition is only called if something calls it."""
    clocks: dict[str, int] = {}
    for file in files:
        clocks[file.source] = max(clocks.get(file.source, -1), *file.times, -1)
    report = EpochReport(0, clocks={name: clock for name, clock in clocks.items() if clock >= 0})
    if not pace.calls:
        report.gone_on = dict(report.clocks)
    steps = [file.steps(pace.starts.get(file.source, -1)) for file in files]
    states, found = [], []
    frontier = pace.frontier(RANKS, clocks)
    for number, base in enumerate(query.state):
        overlay = OverlayKV(base)
        chosen = {place for place, at in partition.items() if at == number}
        inputs = [(file.source, file.batch(chosen)) for file in files]
        inputs += [(STEPS, batch) for batch in steps]
        inputs = [(name, batch) for name, batch in inputs if len(batch)]
        places: list[Place] = []
        if inputs or (pace.calls and any(file.times for file in files)):
            step = InStep(overlay, dict.fromkeys(RANKS, NO_COLUMNS))
            for portion in step.portions(inputs, frontier):
                places += processed([one for one in portion if one[0] != STEPS])
                for name, clock in gone_on(portion).items():
                    report.passed(name, clock)
            report.state[f"1-{number}"] = StateSize(waiting=len(step), steps=step.steps)
        states.append(overlay)
        found.append(places)
    report.epoch = max(query.reports, default=-1) + 1
    return states, found, report


def processed(portion: list[tuple[str, Batch]]) -> list[Place]:
    """The records of a portion as a stage would take them."""
    rows: list[Place] = []
    for _, batch in portion:
        order = batch.order
        for time, origin, offset in zip(order.time.tolist(), order.origin.tolist(), order.offset.tolist(), strict=True):
            rows.append((time, batch.origins[origin].rank, batch.origins[origin].part, offset))
    return [rows[i] for i in processing_order([batch for _, batch in portion]).tolist()]


def test_a_source_that_is_read_alone_makes_nothing_wait() -> None:
    files = [File("left", f"{n}", (n, n + 1, n)) for n in range(4)]
    query = Query({"table": [], "left": files, "right": []}, dict.fromkeys(RANKS, Bound()))
    pacer = query.pacer()
    for epoch, found in enumerate(epochs(query)):
        everything = {place: 0 for file in found for place in file.places()}
        states, places, report = run(query, pacer.decide(epoch), found, everything)
        assert places[0] == found[0].places()
        assert [overlay.written for overlay in states] == [0, 0]
        query.reports[epoch] = report
        pacer.done(report)


def test_a_late_record_goes_on_at_once() -> None:
    step = InStep(MemoryKV(), {"left": NO_COLUMNS})
    file = File("left", "a", (1, 5, 9))
    batch = file.batch(set(file.places()))
    (portion,) = step.portions([("left", batch)], Frontier(9, 0, ""))
    assert [p[0] for p in processed(portion)] == [1, 5]
    late = File("left", "b", (3,))
    (portion,) = step.portions([("left", late.batch(set(late.places())))], Frontier(9, 0, ""))
    assert [p[0] for p in processed(portion)] == [3]
    assert len(step) == 1


def test_steps_wait_with_their_records_and_are_counted_apart() -> None:
    kv = MemoryKV()
    step = InStep(kv, {"left": NO_COLUMNS})
    file = File("left", "a", (1, 5, 3, 9))
    inputs = [("left", file.batch(set(file.places()))), (STEPS, file.steps(-1))]
    (portion,) = step.portions(inputs, Frontier(5, 0, ""))
    assert gone_on(portion) == {"left": 1}
    assert (len(step), step.steps) == (3, 2)
    step = InStep(kv, {"left": NO_COLUMNS})
    assert (len(step), step.steps) == (3, 2)
    (portion,) = step.portions([], Frontier(6, 0, ""))
    assert gone_on(portion) == {"left": 5}
    assert (len(step), step.steps) == (1, 1)
    (portion,) = step.portions([], None)
    assert [(name, batch.order.time.tolist()) for name, batch in portion] == [("left", [9]), (STEPS, [9])]
    assert (len(step), step.steps) == (0, 0)


def test_what_is_no_waiting_record_is_named() -> None:
    kv = MemoryKV()
    step = InStep(kv, {"left": NO_COLUMNS})
    list(step.portions([("left", File("left", "a", (1,)).batch({(1, 1, "a", 0)}))], Frontier(0, 0, "")))
    (key,) = (key for key, _ in kv.scan(b"", None) if key.endswith(b"m"))
    kv.write([(key, b"something else")])
    with pytest.raises(StateError, match="not the store of waiting records of format version 2"):
        InStep(kv, {})


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_idle_source_is_waited_for_up_to_max_idle() -> None:
    clock = Clock()
    query = Query({name: [] for name in RANKS}, {})
    query.files["left"] = [File("left", "a", (1,)), File("left", "b", (2,))]
    told: list[str] = []
    pacer = Pacer(cast(Any, query), lambda: {n: Left(query, n) for n in ("left", "right")}, told.append, 10.0, clock)
    query.taken["left"] = 1
    pace = pacer.decide(0)
    assert {name: (wait.clock, wait.next) for name, wait in pace.waits.items()} == {
        "left": (-1, "b"),
        "right": (-1, ""),
    }
    report = EpochReport(0, clocks={"left": 1}, state={"1-0": StateSize(waiting=4)})
    query.reports[0] = report
    pacer.done(report)
    query.taken["left"] = 2
    clock.now += 10
    pace = pacer.decide(1)
    assert {name: (wait.clock, wait.next) for name, wait in pace.waits.items()} == {"left": (1, "")}
    assert pace.waiting == {"1-0": 4}
    assert Pace.load(told[-1]) == pace
    report = EpochReport(1)  # nothing new of what is waited for: it has come as far as before
    query.reports[1] = report
    pacer.done(report)
    clock.now += 9
    pace = pacer.decide(2)
    assert (pace.waits["left"].clock, pace.waiting) == (1, {"1-0": 4})
    clock.now += 1
    assert pacer.decide(3).waits == {}


def test_an_epoch_is_asked_for_where_only_idle_sources_are_waited_for() -> None:
    query = Query({name: [] for name in RANKS}, {})
    pacer = Pacer(cast(Any, query), lambda: {"right": Left(query, "right")}, lambda _: None, 0.01)
    pacer.decide(0)
    report = EpochReport(0, state={"1-0": StateSize(waiting=1)})
    query.reports[0] = report
    pacer.done(report)
    (timer,) = pacer._timers
    timer.join()  # as long as the source is waited for
    assert query.wakes == 1
    query.pacer().resume()  # a run that begins where records wait asks as well
    assert query.wakes == 2


def test_what_stands_at_the_frontiers_time_behind_it_is_not_taken_out_and_put_back() -> None:
    kv = MemoryKV()
    step = InStep(kv, {"left": NO_COLUMNS})
    file = File("left", "a", (5, 5, 5))
    for frontier in (Frontier(5, 0, "x"), Frontier(5, 1, "a")):
        batch = [("left", file.batch(set(file.places())))] if frontier.rank == 0 else []
        (portion,) = step.portions(batch, frontier)
        assert portion == []
    assert [key for key, _ in kv.scan(b"", None) if key.endswith((0).to_bytes(8, "big"))]  # the first that was put in
    assert len(step) == 3
    (portion,) = step.portions([], Frontier(5, 1, "a", 2))
    assert [p[3] for p in processed(portion)] == [0, 1]
    assert len(step) == 1
