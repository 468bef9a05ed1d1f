"""What to run, and how; the words and durations of ``--trigger`` and ``--max-idle``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from vsc.plan.nodes import Plan
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.times import event_time
from vsc.runtime.values import brief

__all__ = ["Run", "Time", "as_text", "clock_of", "idle_ms", "is_bounded", "spark_trigger"]

Time = int | str | datetime
"""A time as users give it: see `vsc.runtime.times`."""

_EXAMPLES = {
    "checkpoint": "the path of a folder", "trigger": "'10 seconds'", "max_idle": "'10 seconds'",
    "local_dir": "the path of a folder", "max_bad": "'1%', or '100'",
    "lineage": "the path of a file, or a URL",
}  # fmt: skip
_REQUIRED = ("checkpoint", "trigger")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,10})\s*(ms|millisecond|s|second|m|minute|h|hour|d|day)s?\Z")


@dataclass(frozen=True, slots=True)
class Run:
    """The arguments of `vsc.runtime.spark.start`, `drain`, `observe`: whether Spark's own progress has the epochs'
    numbers, and when all of it `began` (``time.monotonic``), before Spark started. ConfigurationError for one
    of a wrong type.

    What their values mean is checked where they are used.
    """

    plan: Plan
    checkpoint: str
    variables: Mapping[str, str] = field(default_factory=dict)
    partitions: int | None = None
    trigger: str = "available-now"
    max_idle: str | None = None
    local_dir: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    back_to: int | None = None
    drain: bool = False
    max_bad: str | None = None
    lineage: str | None = None
    observe: bool = True
    began: float = field(default_factory=time.monotonic)

    @property
    def local_folder(self) -> str | None:
        """The path of `local_dir`, which executors take as it is."""
        return None if self.local_dir is None else os.path.abspath(self.local_dir)

    def __post_init__(self) -> None:
        for problem, help in _wrong_types(self):
            raise ConfigurationError(problem, help)


def as_text(path: str | os.PathLike[str]) -> str:
    """A path as Spark takes it."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def clock_of(now: Time | None) -> int | None:
    """A fixed time for a run's clock, in ms. ConfigurationError if it is not a time."""
    try:
        return None if now is None else event_time(now)
    except (ValueError, OverflowError) as error:
        help = "give ms, ISO text or an aware datetime"
        raise ConfigurationError(f"`now` is a time, not {brief(now)}", help) from error


def spark_trigger(text: str) -> dict[str, Any]:
    """The arguments for Spark's ``trigger``. ConfigurationError if the text is not a trigger."""
    if text == "available-now":
        return {"availableNow": True}
    if text == "once":
        return {"once": True}
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(
            f"{text!r} is not a trigger", "give available-now, once, or a duration such as '10 seconds' or '500 ms'"
        )
    return {"processingTime": f"{found} milliseconds"}


def is_bounded(trigger: str) -> bool:
    """Whether a query with this trigger stops when it has read what there is."""
    return trigger in ("available-now", "once")


def idle_ms(text: str) -> int:
    """`max_idle` in ms. ConfigurationError if the text is not a duration."""
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(
            f"--max-idle: {text!r} is not a valid duration", "give one such as '10 seconds' or '500 ms'"
        )
    return found


def _milliseconds(text: str) -> int | None:
    """A duration in ms; None if the text is not one. Ten digits at most: Spark counts in 64 bits."""
    match = _DURATION.match(text.strip())
    if match is None:
        return None
    unit = match.group(2)
    return int(match.group(1)) * (_UNITS["ms"] if unit in ("ms", "millisecond") else _UNITS[unit[0]])


def _wrong_types(run: Run) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do."""
    values: dict[str, object] = {name: getattr(run, name) for name in Run.__dataclass_fields__}
    if not isinstance(values["plan"], Plan):
        yield f"`plan` is what `compile_topology` gives, not {brief(run.plan)}", "compile the topology first"
    for name, example in _EXAMPLES.items():
        value = values[name]
        if not isinstance(value, str) and (value is not None or name in _REQUIRED):
            yield f"`{name}` is a text, not {brief(value)}", f"give {example}"
    for name in ("partitions", "back_to"):
        value = values[name]
        if value is not None and type(value) is not int:
            yield f"`{name}` is a whole number, not {brief(value)}", "give a number, or leave it out"
    variables = values["variables"]
    if not isinstance(variables, Mapping):
        yield f"`variables` are a mapping of names to texts, not {brief(variables)}", "give {'name': 'value'}"
    else:
        for name, text in variables.items():
            if not isinstance(name, str) or not isinstance(text, str):
                yield f"the value of a variable is a text: {brief(name)} has {brief(text)}", "give {'name': 'value'}"
    for name in ("on_bad_row", "on_error"):
        value = getattr(run.options, name)
        if value not in ("drop", "fail"):
            yield f"`{name}` is 'drop' or 'fail', not {brief(value)}", "give one of them"
