"""The sinks of a query: what foreachBatch does with an epoch's rows. Each epoch shows its effect once.

`FilesSink` writes aside, then renames (see `vsc.runtime.spark.epoch_files`);
`ConsoleSink` prints; `NoopSink` makes the rows and throws them away.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Plan, Sink
from vsc.runtime.errors import SinkError
from vsc.runtime.records import Batch, processing_order
from vsc.runtime.spark.epoch_files import EpochFiles, Tally
from vsc.runtime.spark.hadoop import Files, usable
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.output import Output
from vsc.runtime.spark.sources import FORMATS
from vsc.runtime.spark.table_text import table_text

__all__ = ["EpochSink", "FilesSink", "check_sinks", "make_sinks"]

_LATER = {"kafka", "delta", "jdbc"}
_FIRST = "part-00000-"
"""What the files of Spark's first task begin with."""


class EpochSink:
    """Where one sink statement's rows go. What is said here holds for a target of which nothing can be known later."""

    def __init__(self, sink: Sink, node: Node) -> None:
        self.id = sink.id
        self._node = node

    def prepare(self) -> None:
        """Looks at the target and repairs what a crash left, before the query starts. SinkError if it is refused."""

    def lost(self) -> str | None:
        """What to say of a target that holds nothing of what earlier epochs, if any, wrote. After `prepare`."""
        return None

    def is_new(self, epoch: int) -> bool:
        """Whether `write` computes the epoch's output: not if it was written before."""
        return True

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the sink's rows of an epoch's output; the same epoch again changes nothing.

        `rows` tells how many they are, and their digest; of a new epoch only once its output has been computed. It
        raises if the epoch is refused: nothing may be seen of it before.
        """
        raise NotImplementedError

    def back_to(self, epoch: int) -> None:
        """Removes what epochs after that one wrote, as far as the sink can: they come again. Before `prepare`."""


def check_sinks(plan: Plan) -> None:
    """Refuses what can be refused without Spark."""
    for sink in plan.sinks:
        options = Options.of_sink(sink)
        kind = sink.connector.kind
        if kind == "memory":
            raise SinkError(
                f"{options.place} writes to memory (), which only the test driver can read",
                "give it another connector, console for example",
            )
        if kind in _LATER:
            raise SinkError(
                f"{options.place} writes to {kind}, which this version of vsc cannot run yet",
                "write to files for now",
            )
        if kind not in ("files", "console", "noop"):
            raise SinkError(f"{options.place} writes to {kind!r}, an unknown connector")
        if kind == "files" and options.text("format") not in FORMATS:
            raise SinkError(
                f"{options.place} has format {options.text('format')!r}, which this version of vsc cannot write",
                "the formats are " + ", ".join(FORMATS),
            )


def make_sinks(spark: SparkSession, plan: Plan, checkpoint: str) -> list[EpochSink]:
    """The sinks of a resolved plan; `checkpoint` is the checkpoint's id."""
    found: list[EpochSink] = []
    for sink in plan.sinks:
        node = plan.node(sink.node)
        if sink.connector.kind == "files":
            found.append(FilesSink(spark, sink, node, checkpoint))
        elif sink.connector.kind == "console":
            found.append(ConsoleSink(sink, node))
        else:
            found.append(NoopSink(sink, node))
    return found


class NoopSink(EpochSink):
    """Makes every row in Spark and throws it away: to measure."""

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Makes the rows."""
        output.rows(self.id, self._node).write.format("noop").mode("append").save()


class ConsoleSink(EpochSink):
    """Prints an epoch's rows on stdout as a table, in the order in which they came about."""

    def __init__(self, sink: Sink, node: Node) -> None:
        super().__init__(sink, node)
        self._timestamp = Options.of_sink(sink).flag("with_timestamp")

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Prints the rows, if there are any."""
        found = output.records(self.id, self._node)
        if not rows().count:
            return
        records = Batch.concat(found)
        records = records.take(processing_order([records]))
        print(table_text(self._node, records, self._timestamp), flush=True)


class FilesSink(EpochSink):
    """Files of one epoch appear once, whole, under names that carry the checkpoint's id and the epoch: `EpochFiles`."""

    def __init__(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> None:
        super().__init__(sink, node)
        self._spark = spark
        self._options = Options.of_sink(sink)
        self._format = self._options.text("format")
        self._timestamp = self._options.flag("with_timestamp")
        self._append = self._options.flag("append")
        with self._usable():
            folder = Files(spark, self._options.text("path"))
        # Two sinks of one query may share a folder: the statement's number keeps their names apart.
        self._epochs = EpochFiles(folder, checkpoint[:16], sink.id.removeprefix("sink-"), self._options.place)

    def prepare(self) -> None:
        """Makes the folder; refuses foreign files in it, unless ``append``; removes what a crash left unfinished."""
        with self._usable():
            self._epochs.prepare(self._append)

    def lost(self) -> str | None:
        """That there is none of the sink's files."""
        with self._usable():
            bare = self._epochs.is_bare()
        if not bare:
            return None
        return (
            f"{self._options.place}: the files that this checkpoint wrote to {self._options.text('path')!r} are gone; "
            "only new results are written (for all of them, run with a new checkpoint)"
        )

    def is_new(self, epoch: int) -> bool:
        """Whether there is no list of the epoch yet."""
        return self._epochs.is_new(epoch)

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch, or rolls it forward if it was written before."""
        self._epochs.write(epoch, rows, lambda path: self._save(output, path))

    def back_to(self, epoch: int) -> None:
        """Removes the files of later epochs, and their lists."""
        with self._usable():
            self._epochs.back_to(epoch)

    def _usable(self) -> AbstractContextManager[None]:
        what = f"{self._options.place}: {self._options.text('path')!r}"
        return usable(SinkError, what, "correct the path, or what keeps it from being written")

    def _save(self, output: Output, path: str) -> None:
        first = Observation(f"first task of {self.id}")
        in_first = F.count_if(F.spark_partition_id() == 0).alias("rows")
        writer = output.rows(self.id, self._node, self._timestamp).observe(first, in_first).write.format(self._format)
        if self._format == "csv":
            writer = writer.option("header", "true")
        for name, value in self._options.spark.items():
            writer = writer.option(name, value)
        writer.save(path)
        if not first.get["rows"]:  # Spark's first task writes a file even then
            folder = Files(self._spark, path)
            for name in folder.names():
                if name.startswith(_FIRST):
                    folder.delete(name)
