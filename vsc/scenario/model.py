"""Scenarios as frozen values, checked against their topology. Lines and columns are the YAML's, counted from 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsc.compiler.source import Position
from vsc.testing import FileRows

__all__ = [
    "Count",
    "Delete",
    "Drain",
    "Expectation",
    "Expected",
    "Pipe",
    "Question",
    "Quiet",
    "Read",
    "Scenario",
    "ScenarioFile",
    "Step",
]


@dataclass(frozen=True, slots=True)
class Pipe:
    """Rows for a source, one after the other. `timestamp` is in ms; if None, the timestamp column has it."""

    source: str
    rows: tuple[Mapping[str, Any], ...]
    timestamp: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of a file for a source."""

    rows: FileRows


@dataclass(frozen=True, slots=True)
class Delete:
    """Tombstones for a source table, or records without a value for a source stream: keys and a time in ms."""

    source: str
    keys: tuple[Mapping[str, Any], ...]
    timestamp: int


@dataclass(frozen=True, slots=True)
class Drain:
    """The end of the input."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """No source brings anything: their clocks go on to a time in ms."""

    until: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What a record, or a store's answer, is expected to be: its fields by name, not all of them in a `Partial`."""

    position: Position
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The records expected of a node since it was last checked. None: the file does not say yet."""

    position: Position
    node: str
    records: tuple[Expected, ...] | None


@dataclass(frozen=True, slots=True)
class Question:
    """What a store should answer for a key as of a time in ms (None: the newest). An `answer` of None means no row.

    `missing`: the file does not say yet.
    """

    position: Position
    store: str
    key: Mapping[str, Any]
    as_of: int | None
    answer: Expected | None
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """A number that is expected among `TopologyTestDriver.metrics`: its group, its node, and its reason, if any."""

    position: Position
    path: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, and what is checked afterwards. `number` counts from 1."""

    position: Position
    number: int
    action: Pipe | Read | Delete | Drain | Quiet
    expect: tuple[Expectation, ...]
    stores: tuple[Question, ...]
    metrics: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run of a topology from its beginning. `now` is its clock in ms; if None, no event time is too far ahead.

    `functions`: the modules from which it may call functions.
    """

    path: str
    position: Position
    name: str
    topology: Path
    variables: Mapping[str, str]
    partitions: int
    now: int | None
    steps: tuple[Step, ...]
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """The scenarios of one file."""

    path: str
    scenarios: tuple[Scenario, ...]
