"""Connectors without another system: `console` prints, `noop` discards rows, `rate` makes them, `memory` refuses.

To try a topology, to measure it, to test it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.records import Batch, processing_order
from vsc.runtime.spark.base.table_text import table_text
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.exchange.output import Output
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.formats.source_columns import TIME

__all__ = ["Console", "MemorySink", "MemorySource", "Noop", "Rate"]

_RATE_COLUMNS = {"value": "bigint", "at": "timestamp"}


class Console(OpenSink):
    """Prints an epoch's rows on stdout as a table."""

    def check(self) -> None:
        """`with_timestamp` is checked when the sink begins."""

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        return _ConsoleSink(self)


class _ConsoleSink(EpochSink):
    def __init__(self, opened: OpenSink) -> None:
        super().__init__(opened)
        self._timestamp = self._options.flag("with_timestamp")

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Prints the rows, if there are any, in the order in which they came about."""
        found = output.records(self.id, self._node)
        if not rows().count:
            return
        records = Batch.concat(found)
        records = records.take(processing_order([records]))
        print(table_text(self._node, records, self._timestamp), flush=True)


class Noop(OpenSink):
    """Makes every row in Spark and discards it."""

    def check(self) -> None:
        """Has no options."""

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        return _NoopSink(self)


class _NoopSink(EpochSink):
    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Makes the rows."""
        output.rows(self.id, self._node).write.format("noop").mode("append").save()


class MemorySource(OpenSource):
    """Is refused: the test driver fills it, a run cannot."""

    def _check(self, default_local: bool) -> None:
        """Refuses it."""
        raise SourceError(
            f"{self.place} reads from memory (), which only the test driver can fill",
            "give it another connector, files for example, or run it with vsc.testing.TopologyTestDriver",
        )


class MemorySink(OpenSink):
    """Is refused: the test driver reads it, a run cannot."""

    def check(self) -> None:
        """Refuses it."""
        raise SinkError(
            f"{self.place} writes to memory (), which only the test driver can read",
            "give it another connector, console for example",
        )


class Rate(OpenSource):
    """Rows of a number and the time at which it was made: Spark's `rate`, which makes them as time passes."""

    goes_on = True
    first = None
    restarts = "its numbers begin at 0 again"

    def _check(self, default_local: bool) -> None:
        """Checks the rate and the columns."""
        rows = self.options.text("rows_per_second")
        if not (rows.isdecimal() and int(rows) > 0):
            raise SourceError(
                f"{self.place}: rows_per_second is a whole number of at least 1, not {rows!r}",
                "give one, such as 10",
            )
        for column in self.node.source.columns:
            if _RATE_COLUMNS.get(column.name) != str(column.type):
                raise SourceError(
                    f"{self.place}: rate has the columns value bigint and at timestamp, not {column.name} {column.type}"
                )

    def rows(self, spark: SparkSession) -> DataFrame:
        """One task makes all rows, so that they are one source partition in the order of `value`."""
        own = {"numPartitions": "1", "rowsPerSecond": self.options.text("rows_per_second")}
        frame = spark.readStream.format("rate").options(**own).options(**self.options.spark).load()
        columns = {"value": F.col("value"), "at": F.col("timestamp")}
        chosen = [columns[c.name].alias(c.name) for c in self.node.source.columns]
        if self.node.source.timestamp is None:
            chosen.append(F.unix_millis(F.col("timestamp")).alias(TIME))
        return frame.select(*chosen)
