"""What a connector is: the rows of a source for Spark, and a sink for an epoch's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Node, Sink
from vsc.runtime.errors import SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.connectors.file_input import FILE_SOURCE, FileInput
from vsc.runtime.spark.connectors.position import BEGINNING, SeenFiles, SourceNotes, refused_position
from vsc.runtime.spark.connectors.refusals import RefusedRow
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource
from vsc.runtime.spark.exchange.output import Output, written_columns
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.formats.source_columns import RowReader

__all__ = ["ONLY_NEW", "Connector", "EpochSink", "TableSink", "way_back"]

ONLY_NEW = "only new results are written (for all of them, run with a new checkpoint)"
"""What becomes of a target that has lost what was written."""


class EpochSink:
    """Where one sink statement's rows go. What is said here holds for a target of which nothing can be known later."""

    computes: ClassVar[bool] = True
    """Whether `write` may be what computes the output: not if it has to know the rows before it lets any be seen."""

    def __init__(self, sink: Sink, node: Node) -> None:
        self.id = sink.id
        self._node = node
        self._options = Options.of_sink(sink)
        self._place = self._options.place
        self.keeps_refused = False
        """Whether another sink takes the rows that the target refuses; else such a row ends the query."""
        self.wrote: int | None = None
        """The newest epoch of which the checkpoint knows that it had rows for the sink. None: what is missing is meant
        to be, as the run has been told to go back, and where."""
        self.ancestors: tuple[str, ...] = ()
        """The ids of the checkpoints that this one goes on from: what they wrote is not foreign."""

    def prepare(self) -> None:
        """Looks at the target and repairs what a crash left, before the query starts. SinkError if it is refused."""

    def settle(self, files: Files) -> None:
        """Settles what it writes with, once the checkpoint, which has `files`, is claimed and written."""

    def lost(self) -> str | None:
        """What to say of a target that holds nothing of what earlier epochs, if any, wrote. After `prepare`."""
        return None

    def is_new(self, epoch: int) -> bool:
        """Whether `write` computes the epoch's output: not if it was written before."""
        return True

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the sink's rows of an epoch's output; the same epoch again changes nothing.

        `rows` has their number and their digest; of a new epoch only once its output has been computed. It
        raises if the epoch is refused: nothing may be seen of it before.
        """
        raise NotImplementedError

    def failure(self, error: Exception) -> VscRuntimeError | None:
        """What an exception of Spark's in `write` amounts to, if nothing more is known of it; None to leave it."""
        return None

    def refused(self, epoch: int) -> Sequence[RefusedRow]:
        """The rows of a written epoch that the target refused: the same each time the epoch runs."""
        return ()

    def check_back_to(self, epoch: int) -> None:
        """Refuses to go back to that epoch if `back_to` could not, before anything is changed. SinkError."""

    def back_to(self, epoch: int) -> None:
        """Removes what epochs after that one wrote, as far as the sink can: they run again. Before `prepare`."""


class TableSink(EpochSink):
    """A sink into a table of another system, called `shown`, which tells what epochs are in it."""

    def __init__(self, sink: Sink, node: Node, shown: str) -> None:
        super().__init__(sink, node)
        self._shown = shown
        self._upsert = node.kind == "table" or self._options.is_upsert()
        self._timestamp = node.kind == "stream" and self._options.flag("with_timestamp")
        self._columns = written_columns(node, self._timestamp)
        self._create = self._options.flag("create")
        self._newest: int | None = None
        """The newest epoch of which the system has rows, since `prepare`."""
        self._made = False
        """Whether `prepare` has created the table."""

    def lost(self) -> str | None:
        """That the system has none of the checkpoint's epochs."""
        if self._newest is not None and not self._made:
            return None
        return f"{self._place}: {self._shown} holds nothing of what this checkpoint wrote; {ONLY_NEW}"

    def _check_may_make(self, table: str) -> None:
        """SinkError for a table that is not there any more: created again, it would lack what was written to it."""
        if self.wrote is not None:
            raise SinkError(
                f"{self._place}: {table} is gone; the checkpoint has written to it up to epoch {self.wrote}",
                f"restore it, or run with a new checkpoint, which writes everything; {self._without(self.wrote)}",
            )

    def _check_holds(self) -> None:
        """SinkError for a system without epochs that the checkpoint has written: it was restored from a backup."""
        if self.wrote is None or (self._newest is not None and self._newest >= self.wrote):
            return
        if self._newest is None:
            has, help = "nothing of this checkpoint", "run with a new checkpoint, which writes everything"
        else:
            has = f"epoch {self._newest} of this checkpoint as the newest"
            help = f"run with --back-to {self._newest}, which writes the later epochs again"
        raise SinkError(
            f"{self._place}: {self._shown} has {has}; the checkpoint has written up to epoch {self.wrote}",
            f"{help}; {self._without(self.wrote)}",
        )

    @staticmethod
    def _without(epoch: int) -> str:
        return f"--back-to {epoch} goes on without what is missing"

    def _check_not_older(self, epoch: int) -> None:
        """SinkError for an epoch before one that the system has."""
        if self._newest is not None and self._newest > epoch:
            raise SinkError(
                f"{self._place}: {self._shown} has epoch {self._newest} of this checkpoint, this is epoch {epoch}",
                f"the checkpoint is older than what it wrote: {way_back(epoch)}",
            )


def way_back(epoch: int) -> str:
    """How an epoch comes again, for a message."""
    return f"run with --back-to {epoch - 1}" if epoch else "run with a new checkpoint"


class Connector:
    """One kind of connector. `kind` is its name in the language; what it does not override it cannot do."""

    kind: str
    digests: ClassVar[bool] = False
    """Whether its sink compares digests of the rows of an epoch that comes again."""
    spark_class: ClassVar[str | None] = None
    """The name of Spark's class for a source that is read as it grows; None if it does not matter."""
    goes_on: ClassVar[bool] = False
    """Whether an upgrade can write where its source goes on."""
    restarts: ClassVar[str | None] = None
    """What its source begins with after an upgrade, if not where it has stopped."""
    positions: ClassVar[tuple[str, ...]] = (BEGINNING,)
    """Where a user may have its source begin."""
    first: ClassVar[str | None] = BEGINNING
    """The position at which everything comes again; None if nothing does."""
    needs_input: ClassVar[bool] = False
    """Whether a query looks at what its source reads in each epoch, also if no source waits for another one."""

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses, without Spark, what can be refused of a source; for `default_local` see `check`. SourceError."""
        raise SourceError(f"{options.place} reads from {self.kind}, which can only be written")

    def reach_source(self, node: Node, options: Options) -> None:
        """Refuses, without Spark, what is seen of a source by asking for it, before there is a checkpoint. For sources
        that are not needed once there is one: the others are asked by `check_source`. VscRuntimeError."""

    def look(self, spark: SparkSession, node: Node, options: Options) -> None:
        """Refuses what is seen of a source by asking for it, before there is a checkpoint. VscRuntimeError."""

    def look_at_columns(self, spark: SparkSession, node: Node, options: Options) -> bool:
        """Refuses a source without one of the declared columns, before its first rows are read. Whether it was looked
        at: not if there is nothing there yet. MissingColumnError."""
        return True

    def take(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str], begun: bool) -> None:
        """Takes what is read of the source only once, into `options.kept`. `begun`: its rows may have been read."""

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The rows of a source, streaming: the declared columns, in order, then of `source_columns` those that apply.

        `read` names the declared columns that anything reads: the others may be null. With `CORRUPT` among them, a row
        that cannot be read should come with its text in that column.
        """
        raise NotImplementedError

    def reader(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> RowReader | None:
        """What makes the rows of a source, in the workers, of what `rows` gives; None: those are the rows."""
        return None

    def is_snapshot(self, options: Options) -> bool:
        """Whether `take` has taken what is read of the source into the checkpoint."""
        return False

    def source_class(self, options: Options) -> str | None:
        """The name of Spark's class for the source."""
        return FILE_SOURCE if self.is_snapshot(options) else self.spark_class

    def input(self, source: SparkSource, options: Options) -> Input | None:
        """The source in the running query, which tells its backlog; None if what it will bring is unknown."""
        return FileInput(source) if self.source_class(options) == FILE_SOURCE else self._input(source)

    def _input(self, source: SparkSource) -> Input | None:
        """As `input`, of a source that Spark reads as `spark_class`."""
        return None

    def position_help(self, options: Options) -> str:
        """What the position of a source may be."""
        return f"{self.kind} can only be read from its {BEGINNING!r}"

    def settled_position(self, node: Node, value: str) -> str:
        """A position that a user gives, as `begin` takes it. PositionError if a source cannot have it."""
        if value not in self.positions:
            problem = f"{self.kind} has no position {value!r}"
            raise refused_position(node, problem, self.position_help(Options.of_source(node)))
        return value

    def begin(self, notes: SourceNotes, position: str, there: SeenFiles) -> None:
        """Notes where a source of a new checkpoint begins; `there` are the files that it would read."""

    def go_on(self, notes: SourceNotes, options: Options, offset: str, read: SeenFiles) -> None:
        """Notes that a source of a new checkpoint goes on at the `offset` that Spark has written in the old one; `read`
        are the files that have been read, or taken."""
        if self.is_snapshot(options):
            notes.write_known(read)

    def catch_up(self, spark: SparkSession, notes: SourceNotes, options: Options, offset: Callable[[], str]) -> None:
        """Prepares a source to go on behind the last epoch that has ended, which has read up to `offset`."""

    def nothing_there(self, spark: SparkSession, options: Options) -> str | None:
        """Why a source that brought no row had none to bring, if that may be a mistake."""
        return None

    def check_sink(self, options: Options) -> None:
        """Refuses, without Spark, what can be refused of a sink. SinkError."""
        raise SinkError(f"{options.place} writes to {self.kind}, which can only be read")

    def reach_sink(self, sink: Sink, node: Node, fresh: bool, default_local: bool) -> None:
        """Refuses, without Spark, what is seen of a target by asking for it; changes nothing. VscRuntimeError.

        `fresh`: the checkpoint is new, and has written nothing.
        """

    def folder(self, options: Options) -> str | None:
        """The folder that a sink writes files to."""
        return None

    def input_path(self, options: Options) -> str | None:
        """The path, or the pattern, of the files that a source reads."""
        return None

    def catalogued(self, spark: SparkSession, options: Options) -> str | None:
        """The folder of what a catalog knows by a name; None for all else."""
        return None

    def servers(self, options: Options) -> tuple[Servers, ...]:
        """The systems that executors connect to, as far as the driver knows."""
        return ()

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink of a resolved statement on `node`; `checkpoint` is the checkpoint's id."""
        raise NotImplementedError
