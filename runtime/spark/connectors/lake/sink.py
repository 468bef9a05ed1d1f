"""A sink into a table of a lake format: an epoch is one commit, which says whose it is, so that it is made only once.

A commit carries the name of its writer (the checkpoint and the sink) and a number: that of the epoch and, once a run
has gone back, an offset, as numbers only grow. The offset is a property of the table.

Guarantees: readers see all of an epoch or nothing; an epoch that comes again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from vsc.plan.types import TIMESTAMP
from vsc.runtime.errors import LakeTableError, SinkError, VscRuntimeError
from vsc.runtime.spark.connectors.lake.history import History, kept
from vsc.runtime.spark.connectors.lake.merge import AT, CHANGE, Target, appended, place, upserted
from vsc.runtime.spark.connectors.lake.table import LakeTable, lake_error
from vsc.runtime.spark.connectors.sink import OpenSink, TableSink
from vsc.runtime.spark.connectors.table_types import columns_by_name, misfits
from vsc.runtime.spark.exchange.output import Output
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.session.session import configured

__all__ = ["LakeSink"]

_ATTEMPTS = 5
_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_(?!TRANSACTION)|Concurrent(?:Append|DeleteRead|DeleteDelete|Write|MetadataChanged)|"
    r"CommitFailedException|Found conflicting|MetadataChanged"
)
"""What is said of a commit that another one came before."""
_TWICE = re.compile(r"DELTA_CONCURRENT_TRANSACTION|ConcurrentTransactionException")


class LakeSink(TableSink):
    """See the module."""

    computes = False

    def __init__(self, spark: SparkSession, opened: OpenSink, checkpoint: str, table: LakeTable) -> None:
        super().__init__(opened, table.shown)
        self._spark, self._table = spark, table
        self._writer = f"vsc-{checkpoint}-{self.id}"
        self._connector = opened.options.connector
        self._history: History | None = None
        self._offset = 0

    def prepare(self) -> None:
        """Looks at the table, or creates it, and at what of this query it holds."""
        columns = self._table.open(self._spark)
        if columns is None and self._create:
            self._check_may_make(self._shown)
            self._made = True
            made = {**self._columns, **dict.fromkeys(self._times, TIMESTAMP)}
            self._table.create(self._spark, made, self._options.spark)
            columns = self._table.open(self._spark)
        if columns is None:
            raise self._table.missing("create it, correct the name, or add create = true")
        if self._connector.keeps_history:
            self._history = History.of(columns, self._table, self._connector)
        for problem in misfits(self._columns, columns, written=True, beside=self._times):
            raise LakeTableError(
                f"{self._place}: {self._shown} does not fit: {problem}",
                "change the table, or the columns of the topology",
            )
        self._names = {name: field.name for name, field in columns_by_name(columns).items()}
        self._offset = int(self._table.properties(self._spark).get(self._offset_name, 0))
        self._newest = self._last(self._spark)
        if self._newest is not None or not self._table.forgets(self._spark):
            self._check_holds()

    def is_new(self, epoch: int) -> bool:
        """Whether the table does not have the epoch."""
        return self._newest is None or epoch > self._newest

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch in one commit, unless the table has it."""
        self._check_not_older(epoch)
        if not self.is_new(epoch) or not rows().count:
            return
        # By their places: a table's own names may be anything.
        own = len(self._columns) - self._timestamp
        time = [place(own)] if self._timestamp else [AT] if self._upsert else []
        names = [*map(place, range(own)), *([CHANGE] if self._upsert else []), *time]
        frame = output.rows(self.id, self._node, self._timestamp, changes=self._upsert).toDF(*names)
        for attempt in range(_ATTEMPTS):
            try:
                self._commit(frame, epoch)
                break
            except (PySparkException, Py4JJavaError) as error:
                self._again(error, attempt)
        self._newest = epoch

    def failure(self, error: Exception) -> VscRuntimeError:
        """That the table cannot be used."""
        return lake_error(self._table, error)

    def back_to(self, epoch: int) -> None:
        """Has later epochs count as not written, so that they are written again. The rows themselves stay."""
        if self._table.open(self._spark) is None:
            return
        self._offset = int(self._table.properties(self._spark).get(self._offset_name, 0))
        last = self._last(self._spark)
        if last is not None and last > epoch:
            self._table.set_property(self._spark, self._offset_name, str(self._offset + last - epoch))

    # ---------------------------------------------------------------------------------------------------------- commits

    def _commit(self, frame: DataFrame, epoch: int) -> None:
        session = frame.sparkSession
        self._table.use(session)
        last = self._last(session)
        if last is not None and last >= epoch:
            return  # an attempt that failed has written it all the same
        with configured(session, self._table.numbered(self._writer, self._offset + epoch)):
            keys = len(self._node.schema.key)
            target = Target(self._table.sql, tuple(self._names[name.lower()] for name in self._columns), keys)
            if self._history is not None:
                kept(frame, target, self._history)
            else:
                (upserted if self._upsert else appended)(frame, target)

    def _again(self, error: Exception, attempt: int) -> None:
        """Lets a commit that another one came before be tried again; raises any other error."""
        if _TWICE.search(str(error)):
            raise SinkError(
                f"{self._place}: another run of this checkpoint has written to {self._shown} in the meantime",
                "end one of the two runs",
            ) from error
        if attempt + 1 < _ATTEMPTS and _CONFLICT.search(str(error)):
            return
        raise error

    def _last(self, spark: SparkSession) -> int | None:
        """The newest epoch of which the table has rows."""
        found = self._table.written(spark, self._writer)
        return None if found is None else found - self._offset

    @property
    def _offset_name(self) -> str:
        return f"vsc.offset.{self._writer}"

    # ---------------------------------------------------------------------------------------------------------- columns

    @property
    def _times(self) -> tuple[str, ...]:
        """The columns of times that a history has beside these."""
        connector = self._connector
        return (connector.valid_from, connector.valid_to) if connector.keeps_history else ()
