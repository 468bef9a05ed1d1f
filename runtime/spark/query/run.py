"""Runs a plan to its end in this process: starts the query, shows what it does, stops it on a signal, drains it.

Guarantees: a first Ctrl-C or SIGTERM stops after the running batch, a second one at once (`interrupts`); either way
the checkpoint is one to go on from. Not for notebooks and jobs that have their own loop: those use
`vsc.runtime.spark.start`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.runtime.spark.base.job import Run, is_bounded
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.query.failures import started_late
from vsc.runtime.spark.query.late_starts import PAUSES, tell_again
from vsc.runtime.spark.query.lineage import telling
from vsc.runtime.spark.query.opened import Opened
from vsc.runtime.spark.query.preflight import PreparedRun
from vsc.runtime.spark.query.start import Hook, Started, start_query
from vsc.runtime.spark.report.bad_rows import check_usable
from vsc.runtime.spark.report.lineage import RunLineage
from vsc.runtime.spark.report.observed import is_heard
from vsc.runtime.spark.report.progress import Activity, Display, Phase, Tracker
from vsc.runtime.spark.session.interrupts import Interrupted, Interrupts
from vsc.runtime.spark.session.ship import warm_up

__all__ = ["Interrupted", "Run", "run"]

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1


def run(
    prepared: PreparedRun,
    spark: SparkSession,
    show: Display,
    interrupts: Interrupts | None = None,
    lineage: RunLineage | None = None,
) -> None:
    """Runs until all input is taken (or for ever, with a duration as trigger), then drains if asked to. `lineage` tells
    others of it.

    Raises what `start` raises, the query's failure as Spark reports it (chained to what foreachBatch failed with),
    UnusableInputError at the end, and Interrupted.
    """
    interrupts = interrupts or Interrupts()
    hooks = [] if lineage is None else [lineage.epoch]
    with telling(lineage, spark, interrupts):
        _run(prepared, spark, show, interrupts, hooks)


def _run(
    prepared: PreparedRun, spark: SparkSession, show: Display, interrupts: Interrupts, hooks: Sequence[Hook]
) -> None:
    show.doing(Activity(Phase.PREPARING))
    warm_up(spark)
    job = replace(prepared.job, observe=is_heard(spark))
    opened = Opened.of(replace(prepared, job=job), spark)
    tracker = opened.tracker()
    _once(opened, spark, _Watch(show, tracker), interrupts, hooks)
    if job.drain and not interrupts.requested:
        opened.checkpoint.request_drain()
        _once(opened.to_drain(), spark, _Watch(show, tracker), interrupts, hooks)
    if not interrupts.requested:
        for line in opened.ends.empty(spark, tracker.read):
            _log.warning(line)
    show.finished(tracker.finished())
    if interrupts.requested:
        raise Interrupted
    check_usable(opened.ends.places, tracker.read, tracker.metrics)


def _once(opened: Opened, spark: SparkSession, watch: _Watch, interrupts: Interrupts, hooks: Sequence[Hook]) -> None:
    """One query to its end; where Spark gave up on a worker of a busy machine, another one goes on."""
    for pause in (*PAUSES, None):
        started = start_query(opened, spark, watch.done, *hooks)
        interrupts.orderly = True
        try:
            stopped = _to_its_end(started, watch, is_bounded(opened.job.trigger), interrupts)
        finally:
            interrupts.orderly = False
        started.claim.release()
        watch.update(started.query)
        failure = started.query.exception()
        if failure is None or stopped:
            return
        if pause is None or not started_late(failure):
            raise failure from started.why(failure) or started.writer.error
        tell_again(pause)
        until = time.monotonic() + pause
        while time.monotonic() < until and not interrupts.requested:
            time.sleep(_POLL_SECONDS)
        opened = opened.again()


def _to_its_end(started: Started, watch: _Watch, bounded: bool, interrupts: Interrupts) -> bool:
    """Waits until the query ends; whether it was stopped. `bounded`: it does so by itself."""
    query = started.query
    last: Activity | None = None
    between = Activity(Phase.PREPARING if bounded else Phase.IDLE)
    while query.isActive:
        watch.update(query)
        batch = started.writer.running
        if batch is None:
            batch = watch.committing  # asked for afterwards: an epoch is one or the other until it has been shown
        if last is None and interrupts.requested:
            last = Activity(Phase.STOPPING, batch)
        watch.show.doing(last or (between if batch is None else Activity(Phase.WORKING, batch)))
        if last is not None and (last.batch is None or watch.newest >= last.batch):
            query.stop()
            return True
        time.sleep(_POLL_SECONDS)
    return False


class _Watch:
    """Matches the reports of foreachBatch with Spark's timings, and shows each epoch once both are there.

    `newest` is the epoch that was shown last, -1 before the first.
    """

    def __init__(self, show: Display, tracker: Tracker) -> None:
        self.show = show
        self.newest = -1
        self._tracker = tracker
        self._reports: dict[int, EpochReport] = {}
        self._lock = threading.Lock()

    @property
    def committing(self) -> int | None:
        """The epoch that has been written, and of which Spark has not said yet that it is done."""
        with self._lock:
            return max(self._reports, default=None)

    def done(self, report: EpochReport) -> None:
        """For foreachBatch, on its thread."""
        with self._lock:
            self._reports[report.epoch] = report

    def update(self, query: StreamingQuery) -> None:
        """Shows what has ended since the last call."""
        with self._lock:
            if not self._reports:
                return  # nothing whose timing has not come yet
        for progress in (json.loads(recent.json()) for recent in query._jsq.recentProgress()):
            if "addBatch" not in progress["durationMs"]:
                continue  # a look at the sources that found nothing, under the number of the epoch to come
            epoch = int(progress["batchId"])
            with self._lock:
                report = self._reports.pop(epoch, None)
            if report is not None:
                took = int(progress["durationMs"].get("triggerExecution", 0))
                self.show.batch(self._tracker.batch(report, took, int(progress["durationMs"]["addBatch"])))
                self.newest = epoch
