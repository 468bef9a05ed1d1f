"""Files that Spark has taken for an epoch and no longer finds: it leaves them out of the epoch without a word. And
files that a sink has merged from several (`target_size`): they would be read twice.

Guarantees: an epoch does not end without a file that was listed for it, unless its source says so; then the files are
named. A file that goes while its epoch is being read fails the epoch, which then comes here again. No epoch reads a
merged file.
"""

from __future__ import annotations

import json
import logging
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.plan.words import counted
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.paths import logged_url
from vsc.runtime.spark.connectors.file_input import FILE_SOURCE
from vsc.runtime.spark.connectors.files.small_files import MERGED
from vsc.runtime.spark.connectors.registry import connector_of
from vsc.runtime.spark.connectors.spark_source import private_field, running_query, unknown_spark

__all__ = ["IGNORED", "GoneFiles"]

IGNORED = "ignoreMissingFiles"
"""The option of a source that may go on without such files."""
_SHOWN = 3
_log = logging.getLogger(__name__)


class GoneFiles:
    """Looks at the sources of files of a resolved plan, on the thread that runs the query (in foreachBatch)."""

    def __init__(self, spark: SparkSession, resolved: Plan) -> None:
        self._spark = spark
        self._sources = [
            (place, Options.of_source(node))
            for place, node in enumerate(resolved.sources, start=1)  # the first is the control source
            if connector_of(node.source.connector.kind).source_class(Options.of_source(node)) == FILE_SOURCE
        ]

    def check(self) -> None:
        """Raises SourceError if a file of the running epoch is gone, or a merged one; warns if its source may go on
        without those that are gone."""
        if not self._sources:
            return
        try:
            running = running_query(self._spark)
            leaves, sources = running.lastExecution().logical().collectLeaves(), running.sources()
            found = [
                (options, *self._wrong(running, sources.apply(place), leaves.apply(place)))
                for place, options in self._sources
            ]
        except (Py4JError, TypeError, AttributeError) as error:
            raise unknown_spark() from error
        for options, gone, merged in found:
            if merged is not None:
                raise _read_twice(options, merged)
            if gone:
                _tell(options, gone)

    def _wrong(self, running: Any, source: Any, leaf: Any) -> tuple[list[str], str | None]:
        """Of the files that the epoch takes from a source, of which Spark made `leaf`: those that it did not find, and
        the first one that is merged."""
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            return [], None  # the source brings nothing
        index = leaf.relation().location()
        merged = MERGED.search(str(index.rootPaths().mkString("\n")))  # at once: a call for each would take long
        return self._gone(running, source, index.inputFiles()), None if merged is None else merged.group().lstrip("/")

    def _gone(self, running: Any, source: Any, there: Any) -> list[str]:
        logs = self._log_entries(running, source)
        if sum(len(entries) for entries in logs) == len(there):
            return []
        known = {_plain(url) for url in there}
        return sorted(path for entries in logs for entry in entries if (path := _plain(entry.path())) not in known)

    def _log_entries(self, running: Any, source: Any) -> list[Any]:
        """What Spark has listed for the epoch: arrays of entries, which stay in the JVM."""
        before = running.committedOffsets().get(source)
        start = _log_offset(before.get()) + 1 if before.isDefined() else 0
        end = _log_offset(running.availableOffsets().get(source).get())
        found = private_field(source, "metadataLog").get(self._some(start), self._some(end))
        return [pair._2() for pair in found]

    def _some(self, number: int) -> Any:
        """Scala's Some of a Long, which Py4J would make an Integer of."""
        jvm: Any = self._spark._jvm
        boxed = jvm.java.util.stream.LongStream.rangeClosed(number, number).boxed().toList()
        return jvm.scala.jdk.javaapi.CollectionConverters.asScala(boxed).headOption()


def _log_offset(offset: Any) -> int:
    return int(json.loads(str(offset.json()))["logOffset"])


def _tell(options: Options, gone: list[str]) -> None:
    shown = ", ".join(gone[:_SHOWN]) + (f" and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else "")
    what = f"{counted(len(gone), 'file')} that Spark had listed for this epoch"
    are = "is" if len(gone) == 1 else "are"
    if options.spark_word(IGNORED) == "true":
        _log.warning(f"{options.place}: {what} {are} gone, with all rows: {shown}")
        return
    raise SourceError(
        f"{options.place}: {what} {are} gone: {shown}",
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
