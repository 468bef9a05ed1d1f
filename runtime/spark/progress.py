"""What a person, or a program, sees of a running query: one event for each epoch, one at the end.

`Tracker` makes the events from the epochs' reports and Spark's timings; a `Display` shows them: lines, JSON or a live
bar, always on the stream it is given (stderr). Guarantees: what was dropped and what was missed is shown by reason.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, Any, Literal, Protocol

from vsc.runtime.metrics import RETENTION_NEEDED, Group, Metrics, Missed
from vsc.runtime.spark.counters import EpochReport, StateSize

__all__ = ["Batch", "Display", "Finished", "Tracker", "display", "duration_text", "notes"]

Style = Literal["auto", "bar", "lines", "json", "none"]


@dataclass(frozen=True, slots=True)
class Batch:
    """One epoch: rows read, rows for sinks, Spark's ``triggerExecution`` in ms, the state of all partitions.

    `waiting` records wait for other sources.
    """

    batch: int
    input_rows: int
    output_rows: int
    duration_ms: int
    state_rows: int
    state_bytes: int
    waiting: int
    metrics: Metrics

    @property
    def dropped(self) -> int:
        """How many records were dropped, for whatever reason."""
        return self.metrics.total(Group.DROPPED_RECORDS)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end: sums over this run.

    `held` counts what still waits for stream time: for its grace, its window's end, in a `suppress`; `waiting` what
    waits for other sources, where the run was stopped before their end.
    """

    batches: int
    input_rows: int
    output_rows: int
    duration_ms: int
    held: int
    waiting: int
    metrics: Metrics

    @property
    def dropped(self) -> int:
        """How many records were dropped, for whatever reason."""
        return self.metrics.total(Group.DROPPED_RECORDS)


@dataclass
class Tracker:
    """Sums up a run. `state` is what is known of the partitions from earlier runs."""

    state: dict[str, StateSize] = field(default_factory=dict)
    batches: int = 0
    input_rows: int = 0
    output_rows: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def after(cls, reports: Iterable[EpochReport]) -> Tracker:
        """A tracker that knows the state that earlier epochs left."""
        tracker = cls()
        for report in reports:
            tracker.state.update(report.state)
        return tracker

    def batch(self, report: EpochReport, duration_ms: int) -> Batch:
        """The event of an epoch."""
        self.state.update(report.state)
        read, written = sum(report.read.values()), sum(report.written.values())
        self.batches += 1
        self.input_rows += read
        self.output_rows += written
        self.metrics.merge(report.metrics)
        sizes = self.state.values()
        rows, stored = sum(s.rows for s in sizes), sum(s.bytes for s in sizes)
        return Batch(report.epoch, read, written, duration_ms, rows, stored, self._waiting(), report.metrics)

    def finished(self) -> Finished:
        """The event of the end."""
        held = sum(s.held for s in self.state.values())
        elapsed = int((time.monotonic() - self.started) * 1000)
        return Finished(self.batches, self.input_rows, self.output_rows, elapsed, held, self._waiting(), self.metrics)

    def _waiting(self) -> int:
        return sum(s.waiting for s in self.state.values())


class Display(Protocol):
    """Shows events."""

    def batch(self, event: Batch) -> None:
        """An epoch is done."""
        ...

    def finished(self, event: Finished) -> None:
        """The run is over."""
        ...

    def close(self) -> None:
        """Nothing more comes; also after a failure."""
        ...


def display(style: Style, stream: IO[str]) -> Display:
    """The display of a style; ``auto`` is a bar on a terminal, else lines."""
    if style == "auto":
        style = "bar" if stream.isatty() else "lines"
    match style:
        case "bar":
            from vsc.runtime.spark.progress_bar import BarDisplay

            return BarDisplay(stream)
        case "lines":
            return LinesDisplay(stream)
        case "json":
            return JsonDisplay(stream)
        case _:
            return SilentDisplay()


class SilentDisplay:
    """Shows nothing."""

    def batch(self, event: Batch) -> None:
        """Nothing."""

    def finished(self, event: Finished) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LinesDisplay:
    """One line a batch, a few at the end."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr

    def batch(self, event: Batch) -> None:
        """One line, and one more for each kind of thing that was dropped or missed."""
        self._show(batch_text(event), *notes(event.metrics))

    def finished(self, event: Finished) -> None:
        """What there was in all; the last line holds what a user should act on."""
        self._show(finished_text(event), *notes(event.metrics))

    def close(self) -> None:
        """Nothing."""

    def _show(self, first: str, *more: str) -> None:
        print("; ".join([first, *more]), file=self._stream, flush=True)


class JsonDisplay:
    """One JSON object a line: see ``docs/running.md``."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def batch(self, event: Batch) -> None:
        """``{"event": "batch", ...}``."""
        names = ("batch", "input_rows", "output_rows", "duration_ms", "state_rows", "state_bytes", "waiting", "dropped")
        self._show("batch", {name: getattr(event, name) for name in names}, event.metrics)

    def finished(self, event: Finished) -> None:
        """``{"event": "finished", ...}``."""
        names = ("batches", "input_rows", "output_rows", "duration_ms", "held", "waiting", "dropped")
        self._show("finished", {name: getattr(event, name) for name in names}, event.metrics)

    def close(self) -> None:
        """Nothing."""

    def _show(self, event: str, values: dict[str, Any], metrics: Metrics) -> None:
        line = {"event": event, **values, "metrics": metrics.as_dict()}
        print(json.dumps(line, separators=(", ", ": ")), file=self._stream, flush=True)


def batch_text(event: Batch) -> str:
    """A batch in one line."""
    rate = event.input_rows / max(event.duration_ms, 1) * 1000
    text = (
        f"batch {event.batch}: {event.input_rows:,} rows in, {event.output_rows:,} out, {event.duration_ms:,} ms "
        f"({rate:,.0f} rows/s), state {event.state_rows:,} rows {_bytes(event.state_bytes)}"
    )
    return text + (f", {event.waiting:,} records wait for other sources" if event.waiting else "")


def finished_text(event: Finished) -> str:
    """The end in one line."""
    batches = f"{event.batches:,} batch" + ("" if event.batches == 1 else "es")
    rows = f"{event.input_rows:,} rows in, {event.output_rows:,} out"
    text = f"finished: {batches}, {rows}, {event.duration_ms / 1000:,.1f} s"
    if event.held:
        text += f"; {event.held:,} records wait for stream time to go on (--drain lets them out)"
    if event.waiting:
        text += f"; {event.waiting:,} records wait for sources that have not been read to their end"
    return text


def notes(metrics: Metrics) -> list[str]:
    """What was dropped and what was missed, each as a phrase with its counts by node and reason."""
    data = metrics.as_dict()
    found = []
    dropped, missed = data[Group.DROPPED_RECORDS.value], data[Group.MISSED_LOOKUPS.value]
    if dropped:
        found.append("dropped " + _by_reason(dropped))
    if missed:
        found.append("look-ups without a row " + _by_reason(missed))
    needed = data.get(RETENTION_NEEDED, {})
    for node, reasons in missed.items():
        late = reasons.get(Missed.OLDER_THAN_RETENTION.value, 0) if isinstance(reasons, dict) else 0
        wanted = needed.get(node)
        if late and isinstance(wanted, int):
            found.append(
                f"in '{node}' {late:,} look-ups were older than the table's history retention: the table is read ahead "
                f"of the stream, and a retention of {duration_text(wanted)} would have served them"
            )
    return found


def _by_reason(nodes: dict[str, Any]) -> str:
    parts = [f"{n:,} {reason} in '{node}'" for node, reasons in nodes.items() for reason, n in reasons.items()]
    return ", ".join(parts)


def duration_text(ms: int) -> str:
    """A duration as the language writes it, rounded up to two units at most."""
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000), ("ms", 1))
    for i, (name, size) in enumerate(units[:-1]):
        if ms >= size:
            following, smaller = units[i + 1]
            whole, rest = divmod(-(-ms // smaller) * smaller, size)
            text = _unit(whole, name)
            return f"{text} {_unit(rest // smaller, following)}" if rest else text
    return f"{ms} ms"


def _unit(n: int, name: str) -> str:
    return f"{n} ms" if name == "ms" else f"{n} {name}" + ("" if n == 1 else "s")


def _bytes(n: int) -> str:
    size = float(n)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
