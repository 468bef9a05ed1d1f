"""Connectors without another system: `console` prints, `noop` discards rows, `rate` makes them, `memory` refuses.

To try a topology, to measure it, to test it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Sink
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.records import Batch, processing_order
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.table_text import table_text
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.exchange.output import Output
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.formats.source_columns import TIME

__all__ = ["Console", "Memory", "Noop", "Rate"]

_RATE_COLUMNS = {"value": "bigint", "at": "timestamp"}


class Console(Connector):
    """Prints an epoch's rows on stdout as a table."""

    kind = "console"

    def check_sink(self, options: Options) -> None:
        """`with_timestamp` is checked when the sink is made."""

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return _ConsoleSink(sink, node)


class _ConsoleSink(EpochSink):
    def __init__(self, sink: Sink, node: Node) -> None:
        super().__init__(sink, node)
        self._timestamp = self._options.flag("with_timestamp")

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Prints the rows, if there are any, in the order in which they came about."""
        found = output.records(self.id, self._node)
        if not rows().count:
            return
        records = Batch.concat(found)
        records = records.take(processing_order([records]))
        print(table_text(self._node, records, self._timestamp), flush=True)


class Noop(Connector):
    """Makes every row in Spark and discards it."""

    kind = "noop"

    def check_sink(self, options: Options) -> None:
        """Has no options."""

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return _NoopSink(sink, node)


class _NoopSink(EpochSink):
    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Makes the rows."""
        output.rows(self.id, self._node).write.format("noop").mode("append").save()


class Memory(Connector):
    """Refuses both ways: the test driver fills and reads it, a run cannot."""

    kind = "memory"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses it."""
        raise SourceError(
            f"{options.place} reads from memory (), which only the test driver can fill",
            "give it another connector, files for example, or run it with vsc.testing.TopologyTestDriver",
        )

    def check_sink(self, options: Options) -> None:
        """Refuses it."""
        raise SinkError(
            f"{options.place} writes to memory (), which only the test driver can read",
            "give it another connector, console for example",
        )


class Rate(Connector):
    """Rows of a number and the time at which it was made: Spark's `rate`, which makes them as time passes."""

    kind = "rate"
    goes_on = True
    first = None
    restarts = "its numbers begin at 0 again"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Checks the rate and the columns."""
        rows = options.text("rows_per_second")
        if not (rows.isdecimal() and int(rows) > 0):
            raise SourceError(
                f"{options.place}: rows_per_second is a whole number of at least 1, not {rows!r}",
                "give one, such as 10",
            )
        for column in node.source.columns:
            if _RATE_COLUMNS.get(column.name) != str(column.type):
                raise SourceError(
                    f"{options.place}: rate has the columns value bigint and at timestamp, "
                    f"not {column.name} {column.type}"
                )

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """One task makes all rows, so that they are one source partition in the order of `value`."""
        own = {"numPartitions": "1", "rowsPerSecond": options.text("rows_per_second")}
        frame = spark.readStream.format("rate").options(**own).options(**options.spark).load()
        columns = {"value": F.col("value"), "at": F.col("timestamp")}
        chosen = [columns[c.name].alias(c.name) for c in node.source.columns]
        if node.source.timestamp is None:
            chosen.append(F.unix_millis(F.col("timestamp")).alias(TIME))
        return frame.select(*chosen)
