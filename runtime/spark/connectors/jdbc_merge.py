"""The statements that bring an epoch's staged rows into their table, and the search for a row that is refused.

Guarantees: of a table's changes the last of each key counts; whatever order the tasks had, it is by the rows' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vsc.plan.types import DataType
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.spark.connectors.jdbc_copy import row_text
from vsc.runtime.spark.connectors.jdbc_table import Table, identifier

if TYPE_CHECKING:
    import psycopg

__all__ = ["Merge", "is_refusal", "reason"]

_NOW = "set constraints all immediate"
_REFUSALS = ("21", "22", "23", "44", "P0")
"""SQLSTATE classes: cardinality, data, integrity, view checks, and what a trigger raises."""


def reason(error: psycopg.Error) -> str:
    """What the database says of a row that it refuses."""
    detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
    return f"{error.diag.message_primary}{detail}"


def is_refusal(error: psycopg.Error) -> bool:
    """Whether it is the rows that the database refuses."""
    return (error.sqlstate or "")[:2] in _REFUSALS


@dataclass(frozen=True, slots=True)
class Merge:
    """The rows of `staging` into `table`. `columns` are those that are written, the `keys` first ones of them a key.

    `upsert`: by key, and deletes; else they are appended.
    """

    table: Table
    staging: str
    columns: tuple[tuple[str, DataType], ...]
    keys: int
    upsert: bool

    @property
    def staging_columns(self) -> str:
        """The columns of the staging table: all text, so that only this merge can fail on a value."""
        texts = "".join(f', c{i} text collate "C"' for i in range(len(self.columns)))
        return f"attempt bigint not null, row bigint not null, gone boolean not null{texts}"

    @property
    def texts(self) -> str:
        """The columns of the staging table that hold a row's values."""
        return ", ".join(f"c{i}" for i in range(len(self.columns)))

    def newest_rows(self, connection: psycopg.Connection[Any], staged: str) -> list[int]:
        """The numbers of the rows that count: of a table's changes the last of each key."""
        rows = f"{self._newest(staged)}" if self.upsert else f"(select row from {staged}) n"
        return [number for (number,) in connection.execute(f"select n.row from {rows} order by n.row")]

    def rows_before(
        self, connection: psycopg.Connection[Any], staged: str, rows: Sequence[int], without: Sequence[int]
    ) -> list[int]:
        """For each of the changes `rows` the last one of its key that is not among those `without`."""
        keys = ", ".join(f"c{i}" for i in range(self.keys))
        same = f"({keys}) in (select {keys} from {staged} and row = any({_numbers(rows)}))"
        return self.newest_rows(connection, f"{staged} and {same} and row <> all({_numbers(without)})")

    def bring(self, connection: psycopg.Connection[Any], staged: str, rows: Sequence[int]) -> None:
        """Brings in some of the rows, by their numbers."""
        self._merge(connection, f"{staged} and row = any({_numbers(rows)})")

    def apply(self, connection: psycopg.Connection[Any], staged: str) -> None:
        """Brings in all `staged` rows, in the transaction that is open."""
        self._merge(connection, staged)

    def staged(self, attempts: Sequence[int]) -> str:
        """The staged rows of `attempts`, for a statement."""
        return f"{self.staging} where attempt = any({_numbers(attempts)})"

    def refused(
        self, connection: psycopg.Connection[Any], attempts: Sequence[int], place: str
    ) -> RefusedRowError | None:
        """What to say of the first row that the table refuses, None if it takes all of them now; changes nothing.

        The rows are halved: what is taken stays, so that each is tried about twice.
        """
        import psycopg

        staged = self.staged(attempts)
        with connection.transaction(force_rollback=True):
            if self.upsert:  # what a later change of its key replaces would not be tried
                self._forget_replaced(connection, staged)
            rows = [number for (number,) in connection.execute(f"select row from {staged} order by row")]
            first, end, found = 0, len(rows), False
            while first < end:
                middle = (first + end) // 2 if found and end - first > 1 else end
                try:
                    with connection.transaction():
                        self._merge(connection, f"{staged} and row between {rows[first]} and {rows[middle - 1]}")
                except psycopg.Error as refusal:
                    if not is_refusal(refusal):
                        raise
                    if middle - first == 1:
                        return self._error(connection, f"{staged} and row = {rows[first]}", refusal, place)
                    end, found = middle, True
                else:
                    if not found:
                        return None
                    first = middle
        return None

    def _merge(self, connection: psycopg.Connection[Any], staged: str) -> None:
        if self.upsert:
            connection.execute(self._delete(staged))
            connection.execute(self._upsert(staged))
        else:
            everything = range(len(self.columns))
            connection.execute(
                f"insert into {self.table.sql} ({self._names(everything)}) select {self._values(everything)} "
                f"from (select * from {staged}) n order by row"
            )
        connection.execute(_NOW)

    def _delete(self, staged: str) -> str:
        same = " and ".join(f"t.{self._names([i])} = {self._values([i])}" for i in range(self.keys))
        return (
            f"delete from {self.table.sql} t using {self._newest(staged)} "
            f"where n.gone and {same} and exists (select from {staged} and gone)"
        )

    def _upsert(self, staged: str) -> str:
        everything = range(len(self.columns))
        keys, values = everything[: self.keys], everything[self.keys :]
        update = ", ".join(f"{self._names([i])} = excluded.{self._names([i])}" for i in values)
        return (
            f"insert into {self.table.sql} ({self._names(everything)}) select {self._values(everything)} "
            f"from {self._newest(staged)} where not n.gone "
            f"on conflict ({self._names(keys)}) do " + (f"update set {update}" if update else "nothing")
        )

    def _newest(self, staged: str) -> str:
        """The last change of each key."""
        by = ", ".join(f"c{i}" for i in range(self.keys))
        return f"(select distinct on ({by}) * from {staged} order by {by}, row desc) n"

    def _forget_replaced(self, connection: psycopg.Connection[Any], staged: str) -> None:
        newest = f"select n.row from {self._newest(staged)}"
        connection.execute(f"delete from {staged} and row not in ({newest})")

    def _names(self, places: Sequence[int]) -> str:
        return ", ".join(identifier(self.columns[i][0]) for i in places)

    def _values(self, places: Sequence[int]) -> str:
        """The values as their columns' types, without modifiers: the table itself refuses what is too long."""
        return ", ".join(f"n.c{i}::{self.table.columns[self.columns[i][0]].cast}" for i in places)

    def _error(
        self, connection: psycopg.Connection[Any], staged: str, error: psycopg.Error, place: str
    ) -> RefusedRowError:
        keys = ", ".join(f"c{i}" for i in range(self.keys or len(self.columns)))
        key = connection.execute(f"select {keys} from {staged}").fetchone() or ()
        return RefusedRowError(
            f"{place}: the table '{self.table.schema}.{self.table.name}' refuses "
            f"{row_text([name for name, _ in self.columns], key)}: {reason(error)}",
            "change the column or the topology; nothing of the epoch was written",
        )


def _numbers(numbers: Sequence[int]) -> str:
    """Numbers as an array, for a statement."""
    return f"'{{{','.join(map(str, numbers))}}}'::bigint[]"
