"""Starts a plan as one streaming query on a Spark session.

The shape: each source is packed into blobs (stage 0); then for each later stage a shuffle by partition and a stateful
operator; then foreachBatch with the sinks. The state protocol, the order of records and the promise of the sinks are
in the modules that this one puts together.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.changes import Change, Verdict, in_words
from vsc.plan.nodes import Clock, Plan
from vsc.plan.types import quoted_name
from vsc.runtime.errors import CheckpointError, VscRuntimeError
from vsc.runtime.operators.context import RunOptions, module_names
from vsc.runtime.operators.source.rows import latest_times
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.base.hadoop import Files, default_is_local
from vsc.runtime.spark.base.job import Run, Time, as_text, clock_of, idle_ms, is_bounded, spark_trigger
from vsc.runtime.spark.checkpoint.ancestry import Forerunner
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.claim import Claim, claim, released_after
from vsc.runtime.spark.checkpoint.relocation import follow_logs, follow_schemas
from vsc.runtime.spark.checkpoint.replacing import MAKING
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.kafka.client import KafkaGroups
from vsc.runtime.spark.connectors.kafka.registry.schemas import PROPERTY as SCHEMAS
from vsc.runtime.spark.connectors.kafka.topic_ids import Topics
from vsc.runtime.spark.connectors.kafka.topics import TopicLook
from vsc.runtime.spark.connectors.refusals import Refusals
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.sink import EpochSink
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.delivery import delivery
from vsc.runtime.spark.exchange.pace import PROPERTY
from vsc.runtime.spark.formats.java_zones import check_java_zone
from vsc.runtime.spark.query.epoch import EpochWriter
from vsc.runtime.spark.query.failures import explained, translating
from vsc.runtime.spark.query.gone_files import GoneFiles
from vsc.runtime.spark.query.inputs import has_inputs, query_inputs
from vsc.runtime.spark.query.late_starts import under_way
from vsc.runtime.spark.query.lineage import beginning, tell_end
from vsc.runtime.spark.query.missing_columns import MissingColumns
from vsc.runtime.spark.query.pacer import Pacer
from vsc.runtime.spark.query.preflight import PreparedRun, prepare
from vsc.runtime.spark.query.running_query import Epochs, RunningQuery
from vsc.runtime.spark.query.shared import shared_by
from vsc.runtime.spark.query.source_schemas import SourceSchemas
from vsc.runtime.spark.query.written_folders import unless_refused, written_folders
from vsc.runtime.spark.report.bad_rows import BadRows
from vsc.runtime.spark.report.lineage import RunLineage
from vsc.runtime.spark.report.observed import observed
from vsc.runtime.spark.report.progress import Tracker
from vsc.runtime.spark.report.time_warnings import TimeWarnings
from vsc.runtime.spark.session.drivers_python import drivers_python
from vsc.runtime.spark.session.executors import Executors
from vsc.runtime.spark.session.packages import packages_of
from vsc.runtime.spark.session.session import (
    checkpoint_settings,
    configured,
    query_configuration,
    state_settings,
    usable_session,
)
from vsc.runtime.spark.session.ship import ship
from vsc.runtime.spark.session.standalone import watch_master
from vsc.runtime.spark.stages.pipeline import pipeline
from vsc.runtime.spark.state.local_folder import LocalFolders, new_run

__all__ = ["Hook", "Opened", "Started", "start", "start_query"]

_log = logging.getLogger(__name__)

Hook = Callable[[EpochReport], None]


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
        if opened.clock is not None:
            job = replace(job, plan=_going_on(job.plan, opened.clock))
        prepared.ends.keep_in(opened.kept)
        return cls(job, prepared.ends, opened, _now(), TimeWarnings(job.plan), prepared.reached)

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


@dataclass(frozen=True, slots=True)
class Started:
    """A running query, its foreachBatch (which keeps its last error) and its claim on the checkpoint."""

    query: StreamingQuery
    writer: EpochWriter
    claim: Claim
    what: Opened

    def why(self, failure: BaseException) -> VscRuntimeError | None:
        """What vsc knows about `failure`, the query's error."""
        job = self.what.job
        places = written_folders(self.what.ends, job.checkpoint, job.local_dir)
        return explained(self.writer.error or failure, SparkLogs(self.what.checkpoint.files), places)


def start(
    plan: Plan,
    spark: SparkSession | None = None,
    *,
    checkpoint: str | os.PathLike[str],
    variables: Mapping[str, str] | None = None,
    partitions: int | None = None,
    trigger: str = "available-now",
    max_idle: str | None = None,
    local_dir: str | os.PathLike[str] | None = None,
    on_bad_row: Literal["drop", "fail"] = "drop",
    on_error: Literal["drop", "fail"] = "fail",
    on_epoch: Hook | None = None,
    back_to: int | None = None,
    max_bad: str | None = None,
    now: Time | None = None,
    functions: Sequence[str] = (),
    lineage: str | os.PathLike[str] | None = None,
) -> RunningQuery:
    """Starts `plan` and returns the running query; `spark` None is the session that is active.

    `checkpoint` is a folder on any file system that Spark reaches, kept for this plan alone; `partitions` None takes
    what it has, 4 at first. `trigger` is ``available-now`` (all input there is, then stop), ``once`` (the same in one
    epoch) or a duration (``10 seconds``) between epochs, for ever; with one, `max_idle` is a duration for which other
    sources wait for one that has nothing new (None: not at all). `on_epoch` is called, on a thread of its own, after
    each epoch. `back_to` first goes back to the state after that epoch: what came later is forgotten, its files are
    removed from files sinks, and its input is read again. `max_bad` fails a batch in which more rows of a source
    are bad: ``100``, or ``1%`` of those that were read. `now`, in ms, as ISO text or as an aware ``datetime``, is a
    fixed time for the run's clock, by which event times are too far in the future: for tests. Without it that is the
    start of the run, with a duration as trigger that of each epoch. `functions` are the modules from which the plan may
    call functions. `lineage` is the path of a file, or the URL of a server, that gets OpenLineage's events of the run.
    The session's settings are as before when this returns.

    Raises VscRuntimeError (ConfigurationError, SourceError, SinkError, CheckpointError) for what can be seen before
    the first row is read; what happens later is the query's exception, a `QueryFailedError` where vsc knows why.
    """
    options = RunOptions(on_bad_row, on_error, clock_of(now), module_names(functions))
    folder, local = as_text(checkpoint), None if local_dir is None else as_text(local_dir)
    given, events = variables or {}, None if lineage is None else as_text(lineage)
    job = Run(
        plan, folder, given, partitions, trigger, max_idle, local, options, back_to, max_bad=max_bad, lineage=events
    )
    session = usable_session(spark)
    prepared = prepare(job, default_is_local(session))
    told = None if events is None else RunLineage(prepared.ends.plan, events)
    with beginning(told, session):
        opened = Opened.of(prepared, session)
        epochs = Epochs(opened.tracker())
        hooks = [epochs.done, *([] if told is None else [told.epoch]), *([] if on_epoch is None else [on_epoch])]
        started = under_way(opened, lambda what: start_query(what, session, *hooks))
    query = RunningQuery(
        started.query, started.why, lambda query, own: epochs.status(query, own, started.writer.running)
    )
    if told is not None:
        tell_end(query, told, is_bounded(trigger))
    return query


def start_query(what: Opened, spark: SparkSession, *on_epoch: Hook) -> Started:
    """`start`, for callers that need more than the query."""
    with unless_refused(what.ends, what.job.checkpoint, default_is_local(spark)):
        return _started(what, spark, on_epoch)


def _started(what: Opened, spark: SparkSession, on_epoch: Sequence[Hook]) -> Started:
    job, opened, ends = what.job, what.checkpoint, what.ends
    plan, back_to = job.plan, job.back_to
    columns = MissingColumns(spark, ends, _read_before(what))
    columns.check()
    check_java_zone(spark, ends.plan)
    sinks = ends.begin(spark, opened.id, opened.ancestors)
    if not what.reached:
        ends.reach(opened.fresh, default_is_local(spark))
    if opened.fresh:  # a topology that is refused may be fixed and run again: nothing is made before
        ends.look(spark)
        _prepare(sinks)
    held = claim(spark, opened.files)
    try:
        opened.check_same()
        ship(spark)
        shared = shared_by(spark, ends, opened.files.root, default_is_local(spark))
        executors = Executors(spark, shared, packages_of(plan), job.local_folder, plan.functions)
        executors.check()
        if opened.fresh and back_to is not None:
            raise CheckpointError(
                f"the checkpoint {opened.files.root} is new: there is no epoch {back_to} to go back to",
                "correct the path of the checkpoint, or leave --back-to out",
            )
        forerunner = Forerunner(spark, opened.files, opened.id)
        forerunner.check()
        if opened.fresh:
            opened.create(plan)
        else:
            _take_up(plan, opened, sinks, back_to)
            _catch_up(spark, ends, opened.files)
        look = TopicLook(spark)
        topics = Topics(ends.sources, ends.sinks, look.id, look.ranges)
        topics.begin(opened)
        schemas = SourceSchemas(ends, opened.files, partial(spark.sparkContext.setLocalProperty, SCHEMAS))
        schemas.begin(SparkLogs(opened.files).done)
        for sink in sinks:
            sink.settle(opened.files)
        pacer, bad_rows, to_sinks = _pacer(spark, what, topics, held), BadRows(plan, job.max_bad), delivery(plan)
        groups = KafkaGroups(ends.sources)
        hooks = forerunner.written, what.warnings.tell, lambda _: groups.commit(pacer.taken()), *on_epoch
        writer = EpochWriter(
            opened,
            sinks,
            held,
            hooks,
            pacer,
            to_sinks,
            columns,
            GoneFiles(spark, ends),
            topics,
            schemas,
            bad_rows,
            Refusals(plan, opened.partitions),
            executors,
        )
        query = _query(job, ends, spark, opened, writer)
    except BaseException:
        held.release()
        raise
    released_after(query, held)
    watch_master(spark, query, writer.failed)
    return Started(query, writer, held, what)


def _going_on(plan: Plan, clock: Clock) -> Plan:
    """The plan with which a checkpoint that was begun with `clock` goes on."""
    settled = plan.after(clock)
    if settled.clock != plan.clock:
        _log.warning(
            "the checkpoint goes on with the clock that it was begun with: write `topology %s (clock = '%s');` to keep "
            "it, or carry the checkpoint over to '%s' with `vsc upgrade`", quoted_name(plan.name), clock, plan.clock
        )  # fmt: skip
    return settled


def _read_before(what: Opened) -> frozenset[str]:
    """The sources that had brought rows when the run began; all of them if its first epochs are no longer known."""
    reports = list(what.known())
    if reports and reports[0].epoch > 0:
        return frozenset(node.name for node in what.job.plan.sources)
    return frozenset(name for report in reports for name, rows in report.read.items() if rows)


def _take_up(plan: Plan, opened: Checkpoint, sinks: Sequence[EpochSink], back_to: int | None) -> None:
    opened.go_back(sinks, back_to)
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
    for sink in sinks:
        sink.wrote = wrote.get(sink.id) if back_to is None else None
    _prepare(sinks)  # sweeps what a crash left: not under another query's hands
    for sink in sinks:
        lost = sink.lost()
        if lost is not None and sink.id in wrote:
            _log.warning(lost)


def _catch_up(spark: SparkSession, ends: Ends, files: Files) -> None:
    logs = SparkLogs(files)
    if logs.done >= 0:
        ends.catch_up(spark, files, lambda number: logs.offsets(logs.done)[number])


def _begun(plan: Plan, changes: Sequence[Change]) -> frozenset[str]:
    """The ids of the sinks that are new in a changed plan: what another one wrote under the number is not theirs."""
    new = {(change.node, change.line) for change in changes if change.kind == "sink" and change.verdict is Verdict.NEW}
    return frozenset(sink.id for sink in plan.sinks if (sink.owner, sink.line) in new)


def _prepare(sinks: Sequence[EpochSink]) -> None:
    for sink in sinks:
        sink.prepare()


def _query(job: Run, ends: Ends, spark: SparkSession, opened: Checkpoint, writer: EpochWriter) -> StreamingQuery:
    folders = LocalFolders(job.local_folder, opened.id, new_run(), opened.ancestors)
    # Executors need no secrets: they get the plan as it was compiled.
    settings = query_configuration(opened.partitions) | state_settings(opened.files)
    settings |= checkpoint_settings(spark, opened.files)
    with configured(spark, settings), drivers_python(spark):
        with translating():
            ends.take(spark, opened.begun)
        frame = pipeline(spark, job.plan, ends, opened.control, opened.partitions, job.options, folders)
        if job.observe:
            frame = observed(frame)
        query: StreamingQuery = (
            frame.writeStream.queryName(f"{job.plan.name}-{opened.id[:8]}")
            .outputMode("append")
            .option("checkpointLocation", opened.files.root)
            .foreachBatch(writer)
            .trigger(**spark_trigger(job.trigger))
            .start()
        )
    return query


def _pacer(spark: SparkSession, what: Opened, topics: Topics, held: Claim) -> Pacer:
    """Who decides of each epoch which sources are waited for, and what the clock shows."""
    job, ending = what.job, is_bounded(what.job.trigger)
    fixed = job.options.now if job.options.now is not None else what.started if ending else None
    pacer = Pacer(
        what.checkpoint,
        (lambda: query_inputs(what.ends, spark, ending)) if has_inputs(what.ends) else dict,
        lambda pace: spark.sparkContext.setLocalProperty(PROPERTY, pace),
        0.0 if job.max_idle is None else idle_ms(job.max_idle) / 1000,
        now=_now if fixed is None else lambda: fixed,
        latest=partial(latest_times, job.plan),
        topics=topics.ids,
        quiet=None if ending else job.plan.quiet,
        sources=[node.name for node in job.plan.sources],
        alive=lambda: held.stands,
    )
    pacer.resume()
    return pacer


def _now() -> int:
    return time.time_ns() // 1_000_000
