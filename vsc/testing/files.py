"""Rows of a source from a file, as the source's own reader makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vsc.plan.nodes import Node
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.spark.connectors.without_spark import read_file
from vsc.runtime.values import displayed, to_values

__all__ = ["FileRows", "dropped_rows", "file_rows"]


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of `node` that have been read from the file at `path`, in its order; equal if they are of the same file."""

    node: Node
    path: str
    rows: SourceRows
    first: int = 1
    """The number of the first of them in the file."""

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileRows) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[str, str, int, int]:
        return self.node.name, self.path, self.first, len(self)

    def one(self, place: int) -> FileRows:
        """The row at a place, counted from 0."""
        chosen = np.arange(len(self)) == place
        row = self.rows.filter(chosen)
        if (broken := self.rows.broken) is not None:
            row = replace(row, broken=lambda _: broken(place))
        return FileRows(self.node, self.path, row, self.first + place)

    @property
    def is_deleted(self) -> bool:
        """Whether there is no value in a row."""
        return self.rows.deleted is not None and bool(self.rows.deleted.any())

    def values(self) -> Mapping[str, Any]:
        """The columns of a single row; none of one that cannot be read."""
        if self.rows.unreadable is not None and self.rows.unreadable.any():
            return {}
        columns = zip(self.node.source.columns, self.rows.columns, strict=True)
        return {c.name: displayed(to_values(array, c.type)[0], c.type) for c, array in columns}


def file_rows(node: Node, path: str, variables: Mapping[str, str], time: int | None) -> FileRows:
    """The rows in the file at `path`. `time`: theirs, in ms, if nothing in the file says it.

    `variables` are for ``${name}`` in the options of the source that say how to read. Raises SourceError,
    ConfigurationError or OSError.
    """
    return FileRows(node, path, read_file(node, variables, path, time))


def dropped_rows(rows: FileRows, counted: Metrics, first: int) -> tuple[str, ...]:
    """In words, why and how many of the rows have been dropped at their source, and the first of each reason.

    `counted`: what was counted as they were fed. `first`: the offset of the first of them.
    """
    name, told = rows.node.name, []
    for reason in Dropped:
        if count := counted.get(name, Group.DROPPED_RECORDS, reason):
            example = counted.examples().get((name, reason))
            where = "" if example is None else f": row {example.row - first + rows.first} {example.problem}"
            told.append(f"{rows.path}: {count} of {len(rows)} rows dropped ({reason.value}){where}")
    return tuple(told)
