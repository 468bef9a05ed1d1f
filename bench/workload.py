"""How many rows a comparison has, and the keys and event times that rows have in all comparisons.

All peers of a comparison read the same parquet files. A batch is `FILES_A_BATCH` files by default, so that two cores
have something to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FILES_A_BATCH", "KEYS", "Workload", "keys", "stamps", "write_file"]

KEYS = 10_000
FILES_A_BATCH = 4

_NAMES = pa.array([f"key-{i:06d}" for i in range(KEYS)])
_QUICK = 20_000


@dataclass(frozen=True, slots=True)
class Workload:
    """The amount of data.

    `table`: rows of the table, loaded before the stream (0: no table); `batch`: rows in a batch of the stream;
    `warm_up` and `measured`: how many batches do not count, and how many do; `files`: files in a batch.
    """

    table: int = 0
    batch: int = 400_000
    warm_up: int = 10
    measured: int = 5
    files: int = FILES_A_BATCH

    @property
    def batches(self) -> int:
        """The stream's batches, including the warm-up."""
        return self.warm_up + self.measured

    @property
    def rows(self) -> int:
        """The stream's rows that are measured."""
        return self.batch * self.measured

    def quick(self) -> Workload:
        """A workload just large enough to show that everything runs."""
        return replace(self, table=min(self.table, _QUICK), batch=min(self.batch, _QUICK), warm_up=1, measured=1)


def keys(count: int, rng: np.random.Generator) -> pa.Array:
    """`count` keys, all equally likely."""
    return _NAMES.take(pa.array(rng.integers(0, KEYS, count)))


def stamps(milliseconds: np.ndarray[Any, Any]) -> pa.Array:
    """Event times as a column."""
    return pa.array(milliseconds * 1000, pa.int64()).view(pa.timestamp("us", "UTC"))


def write_file(folder: Path, number: int, columns: Mapping[str, Any]) -> None:
    """Writes the file `number` of a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), folder / f"{number:04d}.parquet")
