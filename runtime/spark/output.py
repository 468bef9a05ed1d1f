"""What an epoch gives its sinks: records that came out of Python workers as blobs (`vsc.runtime.spark.wire`)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from vsc.plan.nodes import Node
from vsc.runtime.records import Batch
from vsc.runtime.spark.unpack import sink_blobs, sink_rows

__all__ = ["Output"]


@dataclass(frozen=True, slots=True)
class Output:
    """An epoch's records for each sink, by its id. `shuffled` names the nodes whose blobs are in no order."""

    blobs: DataFrame
    shuffled: frozenset[str]

    def rows(self, sink: str, node: Node, timestamp: bool = False) -> DataFrame:
        """The rows for a sink of `node`: key and value columns, for a table both system columns; with `timestamp` the
        event time of a stream's too."""
        return sink_rows(self.blobs, sink, node, timestamp, node.name in self.shuffled)

    def records(self, sink: str, node: Node) -> list[Batch]:
        """The records for a sink of `node`, brought here; none is the empty list."""
        return [Batch.from_ipc(bytes(r.payload), node.schema) for r in sink_blobs(self.blobs, sink).collect()]
