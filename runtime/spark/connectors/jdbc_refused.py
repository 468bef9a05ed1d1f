"""The rows of an epoch that a table refuses, where another sink takes them: found, left out, and kept with the epoch.

    vsc_refused    beside `vsc_epochs`: the refused rows of the newest epochs of each checkpoint and sink

Guarantees: in the transaction that writes the epoch stands which rows it lacks, so an epoch that comes again has the
same ones. A row is tried with as many others as possible: for k refused rows of n, some k log n statements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vsc.plan.types import DataType
from vsc.runtime.expressions.json_text import quoted
from vsc.runtime.spark.connectors.jdbc_copy import unstaged
from vsc.runtime.spark.connectors.jdbc_merge import Merge, is_refusal, reason
from vsc.runtime.spark.connectors.jdbc_table import Table, identifier
from vsc.runtime.spark.connectors.jdbc_types import as_json
from vsc.runtime.spark.refusals import RefusedRow

if TYPE_CHECKING:
    import psycopg

__all__ = ["RefusedRows", "merged"]

_CREATE = """
create table if not exists {} (
  checkpoint text not null, sink text not null, epoch bigint not null, row bigint not null,
  key text, value text, message text not null, primary key (checkpoint, sink, epoch, row)
)
"""
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


def merged(connection: psycopg.Connection[Any], merge: Merge, attempts: Sequence[int]) -> dict[int, RefusedRow]:
    """Brings in the rows that the table takes, in the transaction that is open; returns the others, by number.

    Of a table's changes the newest of each key counts that the table takes.
    """
    import psycopg

    staged, refused = f"{merge.staged(attempts)} and row >= 0", _not_stored(connection, merge, merge.staged(attempts))

    def bring(rows: Sequence[int]) -> None:
        try:
            with connection.transaction():
                merge.bring(connection, staged, rows)
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            if len(rows) == 1:
                row = connection.execute(f"select {merge.texts} from {staged} and row = {rows[0]}").fetchone()
                refused[rows[0]] = _row(merge, row or (), reason(error))
                return
            middle = len(rows) // 2
            bring(rows[:middle])
            bring(rows[middle:])

    try:
        with connection.transaction():
            merge.apply(connection, staged)
        return refused
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
    waiting = merge.newest_rows(connection, staged)
    while waiting:
        known = len(refused)
        bring(waiting)
        fresh = list(refused)[known:]
        # in place of a change that is refused, the one before it of the same key
        waiting = merge.rows_before(connection, staged, fresh, list(refused)) if merge.upsert and fresh else []
    return refused


def _not_stored(connection: psycopg.Connection[Any], merge: Merge, staged: str) -> dict[int, RefusedRow]:
    """The rows that are staged as what no column can hold."""
    names, found = [name for name, _ in merge.columns], dict[int, RefusedRow]()
    for row, *cells in connection.execute(f"select row, {merge.texts} from {staged} and row < 0 order by row desc"):
        number, texts, message = unstaged(row, cells, names)
        found[number] = _row(merge, texts, message)
    return found


def _row(merge: Merge, texts: Sequence[str | None], message: str) -> RefusedRow:
    members = [
        f"{quoted(name)}:{_json(text, type, as_json(type, merge.table.columns[name]))}"
        for (name, type), text in zip(merge.columns, texts, strict=True)
        if text is not None
    ]
    names = [name for name, _ in merge.columns[: merge.keys]]
    key = [member for member in members if any(member.startswith(quoted(name) + ":") for name in names)]
    value = [member for member in members if member not in key]
    return RefusedRow("{" + ",".join(key) + "}" if names else None, "{" + ",".join(value) + "}", message)


def _json(text: str, type: DataType, json: bool) -> str:
    """A value as JSON, of the text that PostgreSQL would have read."""
    name = str(type).partition("(")[0]
    if name == "boolean":
        return "true" if text in ("t", "true") else "false"
    numeric = name in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    return text if json or (numeric and _NUMBER.fullmatch(text)) else quoted(text)


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """The refused rows of one checkpoint and sink, beside `table`."""

    table: Table
    checkpoint: str
    sink: str

    @property
    def _name(self) -> str:
        return f"{identifier(self.table.schema)}.vsc_refused"

    def create(self, connection: psycopg.Connection[Any]) -> None:
        """Makes the table, unless it is there."""
        connection.execute(_CREATE.format(self._name))

    def keep(self, connection: psycopg.Connection[Any], epoch: int, rows: dict[int, RefusedRow], oldest: int) -> None:
        """Keeps those of an epoch, and forgets those of the epochs up to `oldest`."""
        name, mine = self._name.replace("%", "%%"), [self.checkpoint, self.sink]
        with connection.cursor() as cursor:
            cursor.execute(f"delete from {name} where checkpoint = %s and sink = %s and epoch <= %s", [*mine, oldest])
            cursor.executemany(
                f"insert into {name} values (%s, %s, %s, %s, %s, %s, %s)",
                [[*mine, epoch, number, row.key, row.value, row.message] for number, row in sorted(rows.items())],
            )

    def of(self, connection: psycopg.Connection[Any], epoch: int) -> list[RefusedRow]:
        """Those of an epoch."""
        name = self._name.replace("%", "%%")
        found = connection.execute(
            f"select key, value, message from {name} where checkpoint = %s and sink = %s and epoch = %s order by row",
            [self.checkpoint, self.sink, epoch],
        )
        return [RefusedRow(*row) for row in found]

    def forget_after(self, connection: psycopg.Connection[Any], epoch: int) -> None:
        """Forgets those of later epochs."""
        [there] = connection.execute("select to_regclass(%s)", [self._name]).fetchone() or [None]
        if there is not None:
            name = self._name.replace("%", "%%")
            connection.execute(
                f"delete from {name} where checkpoint = %s and sink = %s and epoch > %s",
                [self.checkpoint, self.sink, epoch],
            )
