"""Runs a plan to its end in this process: starts the query, shows its progress, stops it on a signal, drains it.

Guarantees: a first Ctrl-C or SIGTERM stops after the running batch, a second one at once; either way the checkpoint
is one to go on from. Not for notebooks and jobs that have their own loop: those use `vsc.runtime.spark.start`.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.plan.nodes import Plan
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.failures import explained
from vsc.runtime.spark.job import Run
from vsc.runtime.spark.lag import source_lags
from vsc.runtime.spark.launch import kill
from vsc.runtime.spark.progress import Display, Tracker
from vsc.runtime.spark.query import Opened, start_query
from vsc.runtime.spark.spark_logs import SparkLogs

__all__ = ["Interrupted", "Run", "run"]

_POLL_SECONDS = 0.1


class Interrupted(Exception):
    """The run was stopped by a signal; its checkpoint is complete."""


def run(job: Run, spark: SparkSession, show: Display) -> None:
    """Runs until all input is taken (or for ever, with a duration as trigger), then drains if asked to.

    Raises what `start` raises, the query's failure as Spark reports it (chained to what foreachBatch failed with),
    and Interrupted.
    """
    opened = Opened.of(job, spark)
    known = (report for report in opened.checkpoint.reports() if job.back_to is None or report.epoch <= job.back_to)
    tracker = Tracker.after(job.plan, known)
    with _signals(lambda: kill(spark)) as stop:
        _once(opened, spark, _Watch(show, tracker, job.plan), stop)
        if job.drain and not stop.is_set():
            opened.checkpoint.request_drain()
            _once(opened.to_drain(), spark, _Watch(show, tracker, job.plan), stop)
        show.finished(tracker.finished())
        if stop.is_set():
            raise Interrupted


def _once(opened: Opened, spark: SparkSession, watch: _Watch, stop: threading.Event) -> None:
    started = start_query(opened, spark, watch.done)
    query = started.query
    stopped = False
    running_at_stop: int | None = None
    while query.isActive:
        if watch.waiting:
            watch.update(query)
        if not stop.is_set():
            stop.wait(_POLL_SECONDS)
            continue
        newest = _newest(query)
        running_at_stop = newest if running_at_stop is None else running_at_stop
        if newest != running_at_stop or not query.status["isTriggerActive"]:
            stopped = True
            query.stop()
        else:
            query.awaitTermination(1)
    started.claim.release()
    watch.update(query)
    failure = query.exception()
    if failure is not None and not stopped:
        cause = started.writer.error
        raise failure from explained(cause or failure, SparkLogs(opened.checkpoint.files)) or cause


class _Watch:
    """Matches the reports of foreachBatch with Spark's timings, and shows each epoch once both are there."""

    def __init__(self, show: Display, tracker: Tracker, plan: Plan) -> None:
        self._show = show
        self._plan = plan
        self._tracker = tracker
        self._reports: dict[int, EpochReport] = {}
        self._lock = threading.Lock()

    def done(self, report: EpochReport) -> None:
        """For foreachBatch, on its thread."""
        with self._lock:
            self._reports[report.epoch] = report

    def update(self, query: StreamingQuery) -> None:
        """Shows what has ended since the last call."""
        for progress in _recent(query):
            if "addBatch" not in progress["durationMs"]:
                continue  # a look at the sources that found nothing, under the number of the epoch to come
            epoch = int(progress["batchId"])
            with self._lock:
                report = self._reports.pop(epoch, None)
            if report is not None:
                took = int(progress["durationMs"].get("triggerExecution", 0))
                lags = source_lags(self._plan, progress["sources"])
                self._show.batch(self._tracker.batch(report, took, lags))

    @property
    def waiting(self) -> bool:
        """Whether there are reports whose timing has not come yet."""
        with self._lock:
            return bool(self._reports)


def _newest(query: StreamingQuery) -> int:
    """The number of the newest epoch that Spark calls ended; -1 before the first."""
    progress = query._jsq.lastProgress()
    return -1 if progress is None else int(progress.batchId())


def _recent(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(p.json()) for p in query._jsq.recentProgress()]


@contextlib.contextmanager
def _signals(at_once: Callable[[], None]) -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second signal calls `at_once` and raises KeyboardInterrupt."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            at_once()
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
