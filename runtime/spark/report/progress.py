"""What a run reports about itself: what it is doing, one event for each epoch, one at the end.

`Tracker` makes the events from the epochs' reports and Spark's timings; a `Display` shows them: `displays` on stderr,
`exporter` to Prometheus. Guarantees: what was dropped or not found is in the events, by reason. Not for words: those
are in `progress_text`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from vsc.plan.nodes import Plan
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize, StoreState, state_name
from vsc.runtime.spark.state.node_clocks import HeldHistory, NodeClocks

__all__ = ["Activity", "Batch", "Display", "Finished", "Lags", "Phase", "Tracker", "sink_names", "spent"]

Lags = Mapping[str, Mapping[str, float]]
"""By source, what is still to be read of it by unit: numbers that are 0 where all is read."""

_LATE = (Dropped.EXPIRED.value, Dropped.WINDOW_CLOSED.value)


class Phase(Enum):
    """What a run does at a moment. IDLE: all that there is has been read, and the run waits for more."""

    STARTING = auto()
    PREPARING = auto()
    WORKING = auto()
    IDLE = auto()
    STOPPING = auto()


@dataclass(frozen=True, slots=True)
class Activity:
    """What a run is doing now; `batch` is the epoch at work, if one is."""

    phase: Phase
    batch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """What both events have: rows read and written, in all and by source and by sink, and what became of the others.

    `held` records wait for stream time (for their grace, their window's end, in a `suppress`), `waiting` ones for other
    sources. `stores` and `lags` are by name, of the newest epoch, as are `clocks`, the clock of each source, and
    `behind`, how far each store's clock is behind its sources'. Both are in ms. `histories` says what keeps a table's
    history longer than its retention. Of the `partitions` of state that were worked on, so many had to be `restored`
    from the checkpoint.
    """

    duration_ms: int
    held: int = 0
    waiting: int = 0
    metrics: Metrics
    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    stores: Mapping[str, StoreState] = field(default_factory=dict)
    lags: Lags = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    behind: Mapping[str, int] = field(default_factory=dict)
    histories: Mapping[str, HeldHistory] = field(default_factory=dict)
    partitions: int = 0
    restored: int = 0

    @property
    def input_rows(self) -> int:
        """How many rows were read in all."""
        return sum(self.read.values())

    @property
    def output_rows(self) -> int:
        """How many rows were written in all."""
        return sum(self.written.values())

    @property
    def dropped(self) -> int:
        """How many records were dropped, for whatever reason."""
        return self.metrics.total(Group.DROPPED_RECORDS)

    @property
    def late(self) -> int:
        """How many of the dropped records came too late: for a store's grace, or for a window."""
        reasons = [r for r in self.metrics.as_dict()[Group.DROPPED_RECORDS.value].values() if isinstance(r, dict)]
        return sum(found.get(reason, 0) for found in reasons for reason in _LATE)

    @property
    def missed(self) -> int:
        """How many look-ups found nothing."""
        return self.metrics.total(Group.MISSED_LOOKUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(_Event):
    """One epoch, number `batch`. `duration_ms` is Spark's ``triggerExecution``; the state is that of all partitions."""

    batch: int
    state_rows: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(_Event):
    """The end of a run: sums over its `batches`. `waiting` is 0 unless the run was stopped before its sources' end.

    `spent`: the milliseconds of the batches, by what they were for.
    """

    batches: int
    spent: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Tracker:
    """Sums up a run.

    `sinks` is what users call each sink, `nodes` the node of each store with a clock, `timing` all clocks (None: clocks
    are not shown), `state` and `clocks` what is known of the partitions and sources from earlier runs, `started` when
    all of it began (``time.monotonic``), Spark's start included.
    """

    sinks: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    timing: NodeClocks | None = None
    state: dict[str, StateSize] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    lags: Lags = field(default_factory=dict)
    spent: Counter[str] = field(default_factory=Counter)
    partitions: int = 0
    restored: int = 0
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def after(cls, plan: Plan, reports: Iterable[EpochReport], started: float) -> Tracker:
        """A tracker of a plan's run that knows the state that earlier epochs left."""
        nodes = {state_name(store): store.node for store in stores_of(plan) if store.has_clock}
        lags: Lags = {node.name: {} for node in plan.sources}
        tracker = cls(sink_names(plan), nodes, NodeClocks(plan), lags=lags, started=started)
        for report in reports:
            tracker._take(report)
        return tracker

    def batch(self, report: EpochReport, duration_ms: int, job_ms: int | None = None) -> Batch:
        """The event of an epoch. `job_ms`: how much of its time Spark ran its jobs and sinks; None: unknown."""
        if job_ms is not None:
            self.spent.update(spent(report.seconds, duration_ms, job_ms))
        self.lags = {**self.lags, **report.outstanding}
        self.read.update(report.read)
        by_name = {self.sinks.get(sink, sink): rows for sink, rows in report.written.items()}
        self.written.update(by_name)
        self._take(report)
        self.batches += 1
        self.metrics.merge(report.metrics)
        self.partitions += len(report.state)
        self.restored += report.restored
        sizes = self.state.values()
        return Batch(
            batch=report.epoch,
            duration_ms=duration_ms,
            state_rows=sum(s.rows for s in sizes),
            state_bytes=sum(s.bytes for s in sizes),
            metrics=report.metrics,
            read=report.read,
            written=by_name,
            partitions=len(report.state),
            restored=report.restored,
            **self._now(),
        )

    def finished(self) -> Finished:
        """The event of the end."""
        elapsed = int((time.monotonic() - self.started) * 1000)
        return Finished(
            batches=self.batches,
            duration_ms=elapsed,
            metrics=self.metrics,
            read=dict(self.read),
            written=dict(self.written),
            partitions=self.partitions,
            restored=self.restored,
            spent=dict(self.spent),
            **self._now(),
        )

    def _now(self) -> dict[str, Any]:
        """How things stand after the newest epoch, over all partitions."""
        stores: dict[str, StoreState] = {}
        for size in self.state.values():
            for name, store in size.stores.items():
                stores[name] = stores[name].merged(store) if name in stores else store
        held, waiting = sum(s.held for s in self.state.values()), sum(s.waiting for s in self.state.values())
        behind: dict[str, int] = {}
        histories: dict[str, HeldHistory] = {}
        for name, store in stores.items():
            node = self.nodes.get(name)  # None: another topology has kept it
            if self.timing is not None and node is not None:
                shown = self.timing.shown(node, store.stream_time, self.clocks)
                stores[name] = replace(store, stream_time=shown.time)
                behind |= {} if shown.behind is None else {name: shown.behind}
                if (held_by := self.timing.history(node, self.clocks)) is not None:
                    histories[name] = held_by
        return {
            "held": held, "waiting": waiting, "stores": dict(sorted(stores.items())), "lags": self.lags,
            "clocks": dict(self.clocks), "behind": behind, "histories": dict(sorted(histories.items())),
        }  # fmt: skip

    def _take(self, report: EpochReport) -> None:
        self.state.update(report.state)
        for source, highest in self.timing.clocks(report).items() if self.timing is not None else ():
            self.clocks[source] = max(highest, self.clocks.get(source, highest))


def spent(seconds: Mapping[str, float], duration_ms: int, job_ms: int) -> dict[str, float]:
    """The milliseconds of an epoch, by what they were for, from the `seconds` of the slowest task of each stage.

    Where the tasks of a stage take turns on the cores, the others' time counts as that of sinks and shuffle.
    """
    own = {"reading": 0.0, "stages": 0.0, "state": 0.0}
    for name, value in seconds.items():
        stage, _, step = name.removeprefix("stage ").partition(" ")
        own["reading" if stage == "0" else "state" if step == "commit" else "stages"] += value * 1000
    found = own | {"sinks and shuffle": max(0.0, job_ms - sum(own.values()))}
    return found | {"planning and logs": max(0.0, duration_ms - sum(found.values()))}


def sink_names(plan: Plan) -> dict[str, str]:
    """What users call each sink, by its id: its node; with the connector, if a node has several sinks, and a number if
    that is not enough."""
    of_node = Counter(sink.owner for sink in plan.sinks)
    seen: Counter[str] = Counter()
    found = {}
    for sink in plan.sinks:
        name = sink.owner if of_node[sink.owner] == 1 else f"{sink.owner} to {sink.connector.kind}"
        seen[name] += 1
        found[sink.id] = name if seen[name] == 1 else f"{name} {seen[name]}"
    return found


class Display:
    """Shows events. This one shows nothing."""

    def doing(self, activity: Activity) -> None:
        """What the run is doing; called often, with an equal `activity` as long as that goes on."""

    def batch(self, event: Batch) -> None:
        """An epoch is done."""

    def finished(self, event: Finished) -> None:
        """The run is over."""

    def close(self) -> None:
        """Nothing more comes; also after a failure."""
