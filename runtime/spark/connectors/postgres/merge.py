"""The statements that bring an epoch's staged rows into their table, and the search for the rows that are refused.

Guarantees: of a table's changes the last of each key counts that is not left out; whatever order the tasks had, it is
by the rows' numbers. A row is tried with as many others as possible: for k refused rows of n, some k log n statements.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vsc.plan.types import FLOAT, ArrayType, DataType
from vsc.plan.words import counted
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.expressions.json_text import quoted
from vsc.runtime.spark.connectors.postgres.copy import row_text, unstaged
from vsc.runtime.spark.connectors.postgres.table import Table, identifier
from vsc.runtime.spark.connectors.postgres.types import as_json, created_type
from vsc.runtime.spark.connectors.refusals import RefusedRow

if TYPE_CHECKING:
    import psycopg

__all__ = ["Merge", "is_refusal", "merged", "together"]

_log = logging.getLogger(__name__)
_NOW = "set constraints all immediate"
_REFUSALS = ("21", "22", "23", "44", "54", "P0")
"""SQLSTATE classes: cardinality, data, integrity, view checks, limits (a key too long for its index), and what a
trigger raises."""
_FLOATS = (FLOAT, ArrayType(FLOAT))
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


def _reason(error: psycopg.Error) -> str:
    """What the database says of a row that it refuses."""
    detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
    return f"{error.diag.message_primary}{detail}"


def is_refusal(error: psycopg.Error) -> bool:
    """Whether it is the rows that the database refuses."""
    return (error.sqlstate or "")[:2] in _REFUSALS


@dataclass(frozen=True, slots=True)
class Merge:
    """The rows of `staging` into `table`. `columns` are written; the first `keys` of them are the key.

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
    def uuids(self) -> list[int]:
        """The places of the keys by which rows are replaced that the table has as ``uuid``."""
        if not self.upsert:
            return []
        return [i for i in range(self.keys) if self.table.columns[self.columns[i][0]].base == "uuid"]

    @property
    def texts(self) -> str:
        """The columns of the staging table that hold a row's values."""
        return ", ".join(f"c{i}" for i in range(len(self.columns)))

    def newest_rows(self, connection: psycopg.Connection[Any], staged: str) -> list[int]:
        """The numbers of the rows that count: of a table's changes the last of each key."""
        rows = self._newest(staged) if self.upsert else f"(select row from {staged}) n"
        return [number for (number,) in connection.execute(f"select n.row from {rows} order by n.row")]

    def rows_before(
        self, connection: psycopg.Connection[Any], staged: str, rows: Sequence[int], without: Sequence[int]
    ) -> list[int]:
        """For each of the changes `rows` the last one of its key that is not among those `without`."""
        keys = ", ".join(f"c{i}" for i in range(self.keys))
        same = f"({keys}) in (select {keys} from {staged} and row in (select unnest({_array(rows)})))"
        return self.newest_rows(connection, f"{staged} and {same} and row not in (select unnest({_array(without)}))")

    def staged(self, attempts: Sequence[int]) -> str:
        """The staged rows of `attempts`, for a statement."""
        return f"{self.staging} where attempt = any({_array(attempts)})"

    def refused(
        self, connection: psycopg.Connection[Any], attempts: Sequence[int], place: str
    ) -> RefusedRowError | None:
        """What to say of the first row that the table refuses, None if it takes all of them now; changes nothing."""
        staged = self.staged(attempts)
        with connection.transaction(force_rollback=True):
            for row, error in self.bring(connection, staged, self.newest_rows(connection, staged)):
                return self._error(connection, f"{staged} and row = {row}", error, place)
        return None

    def bring(
        self, connection: psycopg.Connection[Any], staged: str, rows: Sequence[int]
    ) -> Iterator[tuple[int, psycopg.Error]]:
        """Brings in some of the rows, by their numbers, each key once; gives those that the table refuses."""
        import psycopg

        try:
            with connection.transaction():
                self.apply(connection, f"{staged} and row in (select unnest({_array(rows)}))")
            return
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            refusal = error
        if len(rows) < 2:
            yield from ((row, refusal) for row in rows)
            return
        middle = len(rows) // 2  # what is taken stays, so that each is tried a few times
        yield from self.bring(connection, staged, rows[:middle])
        yield from self.bring(connection, staged, rows[middle:])

    def apply(self, connection: psycopg.Connection[Any], staged: str) -> None:
        """Brings in all `staged` rows, in the transaction that is open."""
        if self.upsert:
            connection.execute(self._delete(staged))
            written = connection.execute(self._upsert(staged))
        else:
            everything = range(len(self.columns))
            written = connection.execute(
                f"insert into {self.table.sql} ({self._names(everything)}) select {self._values(everything)} "
                f"from (select * from {staged}) n order by row"
            )
        connection.execute(_NOW)
        if self.table.has_code:
            self._count(connection, staged, written.rowcount)

    def _count(self, connection: psycopg.Connection[Any], staged: str, written: int) -> None:
        """Warns of rows that a trigger or a rule has kept from being written. Of rows that are all key, those that are
        there already are not written either."""
        if self.upsert and len(self.columns) == self.keys:
            return
        rows = f"{self._newest(staged)} where not n.gone" if self.upsert else f"(select from {staged}) n"
        [wanted] = connection.execute(f"select count(*) from {rows}").fetchone() or [0]
        if written < wanted:
            _log.warning(
                f"the table '{self.table.schema}.{self.table.name}' took {written} of {counted(wanted, 'row')}: a "
                "trigger or a rule of it keeps the others back"
            )

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

    def _names(self, places: Sequence[int]) -> str:
        return ", ".join(identifier(self.columns[i][0]) for i in places)

    def _values(self, places: Sequence[int]) -> str:
        """The values as their columns' types, without modifiers: the table itself refuses what is too long."""
        return ", ".join(f"n.c{i}{self._cast(*self.columns[i])}" for i in places)

    def _cast(self, name: str, type: DataType) -> str:
        column = self.table.columns[name]
        # the text of a float, read as a double, would be another number
        narrow = f"::{created_type(type)}" if type in _FLOATS and not as_json(type, column) else ""
        return f"{narrow}::{column.cast}"

    def _error(
        self, connection: psycopg.Connection[Any], staged: str, error: psycopg.Error, place: str
    ) -> RefusedRowError:
        keys = ", ".join(f"c{i}" for i in range(self.keys or len(self.columns)))
        key = connection.execute(f"select {keys} from {staged}").fetchone() or ()
        return RefusedRowError(
            f"{place}: the table '{self.table.schema}.{self.table.name}' refuses "
            f"{row_text([name for name, _ in self.columns], key)}: {_reason(error)}",
            "change the column or the topology; nothing of the epoch was written",
        )


def together(merge: Merge, error: psycopg.Error, place: str) -> RefusedRowError:
    """What to say of rows that the table takes one by one and not as a whole."""
    return RefusedRowError(
        f"{place}: the table '{merge.table.schema}.{merge.table.name}' takes each row of the epoch, but not all "
        f"of them at once: {_reason(error)}",
        "if another session wrote to the table, run the same command again; else look for a trigger or a constraint",
    )


def merged(connection: psycopg.Connection[Any], merge: Merge, attempts: Sequence[int]) -> dict[int, RefusedRow]:
    """Brings in the rows that the table takes, in the transaction that is open; returns the others, by number.

    Of a table's changes the newest of each key counts that the table takes.
    """
    import psycopg

    staged, refused = f"{merge.staged(attempts)} and row >= 0", _not_stored(connection, merge, merge.staged(attempts))
    try:
        with connection.transaction():
            merge.apply(connection, staged)
        return refused
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
    waiting = merge.newest_rows(connection, staged)
    while waiting:
        fresh = []
        for number, refusal in merge.bring(connection, staged, waiting):
            row = connection.execute(f"select {merge.texts} from {staged} and row = {number}").fetchone()
            refused[number] = _row(merge, row or (), _reason(refusal))
            fresh.append(number)
        # in place of a change that is refused, the one before it of the same key
        waiting = merge.rows_before(connection, staged, fresh, list(refused)) if merge.upsert and fresh else []
    return refused


def _not_stored(connection: psycopg.Connection[Any], merge: Merge, staged: str) -> dict[int, RefusedRow]:
    """The rows that are staged as what no column can hold."""
    found: dict[int, RefusedRow] = {}
    for row, *cells in connection.execute(f"select row, {merge.texts} from {staged} and row < 0 order by row desc"):
        number, texts, message = unstaged(merge, row, cells)
        found[number] = _row(merge, texts, message)
    return found


def _row(merge: Merge, texts: Sequence[str | None], message: str) -> RefusedRow:
    members = [
        None if text is None else f"{quoted(name)}:{_json(text, type, as_json(type, merge.table.columns[name]))}"
        for (name, type), text in zip(merge.columns, texts, strict=True)
    ]
    key, value = ("{" + ",".join(filter(None, some)) + "}" for some in (members[: merge.keys], members[merge.keys :]))
    return RefusedRow(key if merge.keys else None, value, message)


def _json(text: str, type: DataType, json: bool) -> str:
    """A value as JSON, of the text that PostgreSQL would have read."""
    name = str(type).partition("(")[0]
    if name == "boolean":
        return "true" if text in ("t", "true") else "false"
    numeric = name in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    return text if json or (numeric and _NUMBER.fullmatch(text)) else quoted(text)


def _array(numbers: Sequence[int]) -> str:
    """Numbers for a statement. Very many are best unnested: all releases of the server make a hash table of these."""
    return f"'{{{','.join(map(str, numbers))}}}'::bigint[]"
