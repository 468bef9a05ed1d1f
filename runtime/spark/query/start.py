"""Starts a plan as one streaming query on a Spark session.

The shape: each source is packed into blobs (stage 0); then for each later stage a shuffle by partition and a stateful
operator; then foreachBatch with the sinks. The state protocol, the order of records and the promise of the sinks are
in the modules that this one puts together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.plan.nodes import Plan
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.operators.context import RunOptions, module_names
from vsc.runtime.operators.source.rows import latest_times
from vsc.runtime.spark.base.hadoop import default_is_local
from vsc.runtime.spark.base.job import Run, Time, as_text, clock_of, idle_ms, is_bounded, spark_trigger
from vsc.runtime.spark.checkpoint.ancestry import Forerunner
from vsc.runtime.spark.checkpoint.claim import Claim, claim, released_after
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.exchange.blob_files import BlobFiles
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import PROPERTY
from vsc.runtime.spark.formats.java_zones import check_java_zone
from vsc.runtime.spark.query.epoch import EpochWriter
from vsc.runtime.spark.query.failures import explained, translating
from vsc.runtime.spark.query.late_starts import under_way
from vsc.runtime.spark.query.lineage import beginning, tell_end
from vsc.runtime.spark.query.opened import Opened, now
from vsc.runtime.spark.query.pacer import Pacer
from vsc.runtime.spark.query.preflight import prepare
from vsc.runtime.spark.query.running_query import Epochs, RunningQuery
from vsc.runtime.spark.query.shared import shared_by
from vsc.runtime.spark.query.written_folders import unless_refused, written_folders
from vsc.runtime.spark.report.bad_rows import BadRows
from vsc.runtime.spark.report.lineage import RunLineage
from vsc.runtime.spark.report.observed import observed
from vsc.runtime.spark.session.drivers_python import drivers_python
from vsc.runtime.spark.session.executors import Executors
from vsc.runtime.spark.session.packages import packages_of
from vsc.runtime.spark.session.session import (
    checkpoint_settings,
    configured,
    is_here,
    query_configuration,
    state_settings,
    usable_session,
)
from vsc.runtime.spark.session.ship import ship
from vsc.runtime.spark.session.standalone import watch_master
from vsc.runtime.spark.stages.pipeline import pipeline
from vsc.runtime.spark.state.local_folder import LocalFolders, new_run

__all__ = ["Hook", "Started", "start", "start_query"]

Hook = Callable[[EpochReport], None]


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
    what.look_at_columns(spark)
    check_java_zone(spark, [(end.options, end.node, end.refusal) for end in ends.all])
    ends.begin(spark, opened.id, opened.ancestors)
    if not what.reached:
        ends.reach(opened.fresh, default_is_local(spark))
    if opened.fresh:  # a topology that is refused may be fixed and run again: nothing is made before
        for source in ends.sources:
            source.look(spark)
        ends.prepare()
    held = claim(spark, opened.files)
    try:
        opened.check_same()
        ship(spark)
        shared = shared_by(spark, ends, opened.files.root, default_is_local(spark))
        executors = Executors(spark, shared, packages_of(job.plan), job.local_folder, job.plan.functions)
        executors.check()
        forerunner = Forerunner(spark, opened.files, opened.id)
        forerunner.check()
        if opened.fresh:
            what.create()
        else:
            what.take_up(spark)
        ends.identify(spark, opened)
        pacer, bad_rows = _pacer(spark, what, held), BadRows(ends.places, job.max_bad)
        hooks = forerunner.written, what.warnings.tell, *on_epoch
        folders, files = _local(spark, what)
        writer = EpochWriter(spark, opened, ends, held, pacer, bad_rows, executors, files, hooks)
        query = _query(spark, what, writer, folders)
    except BaseException:
        held.release()
        raise
    released_after(query, held)
    watch_master(spark, query, writer.failed)
    return Started(query, writer, held, what)


def _query(spark: SparkSession, what: Opened, writer: EpochWriter, folders: LocalFolders) -> StreamingQuery:
    job, opened = what.job, what.checkpoint
    # Executors need no secrets: they get the plan as it was compiled.
    settings = query_configuration(opened.partitions) | state_settings(opened.files)
    settings |= checkpoint_settings(spark, opened.files)
    with configured(spark, settings), drivers_python(spark):
        with translating():
            for source in what.ends.sources:
                source.take(spark, opened.begun)
        control, partitions = opened.control, opened.partitions
        frame = pipeline(spark, job.plan, what.ends, control, partitions, job.options, folders, writer.files)
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


def _local(spark: SparkSession, what: Opened) -> tuple[LocalFolders, BlobFiles | None]:
    """Where tasks keep their state, and their large blobs, if all run on this machine."""
    root, opened = what.job.local_folder, what.checkpoint
    here = is_here(spark.sparkContext.master)
    if here and root is None:
        root = spark.sparkContext._temp_dir  # below Spark's first local folder; Spark removes it as it ends
    folders = LocalFolders(root, opened.id, new_run(), opened.ancestors)
    return folders, BlobFiles.made(folders.home()) if here else None


def _pacer(spark: SparkSession, what: Opened, held: Claim) -> Pacer:
    """Who decides of each epoch which sources are waited for, and what the clock shows."""
    job, ending = what.job, is_bounded(what.job.trigger)
    fixed = job.options.now if job.options.now is not None else what.started if ending else None
    pacer = Pacer(
        what.checkpoint,
        lambda: what.ends.inputs(spark, ending),
        lambda pace: spark.sparkContext.setLocalProperty(PROPERTY, pace),
        0.0 if job.max_idle is None else idle_ms(job.max_idle) / 1000,
        now=now if fixed is None else lambda: fixed,
        latest=partial(latest_times, job.plan),
        identities=lambda: what.ends.identities,
        quiet=None if ending else job.plan.quiet,
        sources=[node.name for node in job.plan.sources],
        alive=lambda: held.stands,
    )
    pacer.resume()
    return pacer
