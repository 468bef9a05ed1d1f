"""The rows of the join benchmark: a table's history, then a stream whose event times lie all over it.

Everyone gets the same files. A batch is `FILES_A_BATCH` files, so that two cores have something to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FILES_A_BATCH", "KEYS", "SPAN_MS", "Workload", "write_stream", "write_table"]

KEYS = 10_000
FILES_A_BATCH = 4
SPAN_MS = 100_000_000
"""The table's history in ms, a little more than a day."""

_STAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Workload:
    """How much there is: rows of the table, rows of a batch of the stream, batches to warm up, batches to measure."""

    versions: int = 200_000
    batch: int = 400_000
    warm_up: int = 10
    measured: int = 5

    @property
    def rows(self) -> int:
        """The stream's rows that are measured."""
        return self.batch * self.measured


def _keys(count: int, rng: np.random.Generator) -> pa.Array:
    names = pa.array([f"key-{i:06d}" for i in range(KEYS)])
    return names.take(pa.array(rng.integers(0, KEYS, count)))


def write_table(folder: Path, workload: Workload) -> None:
    """The versions, in the order of their event times: columns currency, rate, valid_at."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    count = workload.versions // FILES_A_BATCH
    times = np.sort(rng.integers(0, SPAN_MS, count * FILES_A_BATCH))
    for number in range(FILES_A_BATCH):
        at = pa.array(times[number * count : (number + 1) * count] * 1000, pa.int64()).view(_STAMP)
        table = pa.table({"currency": _keys(count, rng), "rate": pa.array(rng.random(count)), "valid_at": at})
        pq.write_table(table, folder / f"{number:04d}.parquet")


def write_stream(folder: Path, rows: int, batches: int, first: int = 0) -> None:
    """`batches` batches of `rows` rows at random times: columns id, currency, amount, paid_at."""
    folder.mkdir(parents=True, exist_ok=True)
    count = rows // FILES_A_BATCH
    for number in range(first * FILES_A_BATCH, (first + batches) * FILES_A_BATCH):
        rng = np.random.default_rng(100 + number)
        at = pa.array(rng.integers(0, SPAN_MS, count) * 1000, pa.int64()).view(_STAMP)
        ids = np.arange(number * count, (number + 1) * count)
        columns = {"id": ids, "currency": _keys(count, rng), "amount": rng.random(count), "paid_at": at}
        pq.write_table(pa.table(columns), folder / f"{number:04d}.parquet")
