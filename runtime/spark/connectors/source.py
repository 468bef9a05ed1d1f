"""A source of a run: what is asked of it from its check to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.connectors import facts_of
from vsc.plan.nodes import Node, Plan
from vsc.plan.read_columns import read_columns
from vsc.plan.secrets import is_secret
from vsc.runtime.errors import SourceError, VscRuntimeError
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.dead_letters import Letters
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.end import End
from vsc.runtime.spark.connectors.file_input import FILE_SOURCE, FileInput
from vsc.runtime.spark.connectors.position import BEGINNING, SeenFiles, SourceNotes, refused_position
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.formats.source_columns import CORRUPT, RowReader

__all__ = ["OpenSource"]


class OpenSource(End):
    """The source of a node of `plan`.

    What a connector does not override, its sources cannot do; this one can only be refused.
    """

    refusal = SourceError
    spark_class: ClassVar[str | None] = None
    """The name of Spark's class for a source that is read as it grows; None if it does not matter."""
    goes_on: ClassVar[bool] = False
    """Whether an upgrade can write where it goes on."""
    restarts: ClassVar[str | None] = None
    """What it begins with after an upgrade, if not where it has stopped."""
    positions: ClassVar[tuple[str, ...]] = (BEGINNING,)
    """Where a user may have it begin."""
    first: ClassVar[str | None] = BEGINNING
    """The position at which everything comes again; None if nothing does."""
    learns: bool = False
    """Whether an epoch may have to be computed again, so that nothing of it may show in a sink before it is whole."""
    needs_input: ClassVar[bool] = False
    """Whether a query looks at what it reads in each epoch, also if no source waits for another one."""

    def __init__(self, plan: Plan, node: Node) -> None:
        super().__init__(Options.of_source(node), node)
        self._plan = plan
        self.number = plan.sources.index(node) + 1
        """Its number in Spark's logs: the first source there is the control source."""
        self.kept = ""
        """Its own folder in the checkpoint; empty before there is one."""
        self.looked_at = False
        """Whether its columns need no look any more: it has had one, or rows have been read before."""
        self.running: Input | None = None
        """What it is in the query that runs, once that has begun; None if what it will bring is unknown."""

    @property
    def name(self) -> str:
        """Its number, as text."""
        return str(self.number)

    @cached_property
    def read(self) -> frozenset[str]:
        """The declared columns that anything reads: the others may be null. With `CORRUPT` among them, a row that
        cannot be read should come with its text in that column."""
        letters = {CORRUPT} if Letters(self._plan).takers(Dropped, self.node.name) else set()
        return read_columns(self._plan, self.node.name) | letters

    def check(self, default_local: bool) -> None:
        """Refuses, without Spark, what can be refused. `default_local`: paths without a scheme are on this machine.
        SourceError."""
        self._check(default_local)
        form, kind = self.options.get("format"), self.options.connector.kind
        if (
            self.node.kind == "stream" and form in facts_of(kind).of_tables
        ):  # the compiler looks, unless a variable says so
            raise SourceError(f"{self.place}: {form!r} brings the changes of a table", "declare it as a table")

    def _check(self, default_local: bool) -> None:
        """As `check`, what is of the connector."""
        raise SourceError(f"{self.place} reads from {self.options.connector.kind}, which can only be written")

    def reach(self) -> None:
        """Refuses, without Spark, what is seen by asking for it, before there is a checkpoint. For sources that are not
        needed once there is one: the others are asked by `check`. VscRuntimeError."""

    def look(self, spark: SparkSession) -> None:
        """Refuses what is seen by asking for it, before there is a checkpoint. VscRuntimeError."""

    def look_at_columns(self, spark: SparkSession) -> bool:
        """Refuses a source without one of the declared columns, before its first rows are read. Whether it was looked
        at: not if there is nothing there yet. MissingColumnError."""
        return True

    def take(self, spark: SparkSession, begun: bool) -> None:
        """Takes what is read only once, into `kept`. `begun`: its rows may have been read."""

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows, streaming: the declared columns, in order, then of `source_columns` those that apply."""
        raise NotImplementedError

    def reader(self, spark: SparkSession) -> RowReader | None:
        """What makes the rows, in the workers, of what `rows` gives; None: those are the rows."""
        return None

    @property
    def is_snapshot(self) -> bool:
        """Whether `take` takes what is read of it into the checkpoint."""
        return False

    @property
    def source_class(self) -> str | None:
        """The name of Spark's class for the source."""
        return FILE_SOURCE if self.is_snapshot else self.spark_class

    def run_as(self, source: SparkSource) -> None:
        """Takes note of what it is in the query that runs."""
        self.running = FileInput(source) if self.source_class == FILE_SOURCE else self._input(source)

    def _input(self, source: SparkSource) -> Input | None:
        """The input of a source that Spark reads as `spark_class`."""
        return None

    def tell(self, spark: SparkSession, epoch: int) -> None:
        """Tells the tasks of the epoch, which this thread computes, what they need to read the source."""

    def learn(self, error: VscRuntimeError, epoch: int) -> bool:
        """Whether an epoch that has failed is computed again, as the source has learned what it lacked."""
        return False

    def check_read(self, report: EpochReport) -> None:
        """Refuses an epoch that has read other rows than the source had for it, before any of them shows in a sink.
        What the source may lose, it counts in the report. VscRuntimeError."""

    def done(self) -> None:
        """Takes note of an epoch that has been written."""

    def position_help(self) -> str:
        """What its position may be."""
        return f"{self.options.connector.kind} can only be read from its {BEGINNING!r}"

    def settled_position(self, value: str) -> str:
        """A position that a user gives, as `begin_at` takes it. PositionError if the source cannot have it."""
        if value not in self.positions:
            problem = f"{self.options.connector.kind} has no position {value!r}"
            raise refused_position(self.node, problem, self.position_help())
        return value

    def begin_at(self, notes: SourceNotes, position: str, there: SeenFiles) -> None:
        """Notes where the source begins in a new checkpoint; `there` are the files that it would read."""

    def go_on(self, notes: SourceNotes, offset: str, read: SeenFiles) -> None:
        """Notes that the source goes on, in a new checkpoint, at the `offset` that Spark has written in the old one;
        `read` are the files that have been read, or taken."""
        if self.is_snapshot:
            notes.write_known(read)

    def inherit(self, before: Node, old: Files, new: Files) -> None:
        """Writes into the `new` checkpoint what it has kept in the `old` one beside its position, where it was
        `before`."""

    def catch_up(self, spark: SparkSession, notes: SourceNotes, offset: Callable[[], str]) -> None:
        """Prepares to go on behind the last epoch that has ended, which has read up to `offset`."""

    def nothing_there(self, spark: SparkSession) -> str | None:
        """Why a source that brought no row had none to bring, if that may be a mistake."""
        return None

    def is_secret(self, name: str) -> bool:
        """Whether the value of Spark's option of that name may be a secret."""
        return is_secret(name)
