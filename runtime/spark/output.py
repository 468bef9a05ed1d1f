"""What an epoch gives its sinks, however it was computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from vsc.plan.nodes import Node
from vsc.runtime.records import Batch
from vsc.runtime.spark.unpack import sink_blobs, sink_rows

__all__ = ["BlobOutput", "Output"]


class Output(Protocol):
    """An epoch's records for each sink, by its id."""

    def rows(self, sink: str, node: Node, timestamp: bool = False) -> DataFrame:
        """The rows for a sink of `node`: key and value columns, for a table both system columns; with `timestamp` the
        event time of a stream's too."""
        ...

    def records(self, sink: str, node: Node) -> list[Batch]:
        """The records for a sink of `node`, brought here; none is the empty list."""
        ...


@dataclass(frozen=True, slots=True)
class BlobOutput:
    """Records that were computed by Python workers and came out as blobs (`vsc.runtime.spark.wire`)."""

    blobs: DataFrame

    def rows(self, sink: str, node: Node, timestamp: bool = False) -> DataFrame:
        """See `Output`."""
        return sink_rows(self.blobs, sink, node, timestamp)

    def records(self, sink: str, node: Node) -> list[Batch]:
        """See `Output`."""
        return [Batch.from_ipc(bytes(r.payload), node.schema) for r in sink_blobs(self.blobs, sink).collect()]
