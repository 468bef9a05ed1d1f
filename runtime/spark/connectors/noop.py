"""A sink that throws its rows away, to measure."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Sink
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.epoch_files import Tally
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.output import Output

__all__ = ["Noop"]


class Noop(Connector):
    """Makes every row in Spark and throws it away."""

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
