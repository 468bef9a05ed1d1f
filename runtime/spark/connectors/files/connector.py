"""Files: a source that reads every file of a folder once, and a sink whose epochs appear whole.

The rows of a source are made in `file_rows` and `text_rows`; how a sink writes aside, then renames, is in
`vsc.runtime.spark.connectors.files.epoch_files`.
"""

from __future__ import annotations

import glob
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from vsc.plan.connectors import FACTS
from vsc.plan.connectors.files import size_bytes
from vsc.plan.types import BINARY, STRING, TIMESTAMP
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.operators.source.partition_folders import NO_VALUE
from vsc.runtime.spark.base.ddl import quoted
from vsc.runtime.spark.base.folders import NO_ROOM_HELP, data_files, unreadable, unwritable
from vsc.runtime.spark.base.hadoop import Files, file_errors_as, first_line
from vsc.runtime.spark.base.options import Options, refuse
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.connectors.file_input import FILE_SOURCE
from vsc.runtime.spark.connectors.file_rows import file_paths, file_rows, held_types, parquet_files
from vsc.runtime.spark.connectors.files.epoch_files import MARK, EpochFiles, foreign
from vsc.runtime.spark.connectors.files.folder_names import check_folder_names
from vsc.runtime.spark.connectors.files.missing_columns import look_at_columns
from vsc.runtime.spark.connectors.files.orc_days import check_orc_days, refusing_orc_days
from vsc.runtime.spark.connectors.files.rewriting import Rewriting
from vsc.runtime.spark.connectors.files.small_files import FEWEST, PublishedFile
from vsc.runtime.spark.connectors.files.text_rows import text_reader, text_rows
from vsc.runtime.spark.connectors.files.texts import with_texts
from vsc.runtime.spark.connectors.position import BEGINNING, NOW, SeenFiles, SourceNotes
from vsc.runtime.spark.connectors.sink import ONLY_NEW, EpochSink, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.exchange.output import Output, written_columns
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.formats.source_columns import CORRUPT, RowReader
from vsc.runtime.spark.formats.text_files import check_text
from vsc.runtime.spark.formats.text_formats import TEXT_FORMATS
from vsc.runtime.spark.formats.zones import check_zone
from vsc.runtime.spark.session.local_files import use_local_files
from vsc.runtime.spark.session.names import tell_encoding

__all__ = ["FilesSource", "FilesTarget"]

_FORMATS = FACTS["files"].options["format"].choices
_TEXT = ("csv", *TEXT_FORMATS)
_FORMATS_HELP = "the formats are " + ", ".join(_FORMATS)
_OF_TIMES = {"timestampformat", "timezone"}
"""Options of Spark's that say how times are written, in lower case."""
_PLACE = "_vsc_place"
"""The place of a row in its task."""
_TASK = "_vsc_task"
"""The number of a task."""
_KEPT = "spark.sql.streaming.minBatchesToRetain"
_MERGES = 20
"""So many merges an epoch, at most."""
_CSV = {
    "header": "true", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false",
}  # fmt: skip
"""What makes Spark write every text as it is, and as others read CSV: with a quote in it doubled, and its blanks."""
_UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Spark's mark of a whole folder is four requests to an object store, and nobody looks at it."""
_log = logging.getLogger(__name__)
_FIRST = "part-00000-"
"""What the files of Spark's first task begin with."""


class FilesSource(OpenSource):
    """Files on any file system that Spark reaches, which are read."""

    spark_class = FILE_SOURCE
    goes_on = True
    positions = (BEGINNING, NOW)

    def _check(self, default_local: bool) -> None:
        """Refuses unknown formats and options, and a local path at which there is nothing, or that may not be read."""
        options = self.options
        form = options.text("format")
        if form not in _FORMATS:
            raise SourceError(
                f"{options.place} has format {form!r}, which this version of vsc cannot read", _FORMATS_HELP
            )
        path = options.text("path")
        if is_local(path, default_local):
            _check_readable(options, path)
        if options.get("missing_columns") not in (None, "error", "null"):
            raise SourceError(
                f"{options.place}: missing_columns is 'error' or 'null', not {options.get('missing_columns')!r}"
            )
        check_zone(options)
        refuse(options, "source", SourceError)
        if form in _TEXT:
            check_text(self.node.source, options)

    def look_at_columns(self, spark: SparkSession) -> bool:
        """Looks into files, unless a column may be missing."""
        options = self.options
        return options.get("missing_columns") == "null" or look_at_columns(spark, self.node, options)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows of the present files, and of those that come."""
        node, options, read = self.node, self.options, self.read
        path = options.text("path")
        with file_errors_as(
            SourceError, f"{options.place}: {path!r}", "correct the path, or what keeps it from being read"
        ):
            files = Files(spark, path)
            found = files.matches()
        if files.is_local:
            use_local_files(spark)
            tell_encoding(spark)
        if not found:
            raise _missing(options, path)
        if options.text("format") in _TEXT:
            return text_rows(spark, node, options, CORRUPT in read)
        if parquet_files(spark, node.source, options, read) is not None:
            return file_paths(spark, node.source, options)
        return file_rows(spark, node.source, options, read)

    def reader(self, spark: SparkSession) -> RowReader | None:
        """What reads lines of text, and parquet files that are on this machine; all others Spark reads, and it is only
        seen whether the declared types hold theirs."""
        node, options, read = self.node, self.options, self.read
        if options.text("format") in _TEXT:
            return text_reader(node, options, CORRUPT in read)
        ours = parquet_files(spark, node.source, options, read)
        return held_types(spark, node.source, options, read) if ours is None else ours

    def nothing_there(self, spark: SparkSession) -> str | None:
        """A message if no file has data, otherwise None."""
        path = self.options.text("path")
        return None if Files(spark, path).has_data() else f"there are no files in {path!r}"

    def position_help(self) -> str:
        """The beginning, or what comes from now on."""
        return f"{NOW!r} takes all files that are there for read, {BEGINNING!r} reads them"

    def begin_at(self, notes: SourceNotes, position: str, there: SeenFiles) -> None:
        """From now on, all files that are there count as read."""
        if position == NOW:
            notes.write_known(there)

    def go_on(self, notes: SourceNotes, offset: str, read: SeenFiles) -> None:
        """The files that have been read are not read again."""
        notes.write_known(read)

    def path(self) -> str | None:
        """See `End`."""
        return self.options.text("path")


class FilesTarget(OpenSink):
    """Files on any file system that Spark reaches, which are written."""

    def check(self) -> None:
        """Refuses unknown formats."""
        options = self.options
        form = options.text("format")
        if form not in _FORMATS:
            raise SinkError(
                f"{options.place} has format {form!r}, which this version of vsc cannot write", _FORMATS_HELP
            )
        refuse(options, "sink", SinkError)

    def reach(self, fresh: bool, default_local: bool) -> None:
        """Refuses a local folder that cannot be written, or that holds files which are not the sink's."""
        options, path = self.options, self.options.text("path")
        if not is_local(path, default_local):
            return
        if (problem := unwritable(local_path(path))) is not None:
            raise SinkError(f"{options.place}: {path!r} cannot be written: {problem}", NO_ROOM_HELP)
        there = data_files(local_path(path)) if fresh and not options.flag("append") else iter(())
        if (name := next(there, None)) is not None:
            raise foreign(options.place, path, name)

    def path(self) -> str | None:
        """See `End`."""
        return self.options.text("path")

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        return _FilesSink(spark, self, checkpoint)


def _check_readable(options: Options, path: str) -> None:
    local = local_path(path)
    found = [local] if os.path.exists(local) else glob.glob(local)
    if not found:
        raise _missing(options, path)
    closed = next(filter(None, map(unreadable, found)), None)
    if closed is not None:
        raise SourceError(
            f"{options.place}: there is no permission to read {closed!r}", "give the user who runs this the right to"
        )


def _missing(options: Options, path: str) -> SourceError:
    return SourceError(
        f"{options.place}: there is no file or folder {path!r}",
        "make it, or correct the path; relative paths are relative to the working directory",
    )


class _FilesSink(EpochSink):
    """Files of one epoch appear once, whole, under names that carry the checkpoint's id and the epoch: `EpochFiles`."""

    def __init__(self, spark: SparkSession, opened: OpenSink, checkpoint: str) -> None:
        super().__init__(opened)
        sink = opened.sink
        self._spark = spark
        self._format = self._options.text("format")
        self._timestamp = self._options.flag("with_timestamp")
        self._append = self._options.flag("append")
        given = {name.lower() for name in self._options.spark}
        times = frozenset() if given & _OF_TIMES else frozenset({TIMESTAMP})
        self._as_texts = times | {BINARY} if self._format == "csv" else times
        """The types of which Spark gets a text, in JSON and CSV."""
        with self._explaining_errors():
            folder = Files(spark, self._options.text("path"))
        self._folders = sink.connector.partition_by
        # Two sinks of one query may share a folder: the statement's number keeps their names apart.
        number = sink.id.removeprefix("sink-")
        self._epochs = EpochFiles(folder, checkpoint[:MARK], number, self._place, bool(self._folders))
        target = self._options.get("target_size")
        self._target = size_bytes(str(target)) if target is not None else None
        self._rewriting = Rewriting(spark, self._options)
        self._look = True
        """Whether there may be files to merge since the last look; a run looks first at what there was before it."""

    def prepare(self) -> None:
        """Makes the folder; refuses foreign files in it, unless ``append``; removes what a crash left unfinished."""
        with self._explaining_errors():
            self._epochs.prepare(self._append, self.ancestors)

    def lost(self) -> str | None:
        """A message if none of the sink's files exist any more, otherwise None."""
        with self._explaining_errors():
            bare = self._epochs.is_bare()
        if not bare:
            return None
        return (
            f"{self._place}: the files that this checkpoint wrote to {self._options.text('path')!r} are gone; "
            f"{ONLY_NEW}"
        )

    def is_new(self, epoch: int) -> bool:
        """Whether the epoch has no list yet."""
        return self._epochs.is_new(epoch)

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch, or rolls it forward if it was written before."""
        make = None if output.is_known_empty(rows) else partial(self._save, output)
        self._epochs.write(epoch, rows, make)
        if self._target is not None and (self._look or epoch % FEWEST == 0):
            self._merge(epoch, self._target)

    def check_back_to(self, epoch: int) -> None:
        """Refuses an epoch whose rows are in one file with later ones."""
        with self._explaining_errors():
            self._epochs.check_back_to(epoch)

    def back_to(self, epoch: int) -> None:
        """Removes the files of later epochs, and their lists."""
        with self._explaining_errors():
            self._epochs.back_to(epoch)

    def _merge(self, epoch: int, target: int) -> None:
        """Merges small files of epochs that nothing goes back to any more, by `--back-to` or after a crash."""
        for run in self._mergeable(epoch, target):
            if self._target is not None and self._staged(run, epoch):
                self._epochs.finish_merge()

    def _mergeable(self, epoch: int, target: int) -> Sequence[Sequence[PublishedFile]]:
        kept = max(1, int(str(self._spark.conf.get(_KEPT))))
        try:
            found = self._epochs.mergeable(epoch - kept, target, self._format)
        except (Py4JJavaError, OSError) as error:
            self._give_up(error)
            return ()
        self._look = len(found) > _MERGES
        return found[:_MERGES]

    def _staged(self, run: Sequence[PublishedFile], epoch: int) -> bool:
        """Whether a merge has been written. If it fails, all files are as they were, and the run merges no others."""
        try:
            written = self._epochs.written(epoch) if self._rewriting.has_header else ""
            if written is None:
                self._look = True  # the next epoch may have rows, and so a file with the header of this run
                return False
            alike = self._rewriting.alike(run, self._epochs.root, written)
            if len(alike) > 1:
                self._epochs.stage_merge(alike, self._format, self._rewriting.rewrite)
            return len(alike) > 1
        except (Py4JJavaError, PySparkException, OSError, SinkError) as error:
            self._give_up(error)
            return False

    def _give_up(self, error: Exception) -> None:
        """Merges no more, and says why."""
        why = error.message if isinstance(error, SinkError) else first_line(error)
        _log.warning("%s: this run merges no more of its files: %s", self._place, why)
        self._target, self._look = None, False

    def _explaining_errors(self) -> AbstractContextManager[None]:
        what = f"{self._place}: {self._options.text('path')!r}"
        return file_errors_as(SinkError, what, "correct the path, or what keeps it from being written")

    def _in_folders(self, rows: DataFrame) -> DataFrame:
        """The rows with Spark's name for the folder of null also for that of an empty text: to make it null itself,
        Spark would sort again. A text that is this very name is an error."""
        columns = {}
        for column in (*self._node.schema.key, *self._node.schema.value):
            if column.name in self._folders and column.type == STRING:
                text = F.col(quoted(column.name))
                refused = F.when(text == NO_VALUE, F.raise_error(F.lit(NO_VALUE)).cast("string"))
                columns[column.name] = F.coalesce(refused, F.nullif(text, F.lit("")), F.lit(NO_VALUE))
        return rows.withColumns(columns) if columns else rows

    def _by_folder(self, rows: DataFrame) -> DataFrame:
        """The rows of each task sorted by folder, those of a folder in their order.

        Spark sorts by folder only what is not sorted so, and then it may change the order.
        """
        if not self._folders:
            return rows
        ordered = rows.withColumn(_PLACE, F.monotonically_increasing_id())
        return ordered.sortWithinPartitions(*map(quoted, self._folders), _PLACE).drop(_PLACE)

    def _save(self, output: Output, path: str) -> dict[int, int]:
        """Writes the rows; returns to how many folders each task has written, and so how many files at least."""
        given = output.rows(self.id, self._node, self._timestamp)
        rows = self._in_folders(given)
        if self._format in _TEXT:
            rows = with_texts(rows, written_columns(self._node, False), self._as_texts)
        elif self._format == "orc":
            rows = refusing_orc_days(rows, self._node)
        written = Observation(f"tasks of {self.id}")
        folders = F.collect_set(F.struct(_TASK, *map(quoted, self._folders)))
        # As JSON: PySpark 4.0 does not bring an observed array to Python.
        folder_of_task = F.to_json(F.transform(folders, lambda one: one[_TASK])).alias("folders")
        rows = rows.withColumn(_TASK, F.spark_partition_id()).observe(written, folder_of_task).drop(_TASK)
        writer = self._by_folder(rows).write.format(self._format).partitionBy(*self._folders)
        own = _CSV if self._format == "csv" else {}
        try:
            # The folder is a new one; to append is not to ask for it.
            writer.mode("append").options(**own, **_UNMARKED).options(**self._options.spark).save(path)
        except (Py4JJavaError, PySparkException):
            check_folder_names(given, self._node, self._folders, self._place)
            if self._format == "orc":
                check_orc_days(given, self._node, self._place)
            raise
        tasks = Counter(json.loads(written.get["folders"]))
        if 0 not in tasks:  # Spark's first task writes a file even then
            folder = Files(self._spark, path)
            for name in folder.names():
                if name.startswith(_FIRST):
                    folder.delete(name)
        return tasks
