"""What Spark makes of a plan: its own logical and physical plan, without reading a row.

Connectors are asked for their schema, so folders and brokers have to be there; nothing is written but empty folders,
which are removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.plan.secrets import masked
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.spark.base.hadoop import default_is_local
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.preflight import check
from vsc.runtime.spark.session.session import configured, query_configuration
from vsc.runtime.spark.stages.pipeline import pipeline
from vsc.runtime.spark.state.local_folder import LocalFolders

__all__ = ["PARTITIONS", "spark_plans"]

PARTITIONS = 4
"""The partitions of a query without `--partitions`."""


def spark_plans(plan: Plan, spark: SparkSession, variables: Mapping[str, str]) -> str:
    """Spark's parsed, analyzed, optimized and physical plan of what it runs in each micro-batch.

    Up to the rows that foreachBatch gives to the sinks. Raises what `start` raises before it looks at a checkpoint.
    """
    ends = check(plan, variables, "available-now", default_local=default_is_local(spark))
    with (
        tempfile.TemporaryDirectory(prefix="vsc-explain-") as control,
        configured(spark, query_configuration(PARTITIONS)),
    ):
        options, folders = RunOptions(), LocalFolders(None, "explain", "explain")
        ends.keep_in(f"{control}/sources")
        frame = pipeline(spark, plan, ends, control, PARTITIONS, options, folders)
        utils = java_class(spark, "org.apache.spark.sql.api.python.PythonSQLUtils")
        text: str = utils.explainString(frame._jdf.queryExecution(), "extended")
    return f"{_without_settings(text, ends).rstrip()}\n"


def _without_settings(text: str, ends: Ends) -> str:
    """The plan without the values of settings that are secrets, as any of Kafka's may be: Spark shows them."""
    for source in ends.sources:
        for name, value in source.options.spark.items():
            if source.is_secret(name):
                text = text.replace(f"{name} -> {value}", f"{name} -> ...").replace(f"{name}={value}", f"{name}=...")
    return masked(text)
