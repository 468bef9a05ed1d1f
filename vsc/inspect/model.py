"""The values that the parts of `vsc.inspect` pass to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vsc.compiler.diagnostics.suggest import nearest
from vsc.plan.types import DataType

__all__ = ["DataColumn", "DataFile", "Found", "Headers", "InspectError", "Kind", "Sample", "Wanted"]

Kind = Literal["stream", "table"]


class InspectError(Exception):
    """The data cannot be inspected: one sentence says why, another what to do."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.help = message, help


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the source. `parts` are the names and texts of its Hive partition folders."""

    path: str
    size: int
    modified: int
    parts: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a source in the order in which they are read, and the path and options that select them.

    `options` are Spark's, for the source statement. `skipped` are files in the folder that are not of this format.
    """

    path: str
    format: str
    files: tuple[DataFile, ...]
    options: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """What is read: the first `limit` rows (None: all) of each of `files`."""

    files: tuple[DataFile, ...]
    limit: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column of the source statement, with notes about it."""

    name: str
    type: DataType
    notes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Date patterns that fit all its texts; if it is not text, it is read by the first."""
    local: bool = False
    """Whether it has texts that are timestamps without an offset."""
    absent: int = 0
    """How many of the files lack it."""
    from_path: bool = False
    """Whether its values come from the names of Hive partition folders."""


@dataclass(frozen=True, slots=True)
class Headers:
    """The columns that the files have. `left_out` are those that cannot be declared, with the reason."""

    columns: tuple[DataColumn, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    unreadable: int = 0
    first_unreadable: str | None = None

    def column(self, name: str) -> DataColumn:
        """The column of that name. Raises InspectError."""
        by_name = {column.name: column for column in self.columns}
        if name not in by_name:
            near = nearest(name, by_name)
            raise InspectError(f"there is no column {name}", f"did you mean {near}?" if near else ", ".join(by_name))
        return by_name[name]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user has decided. None or empty: `survey` finds it out."""

    format: str | None = None
    rows: int | None = None
    name: str | None = None
    kind: Kind | None = None
    key: tuple[str, ...] = ()
    timestamp: str | None = None
    now: int = 0
