"""What a task does with its rows: ``COPY`` them into the epoch's staging table, in one transaction.

Guarantees: a task that fails leaves nothing, and one that is run twice leaves rows that its number tells apart: the
driver takes those of the attempts that Spark took. A row whose text has a NUL, which PostgreSQL cannot hold even here,
or whose key is a uuid in another spelling than the server's, which could be that of another row, fails the task; or,
where refused rows are kept, is staged under a negative number, its values as JSON strings (`unstaged` reads them).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from vsc.runtime.errors import RefusedRowError
from vsc.runtime.expressions.json_text import quoted
from vsc.runtime.records import Mask
from vsc.runtime.spark.connectors.postgres.database import Database
from vsc.runtime.spark.connectors.postgres.types import as_json, copied, is_spelled, texts
from vsc.runtime.values import brief

if TYPE_CHECKING:
    from vsc.runtime.spark.connectors.postgres.merge import Merge

__all__ = ["COPIED", "Copy", "row_text", "unstaged"]

COPIED = "attempt bigint"
"""What a task tells the driver."""
_ROWS_A_TASK = 40
"""So many bits number the rows of a task; the others are the task's."""
_NUL = "\0"


def row_text(names: Sequence[str], key: Sequence[str | None]) -> str:
    """A row by its key, for a message."""
    shown = ", ".join(f"{name} = {brief(value)}" for name, value in zip(names, key, strict=False))
    return f"the row of {shown}" if shown else "a row"


def unstaged(merge: Merge, row: int, cells: Sequence[str | None]) -> tuple[int, list[str | None], str]:
    """The number and the texts of a row that is staged under a negative number, and why it cannot be stored."""
    texts = [None if cell is None else json.loads(cell) for cell in cells]
    return -1 - row, texts, _problem(merge, texts)[0]


def _problem(merge: Merge, texts: Sequence[str | None]) -> tuple[str, str]:
    """Why a row cannot be stored, and what to do."""
    for (name, _), text in zip(merge.columns, texts, strict=True):
        if _NUL in (text or ""):
            return (
                f"the text in column '{name}' has a NUL character, which PostgreSQL refuses",
                "filter such rows in the topology, write the column as binary, or keep them with `sink dropped`",
            )
    names = ", ".join(f"'{merge.columns[place][0]}'" for place in merge.uuids)
    return (
        f"the key in column {names} is not a uuid in PostgreSQL's spelling (lower case, four hyphens), so that another "
        "text could mean the same row",
        "make it lower(...) in the topology, make the column text, or keep such rows with `sink dropped`",
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """For the rows of a sink, into the staging table of `merge`; `keeps`: whether refused rows are kept."""

    database: Database
    merge: Merge
    place: str
    keeps: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copies the rows; one row for the driver, none if there was nothing to copy."""
        context = TaskContext.get()
        assert context is not None
        attempt, rows = context.taskAttemptId(), context.partitionId() << _ROWS_A_TASK
        filled = (batch for batch in batches if batch.num_rows)
        head = next(filled, None)
        if head is None:
            return
        statement = f"copy {self.merge.staging} from stdin"
        with self.database.connected(self.place) as connection, connection.cursor().copy(statement) as copy:
            while head is not None:
                copy.write(self._lines(head, attempt, rows))
                rows, head = rows + head.num_rows, next(filled, None)
        yield pa.RecordBatch.from_pydict({"attempt": [attempt]})

    def _lines(self, batch: pa.RecordBatch, attempt: int, first: int) -> memoryview:
        count = batch.num_rows
        there = self.merge.table.columns
        arrays, gone = batch.columns, np.zeros(count, dtype=np.bool_)
        if self.merge.upsert:  # behind a record's columns stand whether its row is deleted, and its time
            *arrays, change, time = arrays
            arrays, gone = [*arrays, time], pc.equal(change, "delete")
        columns = [
            texts(array, type, as_json(type, there[name]))
            for array, (name, type) in zip(arrays, self.merge.columns, strict=False)
        ]
        numbers = np.arange(first, first + count)
        bad = _with_nul(columns) | _otherwise_spelled([columns[place] for place in self.merge.uuids], count)
        if bad.any():
            if not self.keeps:
                raise self._refusal([column[int(bad.argmax())].as_py() for column in columns])
            numbers = np.where(bad, -1 - numbers, numbers)
            columns = [_as_json(column, bad) for column in columns]
        own: list[pa.Array] = [pa.array(np.full(count, attempt)), pa.array(numbers), gone]
        return copied([pa.array(column).cast(pa.string()) for column in own] + columns)

    def _refusal(self, texts: Sequence[str | None]) -> RefusedRowError:
        names = [name for name, _ in self.merge.columns]
        problem, help = _problem(self.merge, texts)
        return RefusedRowError(f"{self.place}: {row_text(names, texts[: self.merge.keys])}: {problem}", help)


def _with_nul(columns: Sequence[pa.Array]) -> Mask:
    """The rows of which a text has a NUL."""
    found = [pc.fill_null(pc.match_substring(column, _NUL), False) for column in columns]
    bad: Mask = np.logical_or.reduce([one.to_numpy(zero_copy_only=False) for one in found])
    return bad


def _otherwise_spelled(keys: Sequence[pa.Array], count: int) -> Mask:
    """The rows of which a key is not a uuid as PostgreSQL writes it."""
    bad: Mask = np.zeros(count, dtype=np.bool_)
    for column in keys:
        bad |= ~pc.fill_null(is_spelled(column), True).to_numpy(zero_copy_only=False)
    return bad


def _as_json(column: pa.Array, rows: Mask) -> pa.Array:
    """The texts at `rows` as JSON strings, the others as they are."""
    cells = [None if cell is None else quoted(cell) for cell in column.filter(pa.array(rows)).to_pylist()]
    return pc.replace_with_mask(column, rows, pa.array(cells, pa.string()))
