"""What Spark makes of a plan: its own logical and physical plan, without reading a row.

Connectors are asked for their schema, so folders and brokers have to be there; nothing is written but an empty control
folder, which is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Plan
from vsc.runtime.operators.task import RunOptions
from vsc.runtime.spark.in_sql import SqlEpoch, runs_in_sql
from vsc.runtime.spark.local_folder import LocalFolders
from vsc.runtime.spark.pipeline import pipeline
from vsc.runtime.spark.query import check
from vsc.runtime.spark.session import configured, query_configuration

__all__ = ["PARTITIONS", "spark_plans"]

PARTITIONS = 4
"""As a query has that nobody gave a number of partitions."""


def spark_plans(plan: Plan, spark: SparkSession, variables: Mapping[str, str]) -> str:
    """Spark's parsed, analyzed, optimized and physical plan of what it runs in each micro-batch.

    With state: up to the rows that foreachBatch gives to the sinks. Without: of each sink. Raises what `start` raises
    before it looks at a checkpoint.
    """
    resolved = check(plan, variables, "available-now")
    with (
        tempfile.TemporaryDirectory(prefix="vsc-explain-") as control,
        configured(spark, query_configuration(PARTITIONS)),
    ):
        options, folders = RunOptions(), LocalFolders(None, "explain", "explain")
        frame = pipeline(spark, plan, resolved, control, PARTITIONS, options, folders)
        if not runs_in_sql(plan):
            return _section("up to the sinks", frame)
        epoch = SqlEpoch(plan, frame, options)
        return "\n".join(_section(f"sink {s.id}", epoch.rows(s.id, plan.node(s.node))) for s in plan.sinks)


def _section(title: str, frame: DataFrame) -> str:
    jvm: Any = frame.sparkSession._jvm
    text: str = jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended")
    return f"==== {title} ====\n{text.rstrip()}\n"
