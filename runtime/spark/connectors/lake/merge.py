"""The statements that bring an epoch's rows into a table of a lake format, each of them one commit.

A frame has the values of the target's columns by their places (`place`); one of changes has `CHANGE` and `AT` as well.
The rows of a key stand in one task, in their order.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from vsc.runtime.spark.base.ddl import quoted

__all__ = ["AT", "CHANGE", "PRESENT", "Target", "appended", "merged", "place", "upserted"]

CHANGE, AT, PRESENT = "change", "at", "present"
"""Columns of changes: ``upsert`` or ``delete``, the event time in ms; of versions: whether there is a value."""
_NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Target:
    """A table by its name in SQL, its columns in the order of the frame's, the first `keys` of them its key."""

    sql: str
    columns: tuple[str, ...]
    keys: int


def place(number: int) -> str:
    """The name of a frame's column by its place."""
    return f"c{number}"


def appended(frame: DataFrame, target: Target) -> None:
    """Appends the rows of a stream."""
    names = ", ".join(map(quoted, target.columns))
    with _view(frame) as view:
        places = ", ".join(place(i) for i in range(len(target.columns)))
        frame.sparkSession.sql(f"insert into {target.sql} ({names}) select {places} from {view}")


def upserted(frame: DataFrame, target: Target) -> None:
    """Upserts and deletes by key: the last change of each key counts."""
    keys = [place(i) for i in range(target.keys)]
    everything = F.struct(*(place(i) for i in range(len(target.columns))), CHANGE)
    numbered = frame.select(*keys, everything.alias("row"), F.monotonically_increasing_id().alias(_NUMBER))
    last = numbered.groupBy(*keys).agg(F.max_by("row", _NUMBER).alias("row")).select("row.*")
    named = list(zip(target.columns, map(place, range(len(target.columns))), strict=True))
    merged(last, target.sql, named[: target.keys], named[target.keys :], CHANGE)


def merged(
    rows: DataFrame, table: str, keys: Sequence[tuple[str, str]], values: Sequence[tuple[str, str]], action: str
) -> None:
    """Merges rows into a table: `keys` and `values` pair its columns with those of the rows, whose column `action` says
    ``upsert`` or ``delete``. There is at most one of a key."""
    named = [(f"t.{quoted(ours)}", f"s.{theirs}") for ours, theirs in (*keys, *values)]
    same = " and ".join(f"{ours} = {theirs}" for ours, theirs in named[: len(keys)])
    set_ = ", ".join(f"{ours} = {theirs}" for ours, theirs in named[len(keys) :])
    # Computed once: what is merged is read several times, and may read the table itself.
    with _view(rows.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)) as view:
        rows.sparkSession.sql(
            f"merge into {table} t using {view} s on {same} "
            f"when matched and s.{action} = 'delete' then delete "
            + (f"when matched then update set {set_} " if values else "")
            + f"when not matched and s.{action} = 'upsert' then "
            f"insert ({', '.join(quoted(ours) for ours, _ in (*keys, *values))}) "
            f"values ({', '.join(theirs for _, theirs in named)})"
        )


@contextmanager
def _view(frame: DataFrame) -> Iterator[str]:
    """A name for the frame in SQL."""
    name = f"vsc_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)
