"""What the driver does with one epoch: make its rows once, write them to each sink, keep what it did.

Guarantees: the output is computed once (a second computation would run the operators again); a repeated epoch has no
further effect on a sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from vsc.runtime.spark.checkpoint import Checkpoint
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.epoch_files import Rows
from vsc.runtime.spark.sinks import EpochSink
from vsc.runtime.spark.wire import CONTROL

__all__ = ["EpochWriter"]


class EpochWriter:
    """For foreachBatch. `error` is what went wrong last, as it was raised; `hook` is told about every epoch."""

    def __init__(
        self, checkpoint: Checkpoint, sinks: Sequence[EpochSink], hook: Callable[[EpochReport], None] | None
    ) -> None:
        self._checkpoint = checkpoint
        self._sinks = sinks
        self._hook = hook
        self.error: BaseException | None = None

    def __call__(self, batch: DataFrame, epoch: int) -> None:
        """Writes one epoch."""
        try:
            self._write(batch, epoch)
        except BaseException as error:
            self.error = error
            raise

    def _write(self, batch: DataFrame, epoch: int) -> None:
        kept = batch.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            # One pass over all partitions: it computes and keeps everything, and brings the counters here.
            counters = kept.where(F.col("dest") == CONTROL).select("payload").collect()
            report = EpochReport.gather(epoch, (bytes(row.payload) for row in counters))
            for sink in self._sinks:
                sink.write(kept, epoch, Rows(report.written.get(sink.id, 0), report.digests.get(sink.id, 0)))
            self._checkpoint.keep(report)
        finally:
            kept.unpersist()
        if self._hook is not None:
            self._hook(report)
