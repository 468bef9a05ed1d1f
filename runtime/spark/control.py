"""The control source: a folder of small files inside the checkpoint, each line of which reaches every partition.

Spark calls a stage only for keys that have rows, and sources cannot be added to a checkpoint later. So every query
reads this folder from epoch 0 on: its first line wakes every partition, a line ``drain`` moves clocks to their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from vsc.runtime.spark.wire import WireRow, record_batch, slots

__all__ = ["DRAIN", "START", "broadcast", "is_drain"]

START = "start"
DRAIN = "drain"


def is_drain(payload: bytes) -> bool:
    """Whether a control row asks its stage to move its clocks to the end."""
    return payload == DRAIN.encode()


def broadcast(
    stages: tuple[int, ...], partitions: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow over lines of text: one row for each line, stage (of those >= 1) and partition."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lines = [line.strip().encode() for line in batch.column(0).to_pylist() if line.strip()]
            found = [WireRow(s, "", p, line) for line in lines for s in stages for p in range(partitions)]
            if found:
                yield record_batch(found, slots(partitions))

    return rows
