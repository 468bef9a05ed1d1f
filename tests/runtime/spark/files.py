"""Rows of generated histories as input files, and the files of sinks read back exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle.epochs import EpochRow
from vsc.plan.nodes import Node, Plan, Source
from vsc.runtime.values import arrow_type, from_python, to_array, to_python, to_values

__all__ = ["by_age", "sink_files", "sink_records", "write_rows"]


def write_rows(plan: Plan, folder: Path, epoch: Sequence[EpochRow], number: int, formats: Mapping[str, str]) -> None:
    """A file for each source partition; the order of the names is that of the partitions, the epoch makes them new."""
    parts: dict[tuple[str, str], list[EpochRow]] = {}
    for row in epoch:
        parts.setdefault((row.source, row.part), []).append(row)
    for (source, part), rows in parts.items():
        operation = plan.node(source).operation
        assert isinstance(operation, Source)
        path = folder / source / f"{part}-{number}.{formats[source]}"
        aside = path.with_name("_" + path.name)
        values = [row.row for row in sorted(rows, key=lambda r: r.offset)]
        if formats[source] == "json":
            aside.write_text("".join(json.dumps(row, default=_plain) + "\n" for row in values))
        else:
            pq.write_table(_table(operation, values), aside)
        aside.rename(path)


def _table(source: Source, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    columns = {
        c.name: to_array([None if row[c.name] is None else from_python(row[c.name], c.type) for row in rows], c.type)
        for c in source.columns
    }
    return pa.table(columns)


def _plain(value: object) -> Any:
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
    raise TypeError(value)


def _by_name(file: Path) -> str:
    return file.name


def by_age(file: Path) -> int:
    """Files of several checkpoints, epoch by epoch: their names begin with the checkpoint's id."""
    return file.stat().st_mtime_ns


def sink_records(folder: Path, node: Node, order: Callable[[Path], Any] = _by_name) -> list[tuple[Any, ...]]:
    """The records of a sink, in file order: (key, event time, is it there, other columns), as text."""
    return [record for file in sink_files(folder, node, order) for record in file]


def sink_files(folder: Path, node: Node, order: Callable[[Path], Any] = _by_name) -> list[list[tuple[Any, ...]]]:
    """The same, file by file."""
    key, value = node.schema.key, node.schema.value
    found = []
    for file in sorted(folder.glob("part-*.parquet"), key=order):
        table = pq.read_table(file)
        columns = []
        for column in (*key, *value):
            values = to_values(table[column.name].combine_chunks().cast(arrow_type(column.type)), column.type)
            columns.append([None if v is None else to_python(v, column.type) for v in values])
        changes = table["_change"].to_pylist() if node.kind == "table" else ["upsert"] * len(table)
        rows = zip(zip(*columns, strict=True), table["_timestamp"].to_pylist(), changes, strict=True)
        found.append([(repr(r[: len(key)]), time, how == "upsert", repr(r[len(key) :])) for r, time, how in rows])
    return found
