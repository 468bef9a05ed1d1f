"""The driver decides of an epoch, before it runs, who is waited for, and the clock. The decision is kept, and the same
when the epoch is repeated.

A source is waited for as long as Spark has input of it that it has not handed out, and, with a trigger interval, for
up to `max_idle` after it had none. How far a source has come is the highest event time that it has brought since it was
last waited for; the epochs' reports have it. They also have the highest event time of what has gone on, from which the
input's clock goes on (D25).

With a `quiet`, a source that has been read to its end and has brought nothing for so long is waited for no longer, and
its clock goes on by the machine's: as soon as something is due by that, a step goes into the control source, so it is
part of the input before anything acts on it. It stands in the order at its time: what is held for a source that lags
waits there, too.

The run's clock says which event times are too far in the future: `docs/time.md`
tells what it shows. The decision for epoch N stands in ``vsc/inputs/N.json`` of the checkpoint
before a task of N runs: whatever N emits follows from it, from the rows of N and from the state.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.spark_source import Backlog, Input
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import NOTHING, Pace, Wait

__all__ = ["Pacer"]

_CLOSE = 0.001
"""What a timer may be early by, in seconds."""


class Pacer:
    """Decides the pace of each epoch of one query.

    `inputs` gives the query's inputs by source, once it runs (None for one whose future input is unknown),
    `tell` hands a pace to the tasks. A source without new input is waited for up to `max_idle` seconds of the clock
    `elapsed`, or up to `quiet` ms: then the clocks of such `sources` go on by that of the `machine`, as long as the
    query is `alive`. `now` is the run's clock, in ms, and `latest` what it allows each source. `identities`
    gives those of what is read and written.
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
        identities: Callable[[], dict[str, str]] = dict,
        quiet: int | None = None,
        sources: Sequence[str] = (),
        alive: Callable[[], bool] = lambda: True,
        machine: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._record, self._find, self._tell, self._elapsed = record, inputs, tell, elapsed
        self._quiet, self._sources, self._alive, self._machine = quiet, sources, alive, machine
        self._max_idle, self._begun = max_idle if quiet is None else quiet / 1000, elapsed()
        self._now, self._latest, self._identities = now, latest, identities
        self._inputs: Mapping[str, Input | None] = {}
        self._positions: dict[str, int] = {}
        self._active: dict[str, float] = {}
        self._pace = Pace()
        self._report: EpochReport | None = None
        self._timers: list[threading.Timer] = []
        self.outstanding: dict[str, dict[str, float]] = {}
        """By source, how much it had still to bring when the newest epoch began, by unit."""

    def resume(self) -> None:
        """Before the query starts: if records wait, or may after an epoch that is repeated, asks for one more epoch."""
        found = self._record.newest()
        repeated = self._kept_pace(0 if found is None else found.epoch + 1)
        if repeated.waits or (found is not None and self._kept_pace(found.epoch).left(found)):
            self._record.request_wake()
        if self._quiet is not None and found is not None:
            self._await_quiet(self._kept_pace(found.epoch), found)

    def decide(self, epoch: int) -> Pace:
        """The pace of `epoch`, told to its tasks: before any of them runs."""
        while self._timers:
            self._timers.pop().cancel()
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
            self._after(min(self._active[name] for name in idle) + self._max_idle - self._elapsed(), self._wake)
        elif not any(wait.next for wait in self._pace.waits.values()):
            self._active |= {name: self._elapsed() for name, rows in report.read.items() if rows}
            self._await_quiet(self._pace, report)

    def _await_quiet(self, pace: Pace, report: EpochReport) -> None:
        """Sees to it that clocks go on when sources have brought nothing for long enough for something to be due."""
        if self._quiet is None or pace.left(report):
            return
        starts, waits = pace.clocks_after(report), []
        for due, sources in (one for first in pace.due_after(report).values() for one in first):
            if all(map(self._ends, sources)) and due > max(
                (starts.get(name, NOTHING) for name in sources), default=NOTHING
            ):
                idle = max(map(self._idle_from, sources)) + self._quiet / 1000 - self._elapsed()
                waits.append(max(idle, (due + self._quiet - self._machine()) / 1000))
        if waits:
            self._after(min(waits), lambda: self._go_on(starts))

    def _go_on(self, starts: Mapping[str, int]) -> None:
        """Moves the clocks on of all sources that have brought nothing for so long."""
        if self._quiet is None or not self._alive():
            return
        time, idle = self._machine() - self._quiet, self._elapsed() - self._quiet / 1000 + _CLOSE
        quiet = [name for name in self._sources if self._ends(name) and self._idle_from(name) <= idle]
        moved = [name for name in quiet if time > starts.get(name, NOTHING)]
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            if moved:
                self._record.request_quiet(time, moved)

    def _ends(self, source: str) -> bool:
        """Whether it is known when a source has been read to its end."""
        return source not in self._inputs or self._inputs[source] is not None

    def _idle_from(self, source: str) -> float:
        """Since when a source has brought nothing."""
        return self._active.get(source, self._begun)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(min(max(0.0, seconds), threading.TIMEOUT_MAX), act)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def keep_identities(self, epoch: int) -> None:
        """Keeps what is read and written, which is another since `decide`, with the pace of `epoch`."""
        self._pace = replace(self._pace, topics=self._identities())
        self._record.keep_pace(epoch, self._pace.dump())

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
            elif self._quiet is not None and len(backlogs) == 1:
                continue  # it has nothing to wait for
            elif self._elapsed() - self._active[name] < self._max_idle:
                waits[name] = Wait(clock)
        now = self._now()
        waiting = before.waiting if report is None else before.left(report)
        starts = before.starts if report is None else before.clocks_after(report)
        quiet, due = (before.quiet, before.due) if report is None else (
            before.quiet_after(report), before.due_after(report)
        )  # fmt: skip
        return Pace(waits, waiting, now, self._latest(now), self._identities(), starts, quiet, due)

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
