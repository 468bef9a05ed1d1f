"""What a task does with its rows: ``COPY`` them into the epoch's staging table, in one transaction.

Guarantees: a task that fails leaves nothing, and one that is run twice leaves rows that its number tells apart: the
driver takes those of the attempts that Spark took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from vsc.plan.types import DataType
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.spark.connectors.jdbc_database import Database
from vsc.runtime.spark.connectors.jdbc_types import copied, texts
from vsc.runtime.values import brief

__all__ = ["COPIED", "Copy", "row_text"]

COPIED = "attempt bigint, copied bigint"
"""What a task tells the driver."""
_ROWS_A_TASK = 40
"""So many bits number the rows of a task; the others are the task's."""


def row_text(names: Sequence[str], key: Sequence[str | None]) -> str:
    """A row by its key, for a message."""
    shown = ", ".join(f"{name} = {brief(value)}" for name, value in zip(names, key, strict=False))
    return f"the row of {shown}" if shown else "a row"


@dataclass(frozen=True, slots=True)
class Copy:
    """For the rows of a sink. `columns` are those that are written, `json` the places of JSON columns, `keys` how many
    key columns stand in front; `changes`: behind the columns it says whether a row is deleted."""

    database: Database
    staging: str
    place: str
    columns: tuple[tuple[str, DataType], ...]
    json: frozenset[int]
    keys: int
    changes: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copies the rows; one row for the driver, none if there was nothing to copy."""
        context = TaskContext.get()
        assert context is not None
        attempt, first = context.taskAttemptId(), context.partitionId() << _ROWS_A_TASK
        rows = first
        filled = (batch for batch in batches if batch.num_rows)
        head = next(filled, None)
        if head is None:
            return
        statement = f"copy {self.staging} from stdin"
        with self.database.connected(self.place) as connection, connection.cursor().copy(statement) as copy:
            while head is not None:
                copy.write(self._lines(head, attempt, rows))
                rows, head = rows + head.num_rows, next(filled, None)
        yield pa.RecordBatch.from_arrays(
            [pa.array([attempt], pa.int64()), pa.array([rows - first], pa.int64())], names=["attempt", "copied"]
        )

    def _lines(self, batch: pa.RecordBatch, attempt: int, first: int) -> memoryview:
        count = batch.num_rows
        columns = [texts(batch.column(i), type, i in self.json) for i, (_, type) in enumerate(self.columns)]
        self._check(columns)
        gone = np.zeros(count, dtype=np.bool_)
        if self.changes:
            gone = pc.equal(batch.column(len(columns)), "delete")
        own: list[pa.Array] = [pa.array(np.full(count, attempt)), pa.array(np.arange(first, first + count)), gone]
        return copied([pa.array(column).cast(pa.string()) for column in own] + columns)

    def _check(self, columns: list[pa.Array]) -> None:
        names = [name for name, _ in self.columns]
        for name, column in zip(names, columns, strict=True):
            found = pc.index(pc.match_substring(column, "\0"), True).as_py()
            if found >= 0:
                row = row_text(names, [part[found].as_py() for part in columns[: self.keys]])
                raise RefusedRowError(
                    f"{self.place}: {row}: the text in column '{name}' has a NUL character, which PostgreSQL refuses",
                    "filter such rows in the topology, or write the column as binary",
                )
