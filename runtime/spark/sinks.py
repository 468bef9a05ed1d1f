"""The sinks of a query: what foreachBatch does with an epoch's rows. Each epoch shows its effect once.

`FilesSink` writes aside, then renames; `ConsoleSink` prints; `NoopSink` makes the rows and throws them away.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Node, Plan, Sink
from vsc.runtime.errors import SinkError
from vsc.runtime.records import Batch, processing_order
from vsc.runtime.spark.hadoop import Files, usable
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.sources import FORMATS
from vsc.runtime.spark.table_text import table_text
from vsc.runtime.spark.unpack import sink_blobs, sink_rows

__all__ = ["EpochSink", "FilesSink", "check_sinks", "make_sinks"]

_LATER = {"kafka", "delta", "jdbc"}


class EpochSink(Protocol):
    """Where one sink statement's rows go."""

    id: str

    def prepare(self) -> None:
        """Looks at the target and mends what a crash left, before the query starts. SinkError if it is refused."""
        ...

    def write(self, batch: DataFrame, epoch: int, rows: int) -> None:
        """Writes the sink's `rows` rows of an epoch's output; the same epoch again changes nothing."""
        ...


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
            raise SinkError(f"{options.place} writes to {kind!r}, which is no sink that vsc knows")
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


class NoopSink:
    """Makes every row in Spark and throws it away: to measure."""

    def __init__(self, sink: Sink, node: Node) -> None:
        self.id = sink.id
        self._node = node

    def prepare(self) -> None:
        """Nothing."""

    def write(self, batch: DataFrame, epoch: int, rows: int) -> None:
        """Makes the rows."""
        sink_rows(batch, self.id, self._node).write.format("noop").mode("append").save()


class ConsoleSink:
    """Prints an epoch's rows on stdout as a table, in the order in which they came about."""

    def __init__(self, sink: Sink, node: Node) -> None:
        self.id = sink.id
        self._node = node
        self._timestamp = Options.of_sink(sink).flag("with_timestamp")

    def prepare(self) -> None:
        """Nothing."""

    def write(self, batch: DataFrame, epoch: int, rows: int) -> None:
        """Prints the rows, if there are any."""
        found = [Batch.from_ipc(bytes(r.payload), self._node.schema) for r in sink_blobs(batch, self.id).collect()]
        if not found:
            return
        records = Batch.concat(found)
        records = records.take(processing_order([records]))
        print(table_text(self._node, records, self._timestamp), flush=True)


class FilesSink:
    """Files of one epoch appear once, whole, under names that carry the checkpoint's id and the epoch.

    An epoch is written into ``_vsc-ID/EPOCH/`` below the target, where readers do not look. When all of it is there a
    list of its files is written beside it (`_commit`): from then on the epoch is only ever rolled forward, by renaming
    what is still there. Before, it is thrown away and written again.
    """

    def __init__(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> None:
        self.id = sink.id
        self._node = node
        self._options = Options.of_sink(sink)
        self._format = self._options.text("format")
        with self._usable():
            self._files = Files(spark, self._options.text("path"))
        # Two sinks of one query may share a folder: the statement's number keeps their names apart.
        self._mark = f"{checkpoint[:16]}-{sink.id.removeprefix('sink-')}"
        self._checkpoint = checkpoint[:16]
        self._aside = f"_vsc-{self._mark}"
        self._timestamp = self._options.flag("with_timestamp")

    def prepare(self) -> None:
        """Makes the folder; refuses foreign files in it, unless ``append``; removes what a crash left unfinished."""
        with self._usable():
            self._prepare()

    def _prepare(self) -> None:
        self._files.make()
        if not self._options.flag("append"):
            self._refuse_foreign()
        for name in self._files.names(self._aside):
            if name.isdigit() and not self._files.exists(self._commit(int(name))):
                self._files.delete(f"{self._aside}/{name}")

    def write(self, batch: DataFrame, epoch: int, rows: int) -> None:
        """Writes the epoch, or rolls it forward if it was written before."""
        if not self._files.exists(self._commit(epoch)):
            if rows == 0:
                return
            self._stage(batch, epoch)
        self._publish(epoch)
        self._forget(epoch - 2)

    def _usable(self) -> AbstractContextManager[None]:
        what = f"{self._options.place}: {self._options.text('path')!r}"
        return usable(SinkError, what, "correct the path, or what keeps it from being written")

    def _stage(self, batch: DataFrame, epoch: int) -> None:
        folder = f"{self._aside}/{epoch}"
        self._files.delete(folder)
        frame = sink_rows(batch, self.id, self._node, self._timestamp)
        writer = frame.write.format(self._format).mode("overwrite")
        if self._format == "csv":
            writer = writer.option("header", "true")
        for name, value in self._options.spark.items():
            writer = writer.option(name, value)
        writer.save(self._files.path(folder))
        parts = [n for n in self._files.names(folder) if not n.startswith(("_", "."))]
        named = [f"{n} part-{self._mark}-{epoch:010d}-{i:05d}{_suffix(n)}" for i, n in enumerate(parts)]
        self._files.write(self._commit(epoch), "\n".join(named) + "\n")

    def _publish(self, epoch: int) -> None:
        for line in self._files.read(self._commit(epoch)).splitlines():
            old, new = line.split(" ")
            staged = f"{self._aside}/{epoch}/{old}"
            if self._files.exists(staged):
                self._files.rename(staged, new)
            elif not self._files.exists(new):
                raise SinkError(
                    f"{self._options.place}: {self._files.path(new)} is gone while its epoch was being written"
                )
        self._files.delete(f"{self._aside}/{epoch}")

    def _forget(self, epoch: int) -> None:
        """The list of an epoch that Spark will not repeat any more."""
        if epoch >= 0:
            self._files.delete(self._commit(epoch))

    def _commit(self, epoch: int) -> str:
        return f"{self._aside}/{epoch}._commit"

    def _refuse_foreign(self) -> None:
        for name in self._files.files():
            if any(part.startswith(("_", ".")) for part in name.split("/")):
                continue
            if not name.startswith(f"part-{self._checkpoint}-"):
                raise SinkError(
                    f"{self._options.place}: {self._files.root} holds {name}, which this checkpoint did not write",
                    "give another path, remove the files, or add append = true",
                )


def _suffix(name: str) -> str:
    """What comes behind the first dot of Spark's file name: ``.snappy.parquet``."""
    _, dot, rest = name.partition(".")
    return dot + rest
