"""Looks for the declared columns of each source once: when the run starts or, if there is nothing to look at then, in
the first epoch in which there is. Not if the checkpoint has read rows of it: they may change from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Plan
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.registry import connector_of

__all__ = ["MissingColumns", "look_at_columns"]


class MissingColumns:
    """The sources of a resolved plan that are still to be looked at: not those whose rows were `read` before."""

    def __init__(self, spark: SparkSession, resolved: Plan, read: Collection[str]) -> None:
        self._spark = spark
        self._waiting = [node for node in resolved.sources if node.name not in read]

    def check(self) -> None:
        """Looks at those that have rows. Raises MissingColumnError for a column that none of them has."""
        self._waiting = [node for node in self._waiting if not look_at_columns(self._spark, node)]


def look_at_columns(spark: SparkSession, node: Node) -> bool:
    """Looks at one source; whether there was anything. Raises MissingColumnError for a column that it does not have."""
    return connector_of(node.source.connector.kind).look_at_columns(spark, node, Options.of_source(node))
