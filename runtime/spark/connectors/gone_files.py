"""Files that Spark has taken for an epoch and no longer finds: it leaves them out of the epoch without a word. Files
that have changed since they were listed. And files that a sink has merged from several (`target_size`): they would be
read twice.

Guarantees: an epoch does not end without a file that was listed for it, unless its source says so; then the files are
named, as are those that have changed. A file that goes while its epoch is being read fails the epoch, which then comes
here again. No epoch reads a merged file.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.plan.words import counted
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.paths import logged_url
from vsc.runtime.spark.connectors.files.small_files import MERGED
from vsc.runtime.spark.connectors.spark_source import private_field, running_query, unknown_spark

__all__ = ["IGNORED", "EpochFiles"]

IGNORED = "ignoreMissingFiles"
"""The option of a source that may go on without such files."""
_SHOWN = 3
_ENTRY = re.compile(r"FileEntry\((.*),(\d+),-?\d+\)")
_CHANGED = re.compile(r"; modification_time=(\d+); access_time=")
"""When a file was changed, in Hadoop's text for its status."""
_log = logging.getLogger(__name__)


class _Found(NamedTuple):
    """What is wrong with the files that an epoch takes from a source: `gone` are not there any more,
    `changed` have changed since Spark listed them, `merged` is the first one that a sink has merged."""

    gone: list[str]
    changed: list[str]
    merged: str | None


class EpochFiles:
    """The files of the running epoch, on the thread that runs the query (in foreachBatch).

    One for all epochs of a query: each look at an object of the JVM takes time, as does forgetting it.
    """

    def __init__(self, spark: SparkSession) -> None:
        try:
            self._running = running_query(spark)
            self._text_of = java_class(spark, "scala.runtime.ScalaRunTime").stringOf
            self._range = java_class(spark, "java.util.stream.LongStream").rangeClosed
            self._as_scala = java_class(spark, "scala.jdk.javaapi.CollectionConverters").asScala
        except (Py4JError, TypeError, AttributeError) as error:
            raise unknown_spark() from error
        self._sources: dict[int, tuple[Any, Any]] = {}

    def check(self, sources: Iterable[tuple[int, Options]]) -> None:
        """Raises SourceError if a file of a source, given its number in Spark's logs, is gone, or a merged one; warns
        of one that has changed, and if the source may go on without those that are gone."""
        try:
            leaves = self._running.lastExecution().logical().collectLeaves()
            found = [(self._found(number, leaves.apply(number)), options) for number, options in sources]
        except (Py4JError, TypeError, AttributeError) as error:
            raise unknown_spark() from error
        for files, options in found:
            _refuse(files, options)

    def _found(self, number: int, leaf: Any) -> _Found:
        """What is wrong with the files of an epoch, of which Spark made `leaf`."""
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return _Found([], [], None)  # the source brings nothing
        index = leaf.relation().location()
        merged = MERGED.search(str(index.rootPaths().mkString("\n")))
        listed, there = dict(self._listed(*self._source(number))), self._there(index)
        gone = sorted(listed.keys() - there.keys())
        changed = sorted(path for path, time in listed.items() if there.get(path) not in (time, None))
        return _Found(gone, changed, None if merged is None else merged.group().lstrip("/"))

    def _source(self, number: int) -> tuple[Any, Any]:
        """Spark's source of that number, and its log of files."""
        if number not in self._sources:
            source = self._running.sources().apply(number)
            self._sources[number] = source, private_field(source, "metadataLog")
        return self._sources[number]

    def _listed(self, source: Any, log: Any) -> Iterator[tuple[str, str]]:
        """The files that Spark has listed for the epoch, and when each had been changed then."""
        before = self._running.committedOffsets().get(source)
        start = _log_offset(before.get()) + 1 if before.isDefined() else 0
        end = _log_offset(self._running.availableOffsets().get(source).get())
        last = self._some(end)
        for pair in log.get(last if start == end else self._some(start), last):
            for line in self._texts(pair._2()):
                yield _entry(line)

    def _there(self, index: Any) -> dict[str, str | None]:
        """The files that Spark has found for the epoch, and when each was changed; None where a file system's client
        has a text of its own for a file's status."""
        files = [_plain(url) for url in self._texts(index.inputFiles())]
        times = _CHANGED.findall(str(index.allFiles().mkString("\n")))
        return dict(zip(files, times, strict=True)) if len(times) == len(files) else dict.fromkeys(files)

    def _texts(self, array: Any) -> list[str]:
        """The texts of an array of the JVM, in which URLs have no blanks. At once: a call for each would take long."""
        text = str(self._text_of(array)).removeprefix("Array(").removesuffix(")")
        return text.split(", ") if text else []

    def _some(self, number: int) -> Any:
        """Scala's Some of a Long, which Py4J would make an Integer of."""
        return self._as_scala(self._range(number, number).boxed().toList()).headOption()


def _log_offset(offset: Any) -> int:
    return int(json.loads(str(offset.json()))["logOffset"])


def _entry(text: str) -> tuple[str, str]:
    """The file of an entry in Spark's log, and when it had been changed."""
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise TypeError(f"an entry {text!r} in the log of files")
    return _plain(match[1]), match[2]


def _shown(files: list[str]) -> str:
    return ", ".join(files[:_SHOWN]) + (f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else "")


def _refuse(files: _Found, options: Options) -> None:
    if files.merged is not None:
        raise _read_twice(options, files.merged)
    if files.gone:
        _tell(options, files.gone)
    if files.changed:
        what = f"{counted(len(files.changed), 'file')} changed after Spark had listed what this epoch reads"
        _log.warning(f"{options.place}: {what}, and what is there now counts: {_shown(files.changed)}")


def _tell(options: Options, gone: list[str]) -> None:
    what = f"{counted(len(gone), 'file')} that Spark had listed for this epoch"
    are = "is" if len(gone) == 1 else "are"
    if options.spark_word(IGNORED) == "true":
        _log.warning(f"{options.place}: {what} {are} gone, with all rows: {_shown(gone)}")
        return
    raise SourceError(
        f"{options.place}: {what} {are} gone: {_shown(gone)}",
        f"put back what was removed, then run again; or write '{IGNORED}' = 'true' among the options of the source, "
        "to go on without those rows",
    )


def _read_twice(options: Options, name: str) -> SourceError:
    return SourceError(
        f"{options.place}: {name} holds the rows of other files, which a sink with target_size has merged: a query "
        "that follows its folder reads them twice",
        "leave target_size out where the folder is written, or write to Delta Lake or Iceberg, which can be followed; "
        "or read a copy of the merged files under other names, once",
    )


def _plain(url: str) -> str:
    return unquote(logged_url(str(url)))
