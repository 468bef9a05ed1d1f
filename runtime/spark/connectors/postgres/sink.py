"""A sink into a table of PostgreSQL: an epoch appears in one transaction, and in that transaction is written down.

Beside the target, in its schema, with the tables of `epochs`::

    vsc_stage_CHECKPOINT_SINK_...    an epoch's rows while its tasks copy them; gone when the epoch is written

Guarantees: readers see all of an epoch or nothing; an epoch that comes again changes nothing, whatever crashed between
the database's commit and Spark's; two drivers cannot write one epoch.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vsc.runtime.errors import DatabaseError, DatabaseTableError, SinkError
from vsc.runtime.spark.connectors.postgres.checks import (
    check_holds_text,
    check_may_create,
    check_may_create_table,
    check_privileges,
    check_sees_every_row,
    check_table,
    check_takes_writes,
)
from vsc.runtime.spark.connectors.postgres.copy import COPIED, Copy
from vsc.runtime.spark.connectors.postgres.database import Database
from vsc.runtime.spark.connectors.postgres.epochs import RefusedRows, WrittenEpochs
from vsc.runtime.spark.connectors.postgres.merge import Merge, is_refusal, merged, together
from vsc.runtime.spark.connectors.postgres.table import Table, create_table, found_table, identifier
from vsc.runtime.spark.connectors.refusals import RefusedRow
from vsc.runtime.spark.connectors.sink import OpenSink, TableSink, way_back
from vsc.runtime.spark.exchange.output import Output, RowTransform
from vsc.runtime.spark.exchange.tally import Tally

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresSink"]

_log = logging.getLogger(__name__)
_TO_UPSERT = ("insert", "update", "delete", "select")
_TO_APPEND = ("insert",)
_OF_EPOCHS = ("select", "insert", "delete")
"""The privileges that a sink needs, by how it writes, and those on `vsc_epochs`."""
_KEPT = 2
"""Of how many epochs it is kept that they are written, and what was refused: Spark repeats none but the newest."""


class PostgresSink(TableSink):
    """See the module."""

    def __init__(self, opened: OpenSink, checkpoint: str) -> None:
        self._database = Database.of(opened.options)
        super().__init__(opened, self._database.name)
        self._checkpoint = checkpoint
        self._table: Table | None = None
        self._written: dict[int, Tally] = {}

    def reach(self) -> None:
        """Refuses a server, a table or a user with which the sink cannot be written; changes nothing."""
        with self._connected() as connection:
            self._looked_at(connection)

    def prepare(self) -> None:
        """Looks at the table, or creates it; makes `vsc_epochs`; removes what a crash left."""
        with self._connected() as connection:
            table = self._looked_at(connection)
            if table is None:
                name = self._options.text("table")
                self._check_may_make(f"the table {name!r} in {self._shown}")
                self._made = True
                create_table(connection, name, self._columns, self._key, self._place)
                table = self._looked_at(connection)
                assert table is not None
            with connection.transaction():  # two queries that start at once would collide
                connection.execute("select pg_advisory_xact_lock(hashtext(%s))", [WrittenEpochs.name])
                self._epochs(table).create(connection)
                if self.keeps_refused:
                    self._refused(table).create(connection)
            self._sweep(connection, table)
            self._written = self._epochs(table).known(connection)
            self._newest = max(self._written, default=None)
            self._check_holds()
            self._table = table

    def is_new(self, epoch: int) -> bool:
        """Whether the database does not have the epoch."""
        return epoch not in self._written

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Stages the epoch's rows in parallel, then merges them in one transaction, which records the epoch."""
        if not self.is_new(epoch):
            before, now = self._written[epoch], rows()
            if before != now:
                raise before.differs(now, self._place, epoch, way_back(epoch))
            return
        self._check_not_older(epoch)
        if output.is_known_empty(rows):
            return
        with self._connected() as connection:
            merge = self._staged(connection, epoch)
            try:
                copy = Copy(self._database, merge, f"{self._place}, epoch {epoch}", self.keeps_refused)
                copied = output.rows(
                    self.id, self._node, self._timestamp, RowTransform(copy, COPIED), self._upsert
                ).collect()
                attempts = [row.attempt for row in copied]  # those that Spark took
                tally = rows()
                if tally.count:
                    self._merge(connection, merge, attempts, epoch, tally)
                    self._written = {e: t for e, t in self._written.items() if e > epoch - _KEPT} | {epoch: tally}
                    self._newest = epoch
            finally:
                self._drop(connection, merge.staging)

    def refused(self, epoch: int) -> Sequence[RefusedRow]:
        """What was kept with the epoch."""
        assert self._table is not None
        if epoch not in self._written:  # it has no rows
            return ()
        with self._connected() as connection:
            return self._refused(self._table).of(connection, epoch)

    def back_to(self, epoch: int) -> None:
        """Forgets that later epochs were written, so that they are written again. The rows themselves stay."""
        with self._connected() as connection:
            table = found_table(connection, self._options.text("table"), self._place)
            if table is not None:
                self._epochs(table).forget_after(connection, epoch)
                self._refused(table).forget_after(connection, epoch)

    def _looked_at(self, connection: psycopg.Connection[Any]) -> Table | None:
        """The table; None if it is to be created. DatabaseError, DatabaseTableError if it is refused."""
        place, text = self._place, self._options.text("table")
        check_takes_writes(connection, self._shown, place)
        check_holds_text(connection, self._columns, self._shown, place)
        table = found_table(connection, text, place)
        if table is None:
            if not self._create:
                raise DatabaseTableError(
                    f"{place}: there is no table {text!r} in {self._shown}",
                    "create it, correct the name, or add create = true",
                )
            check_may_create_table(connection, text, place)
            return None
        check_table(connection, table, self._columns, self._key, place)
        check_privileges(connection, table, _TO_UPSERT if self._upsert else _TO_APPEND, place)
        if self._upsert:
            check_sees_every_row(connection, table, place)
        check_may_create(connection, table.schema, place)
        epochs = found_table(connection, self._epochs(table).sql, place)
        if epochs is not None:
            check_privileges(connection, epochs, _OF_EPOCHS, place)
        return table

    @property
    def _key(self) -> list[str]:
        return [c.name for c in self._node.schema.key] if self._upsert else []

    # -------------------------------------------------------------------------------------------------------- an epoch

    def _staged(self, connection: psycopg.Connection[Any], epoch: int) -> Merge:
        """The merge of an empty staging table."""
        assert self._table is not None
        name = f"{self._stage_prefix}{epoch}_{uuid.uuid4().hex[:8]}"
        staging = f"{identifier(self._table.schema)}.{identifier(name)}"
        keys = len(self._node.schema.key)
        merge = Merge(self._table, staging, tuple(self._columns.items()), keys, self._upsert)
        connection.execute(f"create unlogged table {staging} ({merge.staging_columns})")
        return merge

    def _merge(
        self, connection: psycopg.Connection[Any], merge: Merge, attempts: list[int], epoch: int, tally: Tally
    ) -> None:
        import psycopg

        try:
            with connection.transaction():
                self._record(connection, merge.table, epoch, tally)
                self._check_complete(connection, merge, attempts, tally)
                if self.keeps_refused:
                    kept = merged(connection, merge, attempts)
                    self._refused(merge.table).keep(connection, epoch, kept, epoch - _KEPT)
                else:
                    merge.apply(connection, merge.staged(attempts))
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            place = f"{self._place}, epoch {epoch}"
            raise merge.refused(connection, attempts, place) or together(merge, error, place) from None

    def _record(self, connection: psycopg.Connection[Any], table: Table, epoch: int, tally: Tally) -> None:
        import psycopg

        try:
            self._epochs(table).record(connection, epoch, tally, epoch - _KEPT)
        except psycopg.errors.UniqueViolation:
            raise SinkError(
                f"{self._place}: another run of this checkpoint has written epoch {epoch} in the meantime",
                "end one of the two runs",
            ) from None

    def _check_complete(
        self, connection: psycopg.Connection[Any], merge: Merge, attempts: list[int], tally: Tally
    ) -> None:
        """A server that crashes empties staging tables, which are not logged."""
        [staged] = connection.execute(f"select count(*) from {merge.staged(attempts)}").fetchone() or [0]
        if staged != tally.count:
            raise DatabaseError(
                f"{self._place}: {staged} of {tally.count} staged rows are there: the server was restarted",
                "nothing of the epoch was written: run the same command again",
            )

    def _drop(self, connection: psycopg.Connection[Any], staging: str) -> None:
        """Drops a staging table; one that a lost task still writes to, or of a lost server, goes at the next start."""
        import psycopg

        try:
            with connection.transaction():
                connection.execute("set local lock_timeout = '5s'")
                connection.execute(f"drop table if exists {staging}")
        except psycopg.Error as error:
            _log.warning("%s: %s stays until the next start: %s", self._place, staging, " ".join(str(error).split()))

    # -------------------------------------------------------------------------------------------------- its own tables

    @property
    def _stage_prefix(self) -> str:
        return f"vsc_stage_{self._checkpoint[:16]}_{self.id.removeprefix('sink-')}_"

    def _sweep(self, connection: psycopg.Connection[Any], table: Table) -> None:
        """Drops what earlier runs of this checkpoint have staged."""
        prefix = self._stage_prefix
        left = connection.execute(
            "select relname from pg_class where relnamespace = %s::regnamespace and relkind = 'r' "
            "and starts_with(relname, %s)",
            [identifier(table.schema), prefix],
        ).fetchall()
        for (name,) in left:
            self._drop(connection, f"{identifier(table.schema)}.{identifier(name)}")

    def _epochs(self, table: Table) -> WrittenEpochs:
        return WrittenEpochs(table, self._checkpoint, self.id)

    def _refused(self, table: Table) -> RefusedRows:
        return RefusedRows(table, self._checkpoint, self.id)

    def _connected(self) -> Any:
        return self._database.connected(self._place)
