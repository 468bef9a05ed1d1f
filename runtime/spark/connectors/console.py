"""A sink that prints."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Sink
from vsc.runtime.records import Batch, processing_order
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.epoch_files import Tally
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.output import Output
from vsc.runtime.spark.table_text import table_text

__all__ = ["Console"]


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
        self._timestamp = Options.of_sink(sink).flag("with_timestamp")

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Prints the rows, if there are any, in the order in which they came about."""
        found = output.records(self.id, self._node)
        if not rows().count:
            return
        records = Batch.concat(found)
        records = records.take(processing_order([records]))
        print(table_text(self._node, records, self._timestamp), flush=True)
