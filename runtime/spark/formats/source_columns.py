"""The columns that a source has beside the declared ones: how a connector tells stage 0 where a row comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

__all__ = [
    "BAD", "CORRUPT", "DELETED", "INDEX", "KEY", "OFFSET", "PART", "PARTITION", "START", "TIME", "VALUE", "RowReader",
    "kafka_part",
]  # fmt: skip

_PART_DIGITS = 6
"""How many digits a partition's number has at least in `kafka_part`."""
PART = "_vsc_part"
"""Column: the source partition of the row (a file's path, in the form of a URL); with `INDEX` only in its first row."""
INDEX = "_vsc_index"
"""Column, where the format has it: the number of the row in its file, from 0. Saves a path in every row."""
KEY, VALUE, PARTITION = "_vsc_key", "_vsc_value", "_vsc_partition"
"""Columns: the texts of a record of Kafka and the number of its partition, of which columns are yet to be made."""
OFFSET = "_vsc_offset"
"""Column, where rows are numbered already: the place of the row in its source partition. Else they are counted."""
TIME = "_vsc_time"
"""Column, where the source has no timestamp clause, or rows without value: the row's own time, ms since the epoch."""
DELETED = "_vsc_deleted"
"""Column, where there are rows without value: whether the row is one."""
BAD = "_vsc_bad"
"""Column, where the format can tell: why the row cannot be read, null if it can."""
CORRUPT = "_vsc_corrupt"
"""Column, where the format can tell, of CSV if it is asked for: the text of a record, at least if it cannot be read."""
START = "_vsc_start"
"""Column: where in its file the task's split begins; not 0 would mean that the file was split."""


def kafka_part(topic: str, partition: int) -> str:
    """The name of a topic partition as a source partition: by name they are in the order of their numbers."""
    return f"{topic}-{partition:0{_PART_DIGITS}d}"


class RowReader(Protocol):
    """Makes rows of what Spark hands to a worker: declared columns first, by their place, then of `source_columns`."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some batches, in their order. It is called once for each task."""
