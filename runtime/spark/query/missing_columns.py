"""Looks for the declared columns of each source once: when the run starts or, if there is nothing to look at then, in
the first epoch in which there is. Not if the checkpoint has read rows of it: they may change from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import SparkSession

from vsc.runtime.spark.connectors.registry import Ends

__all__ = ["MissingColumns"]


class MissingColumns:
    """The sources of a run that are still to be looked at: not those whose rows were `read` before."""

    def __init__(self, spark: SparkSession, ends: Ends, read: Collection[str]) -> None:
        self._spark = spark
        self._waiting = [source for source in ends.sources if source.node.name not in read]

    def check(self) -> None:
        """Looks at those that have rows. Raises MissingColumnError for a column that none of them has."""
        self._waiting = [source for source in self._waiting if not source.look_at_columns(self._spark)]
