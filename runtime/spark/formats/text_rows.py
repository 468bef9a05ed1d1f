"""Rows that stand in texts: what is made of these, whatever the format."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.records import Int64s
from vsc.runtime.spark.formats.source_columns import DELETED, TIME

__all__ = ["TextReader", "TextRows", "Wanted", "with_own"]


@dataclass(frozen=True)
class Wanted:
    """What is to be read: `columns`, of which `key` are the key; times without an offset are of `zone`.

    A text of a file may be several rows, or none; the `whole` text of a message is one; that of its key, if it is
    `bare`, may be the value of its only column.
    """

    columns: tuple[Column, ...]
    key: frozenset[str] = frozenset()
    zone: tzinfo = UTC
    whole: bool = False
    bare: bool = False


@dataclass(frozen=True)
class TextRows:
    """Rows, each from the text at its place in `places`. `problems`: why one cannot be read; `texts`: what it was.

    Where the format says so: `times`, the rows' own times in ms (null if they have none), and `deleted`, whether a row
    only says that the one of its key is gone.
    """

    columns: list[pa.Array]
    places: Int64s
    problems: pa.Array
    texts: pa.Array
    times: pa.Array | None = None
    deleted: pa.Array | None = None


def with_own(columns: dict[str, pa.Array], rows: TextRows) -> dict[str, pa.Array]:
    """Columns, with what the rows say of themselves: their times, before any other, and whether they are deleted."""
    found = dict(columns)
    if rows.times is not None:
        others = [columns[TIME]] if TIME in columns else []
        found[TIME] = pc.coalesce(rows.times, *others, pa.scalar(0, pa.int64()))
    if rows.deleted is not None:
        found[DELETED] = rows.deleted
    return found


class TextReader(Protocol):
    """Reads texts as rows of `columns`."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, as they are declared."""

    def read(self, texts: pa.Array) -> TextRows:
        """The rows of texts, which are bytes, none of them null: of each any number, in order."""
