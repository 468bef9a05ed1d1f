"""The driver decides of an epoch, before it runs, who is waited for, and the clock. The decision is kept, and the same
when the epoch is repeated.

A source is waited for as long as Spark has input of it that it has not handed out, and, with a trigger interval, for
up to `max_idle` after it had none. How far a source has come is the highest event time that it has brought since it was
last waited for; the epochs' reports have it. They also have the highest event time of what has gone on, from which the
input's clock goes on (D25). The run's clock says which event times are too far in the future: `docs/time.md`
tells what it shows. The decision for epoch N stands in ``vsc/inputs/N.json`` of the checkpoint
before a task of N runs: whatever N emits follows from it, from the rows of N and from the state.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.spark_source import Backlog, Input
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import NOTHING, Pace, Wait

__all__ = ["Pacer"]


class Pacer:
    """Decides the pace of each epoch of one query.

    `inputs` gives the query's inputs by source, once it runs (None for one whose future input is unknown),
    `tell` hands a pace to the tasks. A source without new input is waited for up to `max_idle` seconds of the clock
    `elapsed`. `now` is the run's clock, in ms, and `latest` what it allows each source. `topics` are those of the run.
    """

    def __init__(
        self,
        record: Checkpoint,
        inputs: Callable[[], Mapping[str, Input | None]],
        tell: Callable[[str], None],
        max_idle: float = 0.0,
        elapsed: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        latest: Callable[[int], Mapping[str, int]] = lambda now: {},
        topics: Mapping[str, str] | None = None,
    ) -> None:
        self._record, self._find, self._tell, self._max_idle, self._elapsed = record, inputs, tell, max_idle, elapsed
        self._now, self._latest, self._topics = now, latest, topics or {}
        self._inputs: Mapping[str, Input | None] = {}
        self._positions: dict[str, int] = {}
        self._active: dict[str, float] = {}
        self._pace = Pace()
        self._report: EpochReport | None = None
        self._timer: threading.Timer | None = None
        self.outstanding: dict[str, dict[str, float]] = {}
        """By source, how much it had still to bring when the newest epoch began, by unit."""

    def resume(self) -> None:
        """Before the query starts: if records wait, or may after an epoch that is repeated, asks for one more epoch."""
        found = self._record.newest()
        repeated = self._kept_pace(0 if found is None else found.epoch + 1)
        if repeated.waits or (found is not None and self._kept_pace(found.epoch).left(found)):
            self._record.request_wake()

    def decide(self, epoch: int) -> Pace:
        """The pace of `epoch`, told to its tasks: before any of them runs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        backlogs = self._backlogs()
        self.outstanding = {name: dict(left.amounts) for name, left in backlogs.items() if left is not None}
        kept = self._record.pace(epoch)
        if kept is None:
            self._pace = self._decided(epoch, backlogs)
            self._record.keep_pace(epoch, self._pace.dump())
        else:
            self._pace = Pace.load(kept)
        self._tell(self._pace.dump())
        return self._pace

    def done(self, report: EpochReport) -> None:
        """Takes note of what the epoch did. Where records wait for idle sources only, sees to it that they come out."""
        self._report = report
        idle = [name for name in self._pace.waits if self._max_idle and not self._pace.waits[name].next]
        if idle and self._pace.left(report):
            due = min(self._active[name] for name in idle) + self._max_idle - self._elapsed()
            self._timer = threading.Timer(max(0.0, due), self._wake)
            self._timer.daemon = True
            self._timer.start()

    def keep_topics(self, epoch: int) -> None:
        """Keeps the topics of the run, which are others since `decide`, with the pace of `epoch`."""
        self._pace = replace(self._pace, topics=dict(self._topics))
        self._record.keep_pace(epoch, self._pace.dump())

    def begun(self) -> dict[str, Mapping[tuple[str, int], int]]:
        """By source, where it has any, the offsets by topic and partition at which the running epoch begins."""
        return {name: at for name, source in self._known_inputs() if (at := source.begins()) is not None}

    def taken(self) -> dict[str, Mapping[tuple[str, int], int]]:
        """By source, where it has any, the offsets by topic and partition at which the running epoch ends."""
        return {name: at for name, source in self._known_inputs() if (at := source.ends()) is not None}

    def _known_inputs(self) -> Iterator[tuple[str, Input]]:
        return ((name, source) for name, source in self._inputs.items() if source is not None)

    def _decided(self, epoch: int, backlogs: Mapping[str, Backlog | None]) -> Pace:
        before, report = self._pace, self._report
        if report is None or report.epoch != epoch - 1:
            before, report = self._kept_pace(epoch - 1), self._record.report(epoch - 1)
        clocks = {name: wait.clock for name, wait in before.waits.items()}
        if report is not None:
            clocks = {name: max(clock, report.clocks.get(name, NOTHING)) for name, clock in clocks.items()}
        waits = {}
        for name, backlog in backlogs.items():
            clock = clocks.get(name, NOTHING)
            if backlog is not None and backlog.next is not None:
                waits[name] = Wait(clock, backlog.next)
            elif self._elapsed() - self._active[name] < self._max_idle:
                waits[name] = Wait(clock)
        now = self._now()
        waiting = before.waiting if report is None else before.left(report)
        starts = before.starts if report is None else before.clocks_after(report)
        return Pace(waits, waiting, now, self._latest(now), dict(self._topics), starts)

    def _backlogs(self) -> dict[str, Backlog | None]:
        """What each source has still to bring (None where that is not known: it brings what comes about)."""
        if not self._inputs:
            self._inputs = self._find()
        backlogs = {name: None if source is None else source.backlog() for name, source in self._inputs.items()}
        for name, backlog in backlogs.items():
            position = None if backlog is None else backlog.position
            brings = backlog is None or backlog.next is not None
            if brings or name not in self._active or position != self._positions[name]:
                self._active[name] = self._elapsed()
            if position is not None:
                self._positions[name] = position
        return backlogs

    def _kept_pace(self, epoch: int) -> Pace:
        kept = self._record.pace(epoch)
        return Pace() if kept is None else Pace.load(kept)

    def _wake(self) -> None:
        # A query that was stopped, perhaps with Spark, needs no epoch: the next start asks for one.
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            self._record.request_wake()
