"""What one task tells the driver about its epoch: how many rows, what was dropped, how big the state is.

Travels as JSON in a row of its own (`CONTROL`), beside the records. Not for the records themselves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from time import perf_counter
from typing import Any

from vsc.runtime.metrics import BadRow, Metrics
from vsc.runtime.operators.source.rows import EventTimes
from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.spark.exchange.digest import combined
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.exchange.wire import CONTROL, WireRow

__all__ = ["EpochReport", "StateSize", "StoreState", "TaskCounters", "state_name"]


def state_name(store: StoreInfo) -> str:
    """What the state of a store is called in `StateSize.stores`."""
    return store.name if store.canonical else f"{store.name}@{store.stage}"


@dataclass
class StoreState:
    """One store in one partition: rows and bytes in the local store (keys and values, uncompressed; estimates where an
    epoch writes very much), how much is held until stream time advances, its stream time in ms (None: no clock)."""

    rows: int = 0
    bytes: int = 0
    held: int = 0
    stream_time: int | None = None

    def merged(self, other: StoreState) -> StoreState:
        """The store over both partitions: the sums, and the lower stream time."""
        times = [t for t in (self.stream_time, other.stream_time) if t is not None]
        return StoreState(
            self.rows + other.rows, self.bytes + other.bytes, self.held + other.held, min(times, default=None)
        )


@dataclass
class StateSize:
    """The state of one stage and partition: live rows, bytes of its blobs, and records that wait.

    `held` wait for stream time to go on (grace, windows, suppress), `waiting` for other sources, as do so many `steps`
    of the input's clock.

    `due`: where the topology has a `quiet`, what the clock of the input shows when the first of what is held is due,
    with the sources whose clock that is.

    `stores`: the same store by store, by the names that `vsc store list` has; a table's further copies are called
    ``NAME@STAGE``.
    """

    rows: int = 0
    bytes: int = 0
    held: int = 0
    blobs: int = 0
    waiting: int = 0
    stores: dict[str, StoreState] = field(default_factory=dict)
    steps: int = 0
    due: list[tuple[int, list[str]]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The size as plain JSON; without `due` where a former vsc did not have it, either."""
        data = asdict(self)
        return data if self.due else {name: value for name, value in data.items() if name != "due"}

    @classmethod
    def load(cls, data: dict[str, Any]) -> StateSize:
        """The size that `as_dict` (or the JSON of it) shows."""
        stores = {name: StoreState(**store) for name, store in data.get("stores", {}).items()}
        return cls(**{**data, "stores": stores})


@dataclass(kw_only=True)
class _Counted:
    """What is counted of an epoch: by a task, then by the driver over all of its tasks.

    `read` are the rows that sources handed in, whether they could be used or not, `written` the records on their way to
    sinks, `clocks` the highest event times, in ms, that sources have brought, `gone_on` those of what did not have to
    wait, if stream time is that of the input, `quieted` the times to which sources that bring nothing were moved,
    `times` the event times of all rows. `restored` are the partitions whose
    state was not on the disk of the executor and was taken from the checkpoint.
    """

    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    digests: dict[str, int] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    seconds: dict[str, float] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    gone_on: dict[str, int] = field(default_factory=dict)
    quieted: dict[str, int] = field(default_factory=dict)
    times: dict[str, EventTimes] = field(default_factory=dict)
    restored: int = 0

    def digest(self, sink: str, value: int) -> None:
        """Takes in the digest of one part of what is on its way to a sink."""
        self.digests[sink] = combined((self.digests.get(sink, 0), value))

    def clock(self, source: str, time: int) -> None:
        """Notes the highest event time that a source has brought."""
        self.clocks[source] = max(time, self.clocks.get(source, time))

    def passed(self, source: str, time: int) -> None:
        """Notes the highest event time of a source among what went on."""
        self.gone_on[source] = max(time, self.gone_on.get(source, time))

    def time(self, source: str, seen: EventTimes) -> None:
        """Notes the event times of some rows of a source."""
        before = self.times.get(source)
        self.times[source] = seen if before is None else before.merged(seen)


@dataclass
class TaskCounters(_Counted):
    """The counters of one task: of a stage and vsc partition, or of a source task (stage 0)."""

    stage: int
    partition: int
    state: StateSize | None = None

    def mark(self, what: str, started: float) -> None:
        """Notes the seconds since `started` (of ``time.perf_counter``) under a name."""
        self.seconds[what] = round(perf_counter() - started, 6)

    def row(self) -> WireRow:
        """The counters as a row for the driver."""
        members: dict[str, Any] = {
            "stage": self.stage,
            "partition": self.partition,
            "metrics": self.metrics.as_dict(),
            "counts": self.metrics.flat(),
            "examples": [[*of, *row] for of, row in self.metrics.examples().items()],
            "read": self.read,
            "written": self.written,
            "digests": self.digests,
            "clocks": self.clocks,
            "times": {name: astuple(seen) for name, seen in self.times.items()},
            "seconds": self.seconds,
        }
        if self.gone_on:
            members["gone_on"] = self.gone_on
        if self.quieted:
            members["quieted"] = self.quieted
        if self.restored:
            members["restored"] = self.restored
        if self.state is not None:
            members["state"] = self.state.as_dict()
        return WireRow(CONTROL, "", max(self.partition, 0), json.dumps(members, separators=(",", ":")).encode())


@dataclass
class EpochReport(_Counted):
    """One epoch, as the driver knows it: the sums of its tasks, and the state of each (stage, partition) it touched.

    `outstanding` is what sources have still to bring behind it, by unit. `now` and `latest` are what event times were
    judged by; these and `times` are not kept.
    """

    epoch: int
    state: dict[str, StateSize] = field(default_factory=dict)
    outstanding: dict[str, dict[str, float]] = field(default_factory=dict)
    now: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def gather(cls, epoch: int, payloads: Iterable[bytes]) -> EpochReport:
        """The sum of the counters in `payloads`."""
        report = cls(epoch)
        for payload in payloads:
            task = json.loads(payload)
            report.read.update(task["read"])
            report.written.update(task["written"])
            for name, digest in task["digests"].items():
                report.digest(name, digest)
            for name, clock in task["clocks"].items():
                report.clock(name, clock)
            for name, clock in task.get("gone_on", {}).items():
                report.passed(name, clock)
            report.quieted |= task.get("quieted", {})
            for name, times in task["times"].items():
                report.time(name, EventTimes(*times))
            report.restored += task.get("restored", 0)
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
            "state": {k: v.as_dict() for k, v in sorted(self.state.items())},
            "seconds": self.seconds,
            "clocks": self.clocks,
            "gone_on": self.gone_on,
            **({"quieted": self.quieted} if self.quieted else {}),
            "outstanding": self.outstanding,
            "restored": self.restored,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EpochReport:
        """The report that `as_dict` (or the JSON of it) shows. KeyError, TypeError or ValueError for anything else."""
        clocks, gone_on, restored = data.get("clocks", {}), data.get("gone_on", {}), data.get("restored", 0)
        quieted = data.get("quieted", {})
        waiting = [size.get(what, 0) for size in data["state"].values() for what in ("waiting", "steps")]
        numbers = (data["epoch"], *clocks.values(), *gone_on.values(), *quieted.values(), *waiting, restored)
        if any(type(number) is not int for number in numbers):
            raise ValueError("a number is not valid")
        return cls(
            data["epoch"], read=Counter(data["read"]), written=Counter(data["written"]),
            metrics=Metrics.from_dict(data["metrics"]),
            state={k: StateSize.load(v) for k, v in data["state"].items()}, seconds=data["seconds"],
            clocks=clocks, gone_on=gone_on, quieted=quieted, outstanding=data.get("outstanding", {}), restored=restored,
        )  # fmt: skip
