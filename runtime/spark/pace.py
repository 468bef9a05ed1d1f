"""What the driver decides of an epoch before it runs: who is waited for, and the clock. It is kept, and the same when
the epoch is repeated.

A source is waited for as long as Spark has input of it that it has not handed out, and, with a trigger interval, for
up to `max_idle` after it had none. How far a source has come is the highest event time that it has brought since it was
last waited for; the epochs' reports have it. They also have the highest event time of what has gone on, from which the
input's clock goes on (D25). The run's clock says which event times are too far in the future: `docs/time.md`
tells what it shows. The decision for epoch N stands in ``vsc/inputs/N.json`` of the checkpoint
before a task of N runs: whatever N emits follows from it, from the rows of N and from the state.

`Pace` is the decision. The driver hands it to the tasks as a local property of Spark's, with the epoch's number.
`Pacer` decides. Not for what a stage does with it: `vsc.runtime.operators.in_step`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext

from vsc.runtime.errors import CheckpointError
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.spark.checkpoint import Checkpoint
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.unread import Input, KafkaInput, Rest

__all__ = ["PROPERTY", "Pace", "Pacer", "Wait"]

PROPERTY = "vsc.inputs"
"""The local property that holds the pace of the running epoch, as JSON."""

_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Wait:
    """A source that is waited for: how far it had come before the epoch, and the lowest partition it may bring next."""

    clock: int = _NOTHING
    next: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """One epoch: the sources that are waited for, and how many records each partition ("stage-partition") held back.

    `now`: what the run's clock shows, in ms. `latest`: the latest event time that each source with a bound may have.
    Both are missing in what was kept by a vsc that knew of no bound. `topics`: see `vsc.runtime.spark.topics`.
    `starts`: the highest event time of each source's records that had gone on before the epoch, where the input's clock
    begins; without sources of which none had, or that need no such clock. What waits are records and steps of it.
    """

    waits: Mapping[str, Wait] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    now: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> bool:
        """Whether every partition has to be called: to know how far sources have come, or to emit what it holds."""
        return bool(self.waits) or bool(self.waiting)

    def frontier(self, ranks: Mapping[str, int], clocks: Mapping[str, int]) -> Frontier | None:
        """The frontier of the epoch, in which sources have come to `clocks`; None if no source is waited for."""
        return min(
            (Frontier(max(w.clock, clocks.get(name, _NOTHING)), ranks[name], w.next) for name, w in self.waits.items()),
            default=None,
        )

    def dump(self) -> str:
        """The pace as JSON."""
        waits = {name: [wait.clock, wait.next] for name, wait in self.waits.items()}
        data = {"waits": waits, "waiting": dict(self.waiting), "now": self.now, "latest": dict(self.latest)}
        data |= {"topics": dict(self.topics)} if self.topics else {}
        data |= {"starts": dict(self.starts)} if self.starts else {}
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Pace:
        """The pace that `dump` wrote. Raises CheckpointError for anything else."""
        try:
            data = json.loads(text)
            waits = {name: Wait(clock, part) for name, (clock, part) in data["waits"].items()}
            waiting, now, latest = dict(data["waiting"]), data.get("now"), dict(data.get("latest", {}))
            topics, starts = dict(data.get("topics", {})), dict(data.get("starts", {}))
            numbers = [*waiting.values(), *latest.values(), *starts.values(), *(wait.clock for wait in waits.values())]
            numbers += [] if now is None else [now]
            names = [*topics.values(), *(wait.next for wait in waits.values())]
            if any(type(n) is not int for n in numbers) or any(type(name) is not str for name in names):
                raise ValueError("a number or a name is not valid")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"the pace of an epoch (vsc/inputs) is damaged: {str(error)[:200]}") from error
        return cls(waits, waiting, now, latest, topics, starts)

    @classmethod
    def here(cls) -> Pace:
        """That of the epoch to which the running task belongs."""
        context = TaskContext.get()
        if context is None:
            return cls()
        found = context.getLocalProperty(PROPERTY)
        if found is None:  # it would look as if no source had to be waited for, and as if there were no bound
            raise RuntimeError("the task did not receive its epoch's pace (is PYSPARK_PIN_THREAD switched off?)")
        return cls.load(found)

    def left(self, report: EpochReport) -> dict[str, int]:
        """How many records and steps wait in each partition after the epoch that ran at this pace, where any do."""
        after = {**self.waiting, **{place: size.waiting + size.steps for place, size in report.state.items()}}
        return {place: records for place, records in sorted(after.items()) if records}

    def clocks_after(self, report: EpochReport) -> dict[str, int]:
        """`starts` of the epoch after the one that ran at this pace."""
        return {
            name: max(time, self.starts.get(name, time)) for name, time in {**self.starts, **report.gone_on}.items()
        }


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
        rests = self._rests()
        known = {name: rest for name, rest in rests.items() if rest is not None}
        self.outstanding = {name: dict(rest.amounts) for name, rest in known.items()}
        kept = self._record.pace(epoch)
        if kept is None:
            self._pace = self._decided(epoch, rests)
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
        """By Kafka source, the offsets by topic and partition at which the running epoch begins."""
        return {name: source.begins() for name, source in self._inputs.items() if isinstance(source, KafkaInput)}

    def taken(self) -> dict[str, Mapping[tuple[str, int], int]]:
        """By Kafka source, the offsets by topic and partition at which the running epoch ends."""
        return {name: source.ends() for name, source in self._inputs.items() if isinstance(source, KafkaInput)}

    def _decided(self, epoch: int, rests: Mapping[str, Rest | None]) -> Pace:
        before, report = self._pace, self._report
        if report is None or report.epoch != epoch - 1:
            before, report = self._kept_pace(epoch - 1), self._record.report(epoch - 1)
        clocks = {name: wait.clock for name, wait in before.waits.items()}
        if report is not None:
            clocks = {name: max(clock, report.clocks.get(name, _NOTHING)) for name, clock in clocks.items()}
        waits = {}
        for name, rest in rests.items():
            clock = clocks.get(name, _NOTHING)
            if rest is not None and rest.next is not None:
                waits[name] = Wait(clock, rest.next)
            elif self._elapsed() - self._active[name] < self._max_idle:
                waits[name] = Wait(clock)
        now = self._now()
        waiting = before.waiting if report is None else before.left(report)
        starts = before.starts if report is None else before.clocks_after(report)
        return Pace(waits, waiting, now, self._latest(now), dict(self._topics), starts)

    def _rests(self) -> dict[str, Rest | None]:
        """What each source has still to bring (None where that is not known: it brings what comes about)."""
        if not self._inputs:
            self._inputs = self._find()
        rests = {name: None if source is None else source.rest() for name, source in self._inputs.items()}
        for name, rest in rests.items():
            position = None if rest is None else rest.position
            if rest is None or rest.next is not None or name not in self._active or position != self._positions[name]:
                self._active[name] = self._elapsed()
            if position is not None:
                self._positions[name] = position
        return rests

    def _kept_pace(self, epoch: int) -> Pace:
        kept = self._record.pace(epoch)
        return Pace() if kept is None else Pace.load(kept)

    def _wake(self) -> None:
        # A query that was stopped, perhaps with Spark, needs no epoch: the next start asks for one.
        with contextlib.suppress(Py4JError, OSError, AttributeError):
            self._record.request_wake()
