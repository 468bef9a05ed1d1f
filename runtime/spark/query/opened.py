"""What a run goes on from, once it is checked: its sources and sinks, and its checkpoint, new or taken up."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession

from vsc.changes import Change, Verdict, in_words
from vsc.plan.nodes import Clock, Plan
from vsc.plan.types import quoted_name
from vsc.runtime.errors import CheckpointError
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.base.hadoop import default_is_local
from vsc.runtime.spark.base.job import Run
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.relocation import follow_logs, follow_schemas
from vsc.runtime.spark.checkpoint.replacing import MAKING
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.position import SourceNotes
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.query.preflight import PreparedRun, prepare
from vsc.runtime.spark.report.progress import Tracker
from vsc.runtime.spark.report.time_warnings import TimeWarnings

__all__ = ["Opened", "now"]

_log = logging.getLogger(__name__)


def now() -> int:
    """The machine's clock, in ms."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Opened:
    """What to run, once checked: its sources and sinks, its checkpoint, when the run `started` (ms), warnings about
    event times, and whether its systems were `reached`."""

    job: Run
    ends: Ends
    checkpoint: Checkpoint
    started: int
    warnings: TimeWarnings
    reached: bool

    @classmethod
    def of(cls, prepared: PreparedRun, spark: SparkSession) -> Opened:
        """Raises what `start` does for a plan or a checkpoint that is refused; nothing is written."""
        if prepared.local != (local := default_is_local(spark)):  # a file of Hadoop's may say so
            prepared = prepare(prepared.job, local)
        job = prepared.job
        opened = Checkpoint.open(spark, job.checkpoint, job.plan, job.partitions)
        ends = prepared.ends
        if opened.clock is not None:
            ends, job = Ends(ends.plan.after(opened.clock)), replace(job, plan=_going_on(job.plan, opened.clock))
        ends.keep_in(opened.kept)
        return cls(job, ends, opened, now(), TimeWarnings(job.plan), prepared.reached)

    def tracker(self) -> Tracker:
        """Sums up the run; it knows the state that earlier epochs left."""
        return Tracker.after(self.job.plan, self.known(), self.job.began)

    def known(self) -> Iterator[EpochReport]:
        """What earlier epochs did that the run goes on from, as far as it is kept; oldest first."""
        until = self.job.back_to
        return (report for report in self.checkpoint.reports() if until is None or report.epoch <= until)

    def again(self) -> Opened:
        """What is opened after its query has ended, for a query that goes on."""
        checkpoint = replace(self.checkpoint, fresh=False)
        return replace(self, job=replace(self.job, back_to=None), checkpoint=checkpoint, reached=True)

    def to_drain(self) -> Opened:
        """What is opened after its run, for the run that emits everything still held."""
        after = self.again()
        return replace(after, job=replace(after.job, trigger="available-now", max_idle=None))

    def look_at_columns(self, spark: SparkSession) -> None:
        """Looks for the declared columns of sources that have brought no rows yet; of none, if the first epochs are no
        longer known."""
        reports = list(self.known())
        known = not reports or reports[0].epoch == 0
        read = {name for report in reports for name, rows in report.read.items() if rows}
        for source in self.ends.sources:
            source.looked_at = not known or source.node.name in read
        self.ends.look_at_columns(spark)

    def create(self) -> None:
        """Makes the new checkpoint."""
        if self.job.back_to is not None:
            raise CheckpointError(
                f"the checkpoint {self.checkpoint.files.root} is new: there is no epoch {self.job.back_to} to go back "
                "to",
                "correct the path of the checkpoint, or leave --back-to out",
            )
        self.checkpoint.create(self.job.plan)

    def take_up(self, spark: SparkSession) -> None:
        """Goes on from the checkpoint, on which the caller has the claim; first back, if the run was told to."""
        plan, opened, back_to = self.job.plan, self.checkpoint, self.job.back_to
        opened.go_back(self.ends.writers, back_to)
        logs = SparkLogs(opened.files)
        logs.check(len(plan.stages) - 1)
        logs.keep_sums()
        opened.mend_control()
        if stages_in_step(plan):
            for epoch, error in opened.followed(logs.done, logs.newest):
                raise CheckpointError(error.message, logs.way_back(epoch)) from error
        for change in opened.changes or ():
            _log.warning("the topology has changed, from now on: %s", in_words(change))
        opened.forget_written(_begun(plan, opened.changes or ()))
        opened.take(plan)
        opened.files.delete(MAKING)  # of a purge that was interrupted before it changed anything
        follow_schemas(opened.files)
        follow_logs(opened.files)
        wrote = {name: report.epoch for report in opened.reports() for name, rows in report.written.items() if rows}
        self.ends.take_up(wrote, back_to is None)
        if logs.done >= 0:
            for source in self.ends.sources:
                source.catch_up(spark, SourceNotes(opened.files, source.number), partial(_offset, logs, source))


def _offset(logs: SparkLogs, source: OpenSource) -> str:
    """How far a source has been read, as Spark has written it."""
    return logs.offsets(logs.done)[source.number]


def _going_on(plan: Plan, clock: Clock) -> Plan:
    """The plan with which a checkpoint that was begun with `clock` goes on."""
    settled = plan.after(clock)
    if settled.clock != plan.clock:
        _log.warning(
            "the checkpoint goes on with the clock that it was begun with: write `topology %s (clock = '%s');` to keep "
            "it, or carry the checkpoint over to '%s' with `vsc upgrade`", quoted_name(plan.name), clock, plan.clock
        )  # fmt: skip
    return settled


def _begun(plan: Plan, changes: Sequence[Change]) -> frozenset[str]:
    """The ids of the sinks that are new in a changed plan: what another one wrote under the number is not theirs."""
    new = {(change.node, change.line) for change in changes if change.kind == "sink" and change.verdict is Verdict.NEW}
    return frozenset(sink.id for sink in plan.sinks if (sink.owner, sink.line) in new)
