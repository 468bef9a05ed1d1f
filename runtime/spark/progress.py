"""What a person, or a program, sees of a running query: one event for each epoch, one at the end.

`Tracker` makes the events from the epochs' reports and Spark's timings; a `Display` shows them: lines, JSON or a live
bar, always on the stream it is given (stderr). Guarantees: what was dropped and what was missed is shown by reason.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, Literal, Protocol

from vsc.runtime.metrics import HELD_RECORDS, LONGEST_SESSION, RETENTION_NEEDED, Dropped, Group, Metrics, Missed
from vsc.runtime.spark.counters import EpochReport, StateSize, StoreState
from vsc.runtime.spark.lag import Lags
from vsc.runtime.spark.table_text import time_text

__all__ = [
    "Batch",
    "Both",
    "Display",
    "Finished",
    "JsonDisplay",
    "Tracker",
    "batch_text",
    "display",
    "duration_text",
    "finished_text",
    "notes",
    "summary",
]

Style = Literal["auto", "bar", "lines", "json", "none"]


_SHOWN = 8
_LATE = (Dropped.EXPIRED.value, Dropped.WINDOW_CLOSED.value)


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
    held: int = 0
    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    stores: Mapping[str, StoreState] = field(default_factory=dict)
    lags: Lags = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        """How many records were dropped, for whatever reason."""
        return self.metrics.total(Group.DROPPED_RECORDS)

    @property
    def late(self) -> int:
        """How many of them came too late: for a store's grace, or for a window."""
        return late(self.metrics)

    @property
    def missed(self) -> int:
        """How many look-ups found nothing."""
        return self.metrics.total(Group.MISSED_LOOKUPS)


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
    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    stores: Mapping[str, StoreState] = field(default_factory=dict)
    lags: Lags = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        """How many records were dropped, for whatever reason."""
        return self.metrics.total(Group.DROPPED_RECORDS)

    @property
    def late(self) -> int:
        """How many of them came too late: for a store's grace, or for a window."""
        return late(self.metrics)

    @property
    def missed(self) -> int:
        """How many look-ups found nothing."""
        return self.metrics.total(Group.MISSED_LOOKUPS)


@dataclass
class Tracker:
    """Sums up a run. `state` is what is known of the partitions from earlier runs."""

    state: dict[str, StateSize] = field(default_factory=dict)
    batches: int = 0
    input_rows: int = 0
    output_rows: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    lags: Lags = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def after(cls, reports: Iterable[EpochReport]) -> Tracker:
        """A tracker that knows the state that earlier epochs left."""
        tracker = cls()
        for report in reports:
            tracker.state.update(report.state)
        return tracker

    def batch(self, report: EpochReport, duration_ms: int, lags: Lags | None = None) -> Batch:
        """The event of an epoch; `lags` are those of its sources, as far as they are known."""
        self.lags = {**(lags or {}), **report.outstanding}
        self.read.update(report.read)
        self.written.update(report.written)
        self.state.update(report.state)
        read, written = sum(report.read.values()), sum(report.written.values())
        self.batches += 1
        self.input_rows += read
        self.output_rows += written
        self.metrics.merge(report.metrics)
        sizes = self.state.values()
        rows, stored = sum(s.rows for s in sizes), sum(s.bytes for s in sizes)
        return Batch(
            report.epoch, read, written, duration_ms, rows, stored, self._waiting(), report.metrics,
            self._held(), report.read, report.written, self._stores(), self.lags,
        )  # fmt: skip

    def finished(self) -> Finished:
        """The event of the end."""
        elapsed = int((time.monotonic() - self.started) * 1000)
        return Finished(
            self.batches, self.input_rows, self.output_rows, elapsed, self._held(), self._waiting(), self.metrics,
            dict(self.read), dict(self.written), self._stores(), self.lags,
        )  # fmt: skip

    def _waiting(self) -> int:
        return sum(s.waiting for s in self.state.values())

    def _held(self) -> int:
        return sum(s.held for s in self.state.values())

    def _stores(self) -> dict[str, StoreState]:
        """The stores over all partitions, by name."""
        found: dict[str, StoreState] = {}
        for size in self.state.values():
            for name, store in size.stores.items():
                found[name] = found[name].merged(store) if name in found else store
        return dict(sorted(found.items()))


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


class Both:
    """Two displays at once."""

    def __init__(self, first: Display, second: Display) -> None:
        self._displays = first, second

    def batch(self, event: Batch) -> None:
        """To both."""
        for one in self._displays:
            one.batch(event)

    def finished(self, event: Finished) -> None:
        """To both."""
        for one in self._displays:
            one.finished(event)

    def close(self) -> None:
        """Both."""
        for one in self._displays:
            one.close()


class LinesDisplay:
    """One line a batch, a few at the end."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr

    def batch(self, event: Batch) -> None:
        """One line, and one more for each kind of thing that was dropped or missed."""
        self._show(batch_text(event), *notes(event.metrics))

    def finished(self, event: Finished) -> None:
        """What there was in all; the last line holds what a user should act on."""
        for line in summary(event):
            print(line, file=self._stream)
        self._show(finished_text(event), *notes(event.metrics))

    def close(self) -> None:
        """Nothing."""

    def _show(self, first: str, *more: str) -> None:
        print("; ".join([first, *more]), file=self._stream, flush=True)


class JsonDisplay:
    """One JSON object a line: see ``docs/running.md``. `logged`: with a time and a level, as the lines of a log."""

    def __init__(self, stream: IO[str], logged: bool = False) -> None:
        self._stream = stream
        self._logged = logged

    def batch(self, event: Batch) -> None:
        """``{"event": "batch", ...}``."""
        names = ("batch", "input_rows", "output_rows", "duration_ms", "state_rows", "state_bytes", "waiting", "dropped")
        self._show("batch", (*names, "late", "missed", "held"), event)

    def finished(self, event: Finished) -> None:
        """``{"event": "finished", ...}``."""
        names = ("batches", "input_rows", "output_rows", "duration_ms", "held", "waiting", "dropped")
        self._show("finished", (*names, "late", "missed"), event)

    def close(self) -> None:
        """Nothing."""

    def _show(self, kind: str, names: tuple[str, ...], event: Batch | Finished) -> None:
        line: dict[str, Any] = {"event": kind, **{name: getattr(event, name) for name in names}}
        line["metrics"] = event.metrics.as_dict()
        sources = sorted({*event.read, *event.lags})
        line["sources"] = {n: {"rows": event.read.get(n, 0), "lag": event.lags.get(n, {})} for n in sources}
        line["sinks"] = {name: {"rows": rows} for name, rows in sorted(event.written.items())}
        line["stores"] = {name: asdict(store) for name, store in event.stores.items()}
        if self._logged:
            line = {"time": datetime.now(UTC).isoformat(), "level": "info", **line}
        print(json.dumps(line, separators=(", ", ": ")), file=self._stream, flush=True)


def late(metrics: Metrics) -> int:
    """How many records were dropped because they came too late."""
    reasons = [r for r in metrics.as_dict()[Group.DROPPED_RECORDS.value].values() if isinstance(r, dict)]
    return sum(found.get(reason, 0) for found in reasons for reason in _LATE)


def batch_text(event: Batch) -> str:
    """A batch in one line."""
    rate = event.input_rows / max(event.duration_ms, 1) * 1000
    text = (
        f"batch {event.batch}: {event.input_rows:,} rows in, {event.output_rows:,} out, {event.duration_ms:,} ms "
        f"({rate:,.0f} rows/s), state {event.state_rows:,} rows {_bytes(event.state_bytes)}{_waits(event)}"
    )
    return text + (f", {event.waiting:,} records wait for other sources" if event.waiting else "")


def _waits(event: Batch) -> str:
    """What is held, and what the sources have still to bring, where there is any."""
    behind = [f"{name} {n:,.0f} {unit}" for name, lag in event.lags.items() for unit, n in lag.items() if n]
    held = f", {event.held:,} held" if event.held else ""
    return held + (f", behind: {', '.join(behind)}" if behind else "")


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


def summary(event: Finished) -> list[str]:
    """The run in a few lines: what went in and out, what was left out and why, what waits, what is kept."""
    found = [("read", _counts(event.read)), ("written", _counts(event.written))]
    lags = [(name, unit, amount) for name, lag in event.lags.items() for unit, amount in lag.items() if amount]
    found += [("lag", [f"{name} {amount:,.0f} {unit}" for name, unit, amount in lags])]
    data = event.metrics.as_dict()
    found += [("dropped", _reasons(data[Group.DROPPED_RECORDS.value]))]
    found += [("not found", _reasons(data[Group.MISSED_LOOKUPS.value]))]
    found += [("held", [f"{name} {s.held:,}" for name, s in event.stores.items() if s.held])]
    found += [("at most", [f"{n:,} held in '{node}'" for node, n in data.get(HELD_RECORDS, {}).items()])]
    longest = data.get(LONGEST_SESSION, {})
    found += [
        ("longest", [f"session {duration_text(n)} in '{node}'" for node, n in longest.items() if isinstance(n, int)])
    ]
    found += [("state", [_store_text(name, store) for name, store in event.stores.items()])]
    lines = []
    for title, parts in found:
        shown = parts[:_SHOWN] + ([f"and {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else [])
        lines += [f"  {title:<9} {', '.join(shown)}"] if shown else []
    return lines


def _counts(rows: Mapping[str, int]) -> list[str]:
    return [f"{name} {count:,}" for name, count in sorted(rows.items())]


def _reasons(nodes: Mapping[str, Any]) -> list[str]:
    return [f"{n:,} {reason} in '{node}'" for node, reasons in nodes.items() for reason, n in reasons.items()]


def _store_text(name: str, store: StoreState) -> str:
    clock = "" if store.stream_time is None else f" up to {time_text(store.stream_time)}"
    return f"{name} {store.rows:,} rows {_bytes(store.bytes)}{clock}"


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
    return ", ".join(_reasons(nodes))


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
