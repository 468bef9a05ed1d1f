"""What Spark makes of a plan: its own logical and physical plan, without reading a row.

Connectors are asked for their schema, so folders and brokers have to be there; nothing is written but an empty control
folder, which is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Plan, Source
from vsc.runtime.operators.layout import consumers, owner
from vsc.runtime.operators.task import RunOptions
from vsc.runtime.spark.in_sql import SqlEpoch, runs_in_sql
from vsc.runtime.spark.local_folder import LocalFolders
from vsc.runtime.spark.pipeline import pipeline
from vsc.runtime.spark.query import check
from vsc.runtime.spark.session import configured, query_configuration
from vsc.runtime.spark.sql_prefix import prefix_of

__all__ = ["PARTITIONS", "spark_plans"]

PARTITIONS = 4
"""As a query has that nobody gave a number of partitions."""


def spark_plans(plan: Plan, spark: SparkSession, variables: Mapping[str, str]) -> str:
    """Spark's parsed, analyzed, optimized and physical plan of what it runs in each micro-batch.

    With state: up to the rows that foreachBatch gives to the sinks, and before it, for each source, what of the nodes
    behind it is computed where. Without: of each sink. Raises what `start` raises before it looks at a checkpoint.
    """
    resolved = check(plan, variables, "available-now")
    with (
        tempfile.TemporaryDirectory(prefix="vsc-explain-") as control,
        configured(spark, query_configuration(PARTITIONS)),
    ):
        options, folders = RunOptions(), LocalFolders(None, "explain", "explain")
        frame = pipeline(spark, plan, resolved, control, PARTITIONS, options, folders)
        if not runs_in_sql(plan):
            return _shares(plan) + _section("up to the sinks", frame)
        epoch = SqlEpoch(plan, frame, options)
        return "\n".join(_section(f"sink {s.id}", epoch.rows(s.id, plan.node(s.node))) for s in plan.sinks)


def _shares(plan: Plan) -> str:
    """For each source, who computes what is stateless behind it."""
    lines = []
    for node in plan.nodes:
        if isinstance(node.operation, Source):
            prefix = prefix_of(plan, node.name)
            in_sql = frozenset() if prefix is None else prefix.nodes
            behind = list(dict.fromkeys(_behind(plan, node.name)))
            shares: dict[str, list[str]] = {"Spark SQL": [], "Python": []}
            shares["Python" if prefix is None else "Spark SQL"].append("its event times")
            for name in behind:
                shares["Spark SQL" if name in in_sql else "Python"].append(_told(name))
            lines += [f"source {node.name}: {who} computes {', '.join(what)}\n" for who, what in shares.items() if what]
    return "".join(lines)


def _told(name: str) -> str:
    return name if owner(name) == name else f"the key for {owner(name)}"


def _behind(plan: Plan, name: str) -> Iterator[str]:
    for node in consumers(plan, plan.stages[0], name):
        yield node.name
        yield from _behind(plan, node.name)


def _section(title: str, frame: DataFrame) -> str:
    jvm: Any = frame.sparkSession._jvm
    text: str = jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended")
    return f"==== {title} ====\n{text.rstrip()}\n"
