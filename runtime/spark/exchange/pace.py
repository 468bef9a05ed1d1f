"""What the driver has decided of an epoch, for its tasks: the sources that are waited for, and the clock.

They get it as a local property of Spark's, with the epoch's number. Not for deciding: that is the driver's
(`vsc.runtime.spark.query.pacer`). Not for what a stage does with it: `vsc.runtime.operators.in_step`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark import TaskContext

from vsc.runtime.errors import CheckpointError
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["NOTHING", "PROPERTY", "Pace", "Wait"]

PROPERTY = "vsc.inputs"
"""The local property that holds the pace of the running epoch, as JSON."""

Due = tuple[int, Sequence[str]]
"""A moment of the input's clock, in ms, and the sources whose clock that is."""
NOTHING = -1
"""The clock of a source that has brought nothing yet."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A source that is waited for: how far it had come before the epoch, and the lowest partition it may bring next."""

    clock: int = NOTHING
    next: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """One epoch: the sources that are waited for, and how many records each partition ("stage-partition") held back.

    `now`: what the run's clock shows, in ms. `latest`: the latest event time that each source with a bound may have.
    Both are missing in what was kept by a vsc that knew of no bound. `topics`: of what is read and written, see `End`.
    `starts`: the highest event time of each source's records that had gone on before the epoch, where the input's clock
    begins; without sources of which none had, or that need no such clock. What waits are records and steps of it.
    `quiet`: by source, the time to which its clock was moved at last as it brought nothing. `due`: by partition, what
    the clock of the input shows when the first of what is held there is due, with the sources whose clock that is.
    """

    waits: Mapping[str, Wait] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    now: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    quiet: Mapping[str, int] = field(default_factory=dict)
    due: Mapping[str, Sequence[Due]] = field(default_factory=dict)

    @property
    def calls(self) -> bool:
        """Whether every partition has to be called: to know how far sources have come, or to emit what it holds."""
        return bool(self.waits) or bool(self.waiting)

    def frontier(self, ranks: Mapping[str, int], clocks: Mapping[str, int]) -> Frontier | None:
        """The frontier of the epoch, in which sources have come to `clocks`; None if no source is waited for."""
        return min(
            (Frontier(max(w.clock, clocks.get(name, NOTHING)), ranks[name], w.next) for name, w in self.waits.items()),
            default=None,
        )

    def dump(self) -> str:
        """The pace as JSON."""
        waits = {name: [wait.clock, wait.next] for name, wait in self.waits.items()}
        data = {"waits": waits, "waiting": dict(self.waiting), "now": self.now, "latest": dict(self.latest)}
        data |= {"topics": dict(self.topics)} if self.topics else {}
        for name in ("starts", "quiet", "due"):
            data |= {name: dict(getattr(self, name))} if getattr(self, name) else {}
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Pace:
        """The pace that `dump` wrote. Raises CheckpointError for anything else."""
        try:
            data = json.loads(text)
            waits = {name: Wait(clock, part) for name, (clock, part) in data["waits"].items()}
            waiting, now, latest = dict(data["waiting"]), data.get("now"), dict(data.get("latest", {}))
            topics = dict(data.get("topics", {}))
            starts, quiet, due = (dict(data.get(name, {})) for name in ("starts", "quiet", "due"))
            numbers = [*waiting.values(), *latest.values(), *starts.values(), *(wait.clock for wait in waits.values())]
            numbers += [*quiet.values(), *(time for first in due.values() for time, _ in first)]
            numbers += [] if now is None else [now]
            names = [*topics.values(), *(wait.next for wait in waits.values())]
            if any(type(n) is not int for n in numbers) or any(type(name) is not str for name in names):
                raise ValueError("a number or a name is not valid")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"the pace of an epoch (vsc/inputs) is damaged: {str(error)[:200]}") from error
        return cls(waits, waiting, now, latest, topics, starts, quiet, due)

    @classmethod
    def here(cls) -> Pace:
        """The pace of the epoch to which the running task belongs."""
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

    def quiet_after(self, report: EpochReport) -> dict[str, int]:
        """`quiet` of the epoch after the one that ran at this pace."""
        found = {**report.quieted, **self.quiet}
        return {name: max(time, report.quieted.get(name, time)) for name, time in found.items()}

    def due_after(self, report: EpochReport) -> dict[str, Sequence[Due]]:
        """`due` of the epoch after the one that ran at this pace."""
        after = {**self.due, **{place: size.due for place, size in report.state.items()}}
        return {place: due for place, due in sorted(after.items()) if due}

    def clocks_after(self, report: EpochReport) -> dict[str, int]:
        """`starts` of the epoch after the one that ran at this pace."""
        return {
            name: max(time, self.starts.get(name, time)) for name, time in {**self.starts, **report.gone_on}.items()
        }
