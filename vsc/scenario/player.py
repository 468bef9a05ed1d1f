"""Plays a scenario on the test driver.

Guarantees: a scenario ends with the first step whose results differ from what is expected, and reports everything that
is wrong after that step. An expression that fails on a row is an outcome, not an exception; a bug in vsc is an
exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from vsc.compiler.source import Position
from vsc.runtime.errors import VscRuntimeError
from vsc.scenario.model import Count, Delete, Drain, Expectation, Expected, Pipe, Question, Quiet, Read, Scenario, Step
from vsc.scenario.values import is_expected
from vsc.testing import Record, TopologyTestDriver, VersionedRecord

__all__ = [
    "Disordered",
    "Outcome",
    "Stopped",
    "WrongAnswer",
    "WrongCount",
    "WrongRecords",
    "fields_of",
    "is_met",
    "play",
]


@dataclass(frozen=True, slots=True)
class WrongRecords:
    """A node's records differ from the expected ones."""

    position: Position
    step: int
    node: str
    expected: tuple[Expected, ...] | None
    seen: tuple[Record, ...]

    @property
    def missing(self) -> bool:
        """Whether the file does not say yet what is expected."""
        return self.expected is None

    @property
    def subject(self) -> str:
        """What it is about, in words."""
        return f"what `{self.node}` gives"


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A store's answer differs from the expected one."""

    position: Position
    step: int
    question: Question
    seen: VersionedRecord | None

    @property
    def missing(self) -> bool:
        """Whether the file does not say yet what is expected."""
        return self.question.missing

    @property
    def subject(self) -> str:
        """What it is about, in words."""
        return f"what the store `{self.question.store}` answers"


@dataclass(frozen=True, slots=True)
class WrongCount:
    """Another number was counted than is expected."""

    position: Position
    step: int
    expected: Count
    seen: int

    missing = False

    @property
    def subject(self) -> str:
        """What it is about, in words."""
        return f"the number of {'.'.join(self.expected.path)}"


@dataclass(frozen=True, slots=True)
class Stopped:
    """A step could not be done, with the reason in words."""

    position: Position
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Disordered:
    """Results depend on the order of arrival: the number of the run that shows it, and what to see in it."""

    position: Position
    step: int
    run: int
    told: str


Different = WrongRecords | WrongAnswer | WrongCount
"""What differs from what is expected."""
Wrong = Different | Stopped | Disordered
"""What can be wrong."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a scenario. It has passed if `wrong` is empty. `dropped`: rows of files, with their steps.

    `lost`, if it has failed: what was dropped until then, and look-ups that found nothing, in words.
    """

    scenario: Scenario
    wrong: tuple[Wrong, ...]
    dropped: tuple[tuple[Position, str], ...] = ()
    lost: tuple[str, ...] = ()


def play(scenario: Scenario, beyond: Callable[[Different], bool] = lambda wrong: False) -> Outcome:
    """Plays `scenario` to its end, or to the first step after which something is wrong.

    It goes on beyond what is wrong if `beyond` says so of all of it.
    """
    found: list[Different] = []
    dropped: list[tuple[Position, str]] = []
    step, lost = scenario.steps[0], tuple[str, ...]()
    try:
        with _driver(scenario) as driver:
            try:
                for step in scenario.steps:
                    dropped += [(step.position, told) for told in _do(driver, step)]
                    wrong = _look(driver, step)
                    found += wrong
                    if not all(map(beyond, wrong)):
                        break
            finally:
                lost = tuple(_lost(driver))
    except VscRuntimeError as error:
        return Outcome(scenario, (*found, Stopped(step.position, step.number, str(error))), tuple(dropped), lost)
    return Outcome(scenario, tuple(found), tuple(dropped), lost if found else ())


def _lost(driver: TopologyTestDriver) -> Iterator[str]:
    """What the nodes have dropped and not found so far, in words."""
    words = (("dropped_records", "dropped"), ("missed_lookups", "did not find a row for"))
    for metric, word in words:
        for node, reasons in driver.metrics().get(metric, {}).items():
            if isinstance(reasons, dict):
                counted = ", ".join(f"{count} ({reason})" for reason, count in reasons.items())
                yield f"`{node}` {word} {counted}"


def _driver(scenario: Scenario) -> TopologyTestDriver:
    return TopologyTestDriver(
        scenario.topology,
        variables=scenario.variables,
        partitions=scenario.partitions,
        now=scenario.now,
        functions=scenario.functions,
    )


def is_met(expected: Expected, seen: Record | VersionedRecord) -> bool:
    """Whether a record, or a store's answer, is what is expected."""
    return is_expected(expected.fields, fields_of(seen))


def fields_of(seen: Record | VersionedRecord) -> dict[str, Any]:
    """The fields by name, as a scenario file has them."""
    return {field.name: getattr(seen, field.name) for field in fields(seen)}


def _do(driver: TopologyTestDriver, step: Step) -> tuple[str, ...]:
    """Does it; returns in words which rows of a file were dropped."""
    match step.action:
        case Read(rows):
            return driver.pipe_rows(rows)
        case Pipe(source, rows, timestamp):
            for row in rows:
                driver.pipe(source, row, timestamp=timestamp)
        case Delete(source, keys, timestamp):
            for key in keys:
                driver.delete(source, key, timestamp=timestamp)
        case Drain():
            driver.drain()
        case Quiet(until):
            driver.quiet(until)
    return ()


def _look(driver: TopologyTestDriver, step: Step) -> tuple[Different, ...]:
    records = [_records(driver, step, expectation) for expectation in step.expect]
    answers = [_answer(driver, step, question) for question in step.stores]
    counts = [_count(driver, step, expected) for expected in step.metrics]
    return tuple(found for found in (*records, *answers, *counts) if found is not None)


def _count(driver: TopologyTestDriver, step: Step, expected: Count) -> WrongCount | None:
    seen: Any = driver.metrics()
    for name in expected.path:
        seen = seen.get(name, {})
    number = seen or 0
    return None if number == expected.number else WrongCount(expected.position, step.number, expected, number)


def _records(driver: TopologyTestDriver, step: Step, expectation: Expectation) -> WrongRecords | None:
    seen = tuple(driver.read(expectation.node))
    expected = expectation.records
    if expected is not None and len(seen) == len(expected) and all(map(is_met, expected, seen)):
        return None
    return WrongRecords(expectation.position, step.number, expectation.node, expected, seen)


def _answer(driver: TopologyTestDriver, step: Step, question: Question) -> WrongAnswer | None:
    seen = driver.store(question.store).get(question.key, as_of=question.as_of)
    expected = question.answer
    if question.missing:
        return WrongAnswer(question.position, step.number, question, seen)
    met = seen is None if expected is None else seen is not None and is_met(expected, seen)
    return None if met else WrongAnswer(question.position, step.number, question, seen)
