"""What the parts of `vsc.inspect` hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vsc.plan.types import DataType

__all__ = ["DataColumn", "DataFile", "Found", "Headers", "InspectError", "Kind", "Sample", "Wanted"]

Kind = Literal["stream", "table"]


class InspectError(Exception):
    """The data cannot be inspected: a sentence that says why, and one that says what to do."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.help = message, help


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the source; `parts` are the names and texts of its Hive partition folders."""

    path: str
    size: int
    modified: int
    parts: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a source in the order in which they are read, and how to say which ones they are.

    `options` are Spark's, in the source statement; `skipped` are files in the folder that are not of this format.
    """

    path: str
    format: str
    files: tuple[DataFile, ...]
    options: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """What is read: of each of `files` the first `limit` rows (None: all)."""

    files: tuple[DataFile, ...]
    limit: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column of the source statement with what is worth saying about it."""

    name: str
    type: DataType
    notes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Date patterns that all its texts have (`to_timestamp` reads them)."""
    local: bool = False
    """Whether there are texts of timestamps without an offset."""
    absent: int = 0
    """How many of the files do not have it."""
    from_path: bool = False
    """Whether its values are names of Hive partition folders."""


@dataclass(frozen=True, slots=True)
class Headers:
    """The columns that the files have; `left_out` are those that cannot be declared, with the reason."""

    columns: tuple[DataColumn, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    unreadable: int = 0
    first_unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user has decided; None or empty: to be found out."""

    format: str | None = None
    rows: int | None = None
    name: str | None = None
    kind: Kind = "stream"
    key: tuple[str, ...] = ()
    timestamp: str | None = None
    now: int = 0
