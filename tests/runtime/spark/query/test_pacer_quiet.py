"""When the driver writes a step of quiet, for which sources, and when it does not. Without a JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vsc.runtime.spark.exchange.counters import EpochReport, StateSize
from vsc.runtime.spark.query.pacer import Pacer

BEGAN = 100.0
"""Of the clock that only counts; the machine's shows ten times as many seconds."""


class Query:
    """A checkpoint in memory, the sources `a` and `b`, and time that the test moves."""

    def __init__(self, **left: Any) -> None:
        self.now, self.paces, self.reports = BEGAN, dict[int, str](), dict[int, EpochReport]()
        self.steps: list[tuple[int, list[str]]] = []
        inputs = {name: SimpleNamespace(backlog=lambda name=name: self._left(name)) for name in ("a", "b")}
        self.next: dict[str, str | None] = {"a": None, "b": None, **left}
        record: Any = SimpleNamespace(
            pace=self.paces.get, keep_pace=self.paces.__setitem__, report=self.reports.get, newest=lambda: None,
            request_quiet=lambda time, sources: self.steps.append((time, sources)), request_wake=lambda: None,
        )  # fmt: skip
        sources: Any = lambda: inputs  # noqa: E731
        self.pacer = Pacer(
            record, sources, lambda _: None, elapsed=lambda: self.now, quiet=5000, sources=("a", "b"),
            machine=lambda: int(self.now * 10_000),
        )  # fmt: skip

    def _left(self, name: str) -> Any:
        return SimpleNamespace(next=self.next[name], position=0, amounts={})

    def epoch(self, *due: tuple[int, list[str]], read: dict[str, int], waiting: int = 0) -> list[Any]:
        """An epoch, and the timers behind it: those of steps of quiet."""
        number = len(self.reports)
        self.pacer.decide(number)
        report = EpochReport(number, state={"1-0": StateSize(due=list(due), waiting=waiting)})
        report.read.update(read)
        self.reports[number] = report
        self.pacer.done(report)
        return [timer for timer in self.pacer._timers if timer.function != self.pacer._wake]


@pytest.fixture
def query() -> Any:
    found = Query()
    yield found
    while found.pacer._timers:
        found.pacer._timers.pop().cancel()


def test_a_step_is_written_when_something_is_due_and_its_sources_are_quiet(query: Query) -> None:
    (timer,) = query.epoch((7000, ["a"]), read={"a": 1})
    assert timer.interval == 5  # what is due is long past: as soon as the source is quiet
    query.now += 5
    timer.function()
    assert query.steps == [(1_050_000 - 5000, ["a", "b"])]
    (timer,) = query.epoch((1_100_000, ["a", "b"]), read={"a": 1})
    assert timer.interval == pytest.approx((1_100_000 + 5000 - 1_050_000) / 1000)
    query.now += 4
    timer.function()  # too early for `a`, which has brought something
    assert query.steps[1:] == [(1_090_000 - 5000, ["b"])]


def test_no_step_is_written_where_nothing_is_held_or_more_is_to_be_read(query: Query) -> None:
    assert query.epoch(read={"a": 1}) == []
    assert query.epoch((7000, ["a"]), read={"a": 1}, waiting=3) == []
    query.next["b"] = "file"
    assert query.epoch((7000, ["a"]), read={"a": 1}) == []


def test_what_is_never_due_asks_for_a_timer_that_can_be(query: Query) -> None:
    (timer,) = query.epoch((2**62, ["a"]), read={"a": 1})
    assert timer.is_alive()
