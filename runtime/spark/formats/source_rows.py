"""Rows as a format gives them, as rows that stage 0 takes: of the declared types, and marked if they are unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Source
from vsc.runtime.operators.source.partition_folders import FolderValue
from vsc.runtime.operators.source.rows import Broken, SourceRows
from vsc.runtime.records import Mask, Origin
from vsc.runtime.spark.formats.misfits import not_text, outside_years
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT, DELETED, OFFSET, TIME
from vsc.runtime.values import arrow_type

__all__ = ["source_rows"]

_MISFITS = ((not_text, "is not UTF-8 text"), (outside_years, "is not in the years 1 to 9999"))
"""What makes a row unreadable, whatever it is read from: in which rows a column has it."""


def source_rows(
    source: Source, origin: Origin, rows: pa.RecordBatch, first: int, folders: Mapping[int, FolderValue]
) -> SourceRows:
    """The declared columns, which `rows` has first, and what it tells of `source_columns`.

    `first`: the offset of the first row, unless rows have their own. `folders`: the columns that are in the path.
    """
    count = rows.num_rows
    columns = tuple(
        folders[i].repeated(count) if i in folders else _typed(rows.column(i), arrow_type(column.type))
        for i, column in enumerate(source.columns)
    )
    offsets = _numbers(rows, OFFSET)
    if offsets is None:
        offsets = np.arange(first, first + count, dtype=np.int64)
    bad, broken = _unreadable(source, rows, columns, folders)
    return SourceRows(origin, columns, offsets, _numbers(rows, TIME), _numbers(rows, DELETED), bad, broken)


def _unreadable(
    source: Source, rows: pa.RecordBatch, columns: tuple[pa.Array, ...], folders: Mapping[int, FolderValue]
) -> tuple[Mask | None, Broken | None]:
    """Which rows cannot be read; why one cannot, and what was read."""
    of_folders = [folder.problem for folder in folders.values() if folder.problem is not None]
    if of_folders:
        return np.ones(rows.num_rows, dtype=np.bool_), lambda row: (of_folders[0], None)
    why = {name: rows.column(name) for name in (BAD, CORRUPT) if name in rows.schema.names}
    bad: Mask = np.zeros(rows.num_rows, dtype=np.bool_)
    if BAD in why:
        bad |= why[BAD].is_valid().to_numpy(zero_copy_only=False)
    misfits: dict[int, str] = {}
    for declared, array in zip(source.columns, columns, strict=True):
        for found, what in _MISFITS:
            for row in found(array).tolist():
                bad[row] = True
                misfits.setdefault(row, f"column {declared.name!r} {what}")
    if not bad.any():
        return None, None

    def broken(row: int) -> tuple[str | None, str | None]:
        found = {name: column[row].as_py() for name, column in why.items()}
        return found.get(BAD) or misfits.get(row), found.get(CORRUPT)

    return bad, broken


def _numbers(rows: pa.RecordBatch, name: str) -> npt.NDArray[Any] | None:
    """A column of `source_columns` without nulls; None where it does not apply."""
    return rows.column(name).to_numpy(zero_copy_only=False) if name in rows.schema.names else None


def _typed(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column as vsc's type for it: Spark's may differ in the names inside of it."""
    return column if column.type == wanted else column.cast(wanted)
