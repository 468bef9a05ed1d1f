"""What vsc keeps of the epochs of a sink, in tables of its own beside the target, in its schema::

    vsc_epochs     which epochs of which checkpoint and sink are in the database
    vsc_refused    the rows that the table refused in them, where another sink takes them

Guarantees: what is kept of an epoch is written in the transaction that writes the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from vsc.runtime.spark.connectors.postgres.table import Table, identifier
from vsc.runtime.spark.connectors.refusals import RefusedRow
from vsc.runtime.spark.exchange.tally import Tally

if TYPE_CHECKING:
    import psycopg

__all__ = ["RefusedRows", "WrittenEpochs"]


@dataclass(frozen=True, slots=True)
class _EpochTable:
    """The rows of one checkpoint and sink in such a table, beside `table`."""

    table: Table
    checkpoint: str
    sink: str

    name: ClassVar[str]
    columns: ClassVar[str]
    """The columns behind checkpoint, sink and epoch, and what else is said of the table."""

    def create(self, connection: psycopg.Connection[Any]) -> None:
        """Makes the table, unless it is there."""
        own = "checkpoint text not null, sink text not null, epoch bigint not null"
        connection.execute(f"create table if not exists {self.sql} ({own}, {self.columns})")

    def forget_after(self, connection: psycopg.Connection[Any], epoch: int) -> None:
        """Forgets later epochs, if the table is there."""
        [there] = connection.execute("select to_regclass(%s)", [self.sql]).fetchone() or [None]
        if there is not None:
            self._delete(connection, ">", epoch)

    def _delete(self, connection: psycopg.Connection[Any], which: Literal["<=", ">"], epoch: int) -> None:
        connection.execute(f"delete from {self._mine} and epoch {which} %s", [self.checkpoint, self.sink, epoch])

    @property
    def sql(self) -> str:
        """The table's name in a statement."""
        return f"{identifier(self.table.schema)}.{self.name}"

    @property
    def _into(self) -> str:
        """The table, in a statement with parameters: there psycopg reads a percent sign."""
        return self.sql.replace("%", "%%")

    @property
    def _mine(self) -> str:
        """The rows, in a statement whose first parameters are the checkpoint and the sink."""
        return f"{self._into} where checkpoint = %s and sink = %s"


class WrittenEpochs(_EpochTable):
    """Which epochs are written, and what they had."""

    __slots__ = ()
    name = "vsc_epochs"
    columns = (
        "rows bigint not null, digest text not null, written_at timestamptz not null default now(), "
        "primary key (checkpoint, sink, epoch)"
    )

    def known(self, connection: psycopg.Connection[Any]) -> dict[int, Tally]:
        """The epochs that are known."""
        found = connection.execute(f"select epoch, rows, digest from {self._mine}", [self.checkpoint, self.sink])
        return {epoch: Tally(rows, int(digest, 16)) for epoch, rows, digest in found}

    def record(self, connection: psycopg.Connection[Any], epoch: int, tally: Tally, oldest: int) -> None:
        """Adds an epoch, and forgets those up to `oldest`. Raises UniqueViolation for one that is there."""
        connection.execute(
            f"insert into {self._into} (checkpoint, sink, epoch, rows, digest) values (%s, %s, %s, %s, %s)",
            [self.checkpoint, self.sink, epoch, tally.count, f"{tally.digest:032x}"],
        )
        self._delete(connection, "<=", oldest)


class RefusedRows(_EpochTable):
    """The rows that the table refused in the newest epochs."""

    __slots__ = ()
    name = "vsc_refused"
    columns = (
        "row bigint not null, key text, value text, message text not null, primary key (checkpoint, sink, epoch, row)"
    )

    def keep(self, connection: psycopg.Connection[Any], epoch: int, rows: dict[int, RefusedRow], oldest: int) -> None:
        """Keeps the refused rows of an epoch, and forgets those of the epochs up to `oldest`."""
        self._delete(connection, "<=", oldest)
        with connection.cursor() as cursor:
            cursor.executemany(
                f"insert into {self._into} values (%s, %s, %s, %s, %s, %s, %s)",
                [
                    [self.checkpoint, self.sink, epoch, number, row.key, row.value, row.message]
                    for number, row in sorted(rows.items())
                ],
            )

    def of(self, connection: psycopg.Connection[Any], epoch: int) -> list[RefusedRow]:
        """The refused rows of an epoch."""
        found = connection.execute(
            f"select key, value, message from {self._mine} and epoch = %s order by row",
            [self.checkpoint, self.sink, epoch],
        )
        return [RefusedRow(*row) for row in found]
