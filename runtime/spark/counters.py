"""What one task tells the driver about its epoch: how many rows, what was dropped, how big the state is.

Travels as JSON in a row of its own (`CONTROL`), beside the records. Not for the records themselves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from vsc.runtime.metrics import BadRow, Metrics
from vsc.runtime.operators.source.event_times import EventTimes
from vsc.runtime.spark.digest import combined
from vsc.runtime.spark.epoch_files import Tally
from vsc.runtime.spark.wire import CONTROL, WireRow

__all__ = ["EpochReport", "StateSize", "StoreState", "TaskCounters"]


@dataclass
class StoreState:
    """One store in one partition: rows and bytes in the local store (keys and values, uncompressed; estimates where an
    epoch writes very much), what waits in it for stream time, its stream time in ms (None: it has no clock)."""

    rows: int = 0
    bytes: int = 0
    held: int = 0
    stream_time: int | None = None

    def merged(self, other: StoreState) -> StoreState:
        """The store over both partitions: the sums, and the higher stream time."""
        times = [t for t in (self.stream_time, other.stream_time) if t is not None]
        return StoreState(
            self.rows + other.rows, self.bytes + other.bytes, self.held + other.held, max(times, default=None)
        )


@dataclass
class StateSize:
    """The state of one stage and partition: live rows, bytes of its blobs, and records that wait.

    `held` wait for stream time to go on (grace, windows, suppress), `waiting` for other sources.

    `stores`: the same store by store, by the names that `vsc store list` has; a table's further copies are called
    ``NAME@STAGE``.
    """

    rows: int = 0
    bytes: int = 0
    held: int = 0
    blobs: int = 0
    waiting: int = 0
    stores: dict[str, StoreState] = field(default_factory=dict)

    @classmethod
    def load(cls, data: dict[str, Any]) -> StateSize:
        """The size that ``dataclasses.asdict`` (or the JSON of it) shows."""
        stores = {name: StoreState(**store) for name, store in data.get("stores", {}).items()}
        return cls(**{**data, "stores": stores})


class TaskCounters:
    """The counters of one task: of a stage and vsc partition, or of a source task (stage 0)."""

    def __init__(self, stage: int, partition: int) -> None:
        self._stage = stage
        self._partition = partition
        self._metrics = Metrics()
        self._read: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._digests: dict[str, int] = {}
        self._clocks: dict[str, int] = {}
        self._times: dict[str, EventTimes] = {}
        self._seconds: dict[str, float] = {}
        self._state: StateSize | None = None

    def read(self, source: str, rows: int) -> None:
        """Counts rows that a source handed in, whether they could be used or not."""
        self._read[source] = self._read.get(source, 0) + rows

    def written(self, sink: str, rows: int) -> None:
        """Counts records on their way to a sink."""
        self._written[sink] = self._written.get(sink, 0) + rows

    def digest(self, sink: str, value: int) -> None:
        """Takes in the digest of one part of what is on its way to a sink."""
        self._digests[sink] = combined((self._digests.get(sink, 0), value))

    def clock(self, source: str, time: int) -> None:
        """Notes the highest event time that a source has brought."""
        self._clocks[source] = max(time, self._clocks.get(source, time))

    def times(self, source: str, seen: EventTimes) -> None:
        """Notes the event times of some rows of a source."""
        before = self._times.get(source)
        self._times[source] = seen if before is None else before.merged(seen)

    def merge(self, metrics: Metrics) -> None:
        """Takes over the operators' metrics."""
        self._metrics.merge(metrics)

    def mark(self, what: str, started: float) -> None:
        """Notes the seconds since `started` (of ``time.perf_counter``) under a name."""
        self._seconds[what] = round(time.perf_counter() - started, 6)

    def state(self, size: StateSize) -> None:
        """Notes the size of the state."""
        self._state = size

    def row(self) -> WireRow:
        """The counters as a row for the driver."""
        found: dict[str, Any] = {
            "stage": self._stage,
            "partition": self._partition,
            "metrics": self._metrics.as_dict(),
            "counts": self._metrics.flat(),
            "examples": [[*of, *row] for of, row in self._metrics.examples().items()],
            "read": self._read,
            "written": self._written,
            "digests": self._digests,
            "clocks": self._clocks,
            "times": {name: astuple(seen) for name, seen in self._times.items()},
            "seconds": self._seconds,
        }
        if self._state is not None:
            found["state"] = asdict(self._state)
        return WireRow(CONTROL, "", max(self._partition, 0), json.dumps(found, separators=(",", ":")).encode())


@dataclass
class EpochReport:
    """One epoch, as the driver knows it: the sums of its tasks, and the state of each (stage, partition) it touched.

    `clocks` are the highest event times, in ms, that sources have brought in it; `outstanding` is what they have still
    to bring behind it, by unit. `times` are the event times of all rows, `now` and `latest` by what they were judged:
    these are not kept.
    """

    epoch: int
    read: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    state: dict[str, StateSize] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    outstanding: dict[str, dict[str, float]] = field(default_factory=dict)
    times: dict[str, EventTimes] = field(default_factory=dict)
    now: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def gather(cls, epoch: int, payloads: Iterable[bytes]) -> EpochReport:
        """The sum of the counters in `payloads`."""
        report = cls(epoch)
        for payload in payloads:
            task = json.loads(payload)
            for target, found in ((report.read, task["read"]), (report.written, task["written"])):
                for name, rows in found.items():
                    target[name] = target.get(name, 0) + rows
            for name, digest in task["digests"].items():
                report.digests[name] = combined((report.digests.get(name, 0), digest))
            for name, clock in task["clocks"].items():
                report.clocks[name] = max(clock, report.clocks.get(name, clock))
            for name, times in task["times"].items():
                seen = EventTimes(*times)
                report.times[name] = seen.merged(report.times[name]) if name in report.times else seen
            report.metrics.merge(Metrics.from_dict(task["metrics"]))
            for node, reason, part, row, problem in task["examples"]:
                report.metrics.example(node, reason, BadRow(part, row, problem))
            for name, seconds in task["seconds"].items():
                stage = f"stage {task['stage']} {name}"
                report.seconds[stage] = max(report.seconds.get(stage, 0.0), seconds)
            if "state" in task:
                report.state[f"{task['stage']}-{task['partition']}"] = StateSize.load(task["state"])
        return report

    def rows(self, sink: str) -> Tally:
        """What the epoch gave a sink."""
        return Tally(self.written.get(sink, 0), self.digests.get(sink, 0))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "epoch": self.epoch,
            "read": self.read,
            "written": self.written,
            "metrics": self.metrics.as_dict(),
            "state": {k: asdict(v) for k, v in sorted(self.state.items())},
            "seconds": self.seconds,
            "clocks": self.clocks,
            "outstanding": self.outstanding,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EpochReport:
        """The report that `as_dict` (or the JSON of it) shows. KeyError, TypeError or ValueError for anything else."""
        clocks = data.get("clocks", {})
        waiting = [size.get("waiting", 0) for size in data["state"].values()]
        if any(type(number) is not int for number in (data["epoch"], *clocks.values(), *waiting)):
            raise ValueError("a number is none")
        return cls(
            data["epoch"], data["read"], data["written"], metrics=Metrics.from_dict(data["metrics"]),
            state={k: StateSize.load(v) for k, v in data["state"].items()}, seconds=data["seconds"],
            clocks=clocks, outstanding=data.get("outstanding", {}),
        )  # fmt: skip
