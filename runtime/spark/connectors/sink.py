"""A sink of a run: `OpenSink`, what is asked of it before its first epoch, and `EpochSink`, what writes its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan, Sink
from vsc.runtime.errors import SinkError, VscRuntimeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.end import End
from vsc.runtime.spark.connectors.refusals import RefusedRow
from vsc.runtime.spark.exchange.output import Output, written_columns
from vsc.runtime.spark.exchange.tally import Tally

__all__ = ["ONLY_NEW", "EpochSink", "OpenSink", "TableSink", "way_back"]

ONLY_NEW = "only new results are written (for all of them, run with a new checkpoint)"
"""What becomes of a target that has lost what was written."""


class EpochSink:
    """Where one sink statement's rows go. What is said here holds for a target of which nothing can be known later."""

    computes: ClassVar[bool] = True
    """Whether `write` may be what computes the output: not if it has to know the rows before it lets any be seen."""

    def __init__(self, opened: OpenSink) -> None:
        self.id = opened.sink.id
        self._node, self._options, self._place = opened.node, opened.options, opened.place
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

    def __init__(self, opened: OpenSink, shown: str) -> None:
        super().__init__(opened)
        node = opened.node
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


class OpenSink(End):
    """A sink statement of `plan`.

    What a connector does not override, its sinks cannot do; this one can only be refused.
    """

    refusal = SinkError

    def __init__(self, plan: Plan, sink: Sink) -> None:
        super().__init__(Options.of_sink(sink), plan.node(sink.node))
        self.sink = sink

    def check(self) -> None:
        """Refuses, without Spark, what can be refused. SinkError."""
        raise SinkError(f"{self.place} writes to {self.options.connector.kind}, which can only be read")

    def reach(self, fresh: bool, default_local: bool) -> None:
        """Refuses, without Spark, what is seen of a target by asking for it; changes nothing. VscRuntimeError.

        `fresh`: the checkpoint is new, and has written nothing. `default_local`: paths without a scheme are on this
        machine.
        """

    def inherit(self, before: str, old: Files, new: Files) -> None:
        """Writes into the `new` checkpoint what the sink of the id `before` has kept in the `old` one."""

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """What writes epochs; `checkpoint` is the checkpoint's id."""
        raise NotImplementedError

    def reach_schemas(self) -> None:
        """Refuses what a registry of schemas has for it, or does not take; a checkpoint that is there has it. Part of
        `reach`, for one that is `fresh`. VscRuntimeError."""
