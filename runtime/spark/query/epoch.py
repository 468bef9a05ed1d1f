"""What the driver does with one epoch: make its rows once, write them to each sink, keep what it did.

Guarantees: the output is computed once (a second computation would run the operators again); a repeated epoch has no
further effect on a sink.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.claim import Claim
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.refusals import Refusals
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.sink import EpochSink
from vsc.runtime.spark.exchange.blob_files import BlobFiles
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.delivery import delivery
from vsc.runtime.spark.exchange.output import Output
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.exchange.wire import CONTROL
from vsc.runtime.spark.query.failures import translated
from vsc.runtime.spark.query.pacer import Pacer
from vsc.runtime.spark.report.bad_rows import BadRows
from vsc.runtime.spark.session.executors import Executors

__all__ = ["EpochWriter"]


@dataclass(eq=False)
class EpochWriter:
    """For foreachBatch. `error` is why the query fails; `hooks` are called for every epoch.

    `running` is the epoch that is being written, None between epochs.
    """

    spark: SparkSession
    checkpoint: Checkpoint
    ends: Ends
    claim: Claim
    pacer: Pacer
    bad_rows: BadRows
    executors: Executors
    files: BlobFiles | None
    hooks: Sequence[Callable[[EpochReport], None]]
    error: BaseException | None = None
    running: int | None = None
    begun: bool = False
    """Whether there has been an epoch."""

    def __post_init__(self) -> None:
        plan = self.ends.plan
        self._delivery, self._refusals = delivery(plan), Refusals(plan, self.checkpoint.partitions)

    def __call__(self, batch: DataFrame, epoch: int) -> None:
        """Writes one epoch."""
        self.running, self.begun = epoch, True
        try:
            self._write(batch, epoch)
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self.running = None

    def failed(self, error: BaseException) -> None:
        """Keeps why the query fails: the first reason is the one that counts."""
        self.error = self.error or error

    def _write(self, batch: DataFrame, epoch: int) -> None:
        self.claim.check()
        SparkLogs(self.checkpoint.files).keep_sums()
        self.ends.check_epoch(self.spark)
        pace = self.pacer.decide(epoch)
        report = self._complete(batch, epoch)
        report.outstanding, report.now, report.latest = self.pacer.outstanding, pace.now, pace.latest
        self.checkpoint.keep(report)
        self.bad_rows.tell(report)
        self.pacer.done(report)
        for source in self.ends.sources:
            source.done()
        for hook in self.hooks:
            hook(report)

    def _complete(self, batch: DataFrame, epoch: int) -> EpochReport:
        """Computes the output and writes it, again if a source has met what the tasks were not told of."""
        while True:
            for source in self.ends.sources:
                source.tell(self.spark, epoch)
            try:
                return self._computed(batch, epoch)
            except Exception as error:
                known = translated(error)
                if known is None or not any(source.learn(known, epoch) for source in self.ends.sources):
                    raise
            finally:
                if self.files is not None:
                    self.files.clear()

    def _computed(self, batch: DataFrame, epoch: int) -> EpochReport:
        writers = self.ends.writers
        whole = any(source.learns for source in self.ends.sources)
        if len(writers) == 1 and writers[0].computes and not whole and writers[0].is_new(epoch):
            return self._passed_on(batch, epoch, writers[0])
        return self._kept(batch, epoch)

    def _check_read(self, report: EpochReport) -> None:
        """Checks, once the rows of an epoch have been read, that they are what there was, and who read them."""
        self.executors.check()
        if self.ends.check_read(report):
            self.pacer.keep_identities(report.epoch)

    def _output(self, blobs: DataFrame, computed: bool = False) -> Output:
        return Output(blobs, self._delivery, self.checkpoint.partitions, computed)

    @cached_property
    def _payloads(self) -> Column:
        """The counters of an epoch. As JSON: PySpark 4.0 does not bring an observed array to Python."""
        return F.expr(f"to_json(collect_list(IF(dest = {CONTROL}, payload, NULL))) AS payloads")

    def _passed_on(self, batch: DataFrame, epoch: int, sink: EpochSink) -> EpochReport:
        """Lets the one sink compute the output in its own job, which brings the counters here as well."""
        seen = Observation(f"counters of epoch {epoch}")

        @cache
        def report() -> EpochReport:
            found = EpochReport.gather(epoch, map(b64decode, json.loads(seen.get["payloads"])))
            self._check_read(found)
            self.bad_rows.check(found)  # a sink asks before it lets anything be seen
            return found

        output = self._output(batch.observe(seen, self._payloads))
        _write(sink, output, epoch, lambda: report().rows(sink.id))
        return report()

    def _kept(self, batch: DataFrame, epoch: int) -> EpochReport:
        """Computes the output once, over all partitions, and keeps it for all sinks.

        On disk: what Spark has no memory for would be read back into memory, a whole partition at a time.
        """
        kept = batch.persist(StorageLevel.DISK_ONLY)
        try:
            counters = kept.where(F.col("dest") == CONTROL).select("payload").collect()
            report = EpochReport.gather(epoch, (bytes(row.payload) for row in counters))
            self._check_read(report)
            if any(sink.is_new(epoch) for sink in self.ends.writers):
                self.bad_rows.check(report)
            output = self._output(kept, computed=True)
            before = [sink for sink in self.ends.writers if not self._refusals.takes(sink.id)]
            for sink in before:  # what one sink is refused another one writes
                _write(sink, output, epoch, partial(report.rows, sink.id))
            refused = [(sink.id, sink.refused(epoch)) for sink in before if sink.keeps_refused]
            output = self._output(self._refusals.joined(kept, report, refused), computed=True)
            for sink in (sink for sink in self.ends.writers if self._refusals.takes(sink.id)):
                _write(sink, output, epoch, partial(report.rows, sink.id))
            return report
        finally:
            kept.unpersist()


def _write(sink: EpochSink, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
    """Has the sink write; what Spark raises, in the user's words if the sink can tell."""
    try:
        sink.write(output, epoch, rows)
    except (PySparkException, Py4JJavaError) as error:
        failure = sink.failure(error)
        if failure is None:
            raise
        raise translated(error) or failure from error
