"""The backlog of a source of Delta Lake or Iceberg."""

from __future__ import annotations

import json

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from vsc.runtime.spark.connectors.spark_source import Backlog, Input, SparkSource, unknown_spark

__all__ = ["LakeInput"]

_FIRST = "!"
"""Before all names of files and of keys' partitions."""


class LakeInput(Input):
    """One source of a table. What is left is asked for each time: it is a look into the table's log.

    `parses`: the source takes only offsets that it has parsed.
    """

    def __init__(self, source: SparkSource, parses: bool) -> None:
        self._source, self._running, self._parses = source.instance, source.running, parses

    def backlog(self) -> Backlog:
        """See `Input`."""
        try:
            end = self._running.availableOffsets().get(self._source).get()
            text = str(end.json())
            start = self._source.deserializeOffset(text) if self._parses else end
            # With the limit with which Spark asks: with another one, Delta Lake steps behind a commit that was read.
            latest = self._source.latestOffset(start, self._source.getDefaultReadLimit())
            left = latest is not None and json.loads(str(latest.json())) != json.loads(text)
            return Backlog(_FIRST if left else None, hash(text))
        except Py4JJavaError:
            raise  # what the format says of a table that it cannot read on
        except (Py4JError, TypeError, ValueError, AttributeError) as error:
            raise unknown_spark() from error
