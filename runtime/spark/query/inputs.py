"""The inputs of a running query: Spark's sources, each as its connector knows it."""

from __future__ import annotations

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.registry import connector_of
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource, running_query, unknown_spark

__all__ = ["has_inputs", "query_inputs"]


def has_inputs(plan: Plan) -> bool:
    """Whether a query of `plan` has to look at its inputs: to keep them in step, or as a source needs it."""
    needed = (connector_of(node.source.connector.kind).needs_input for node in plan.sources)
    return bool(stages_in_step(plan)) or any(needed)


def query_inputs(plan: Plan, spark: SparkSession, ends: bool) -> dict[str, Input | None]:
    """The inputs, by source of `plan`, of the query that this thread runs (in foreachBatch); None for a source
    whose future input is unknown.

    `ends`: the query takes what there is and stops, so nothing is left but what Spark has listed.
    """
    try:
        running = running_query(spark)
        found = running.sources()
        instances = [found.apply(i) for i in range(1, found.size())]  # the first is the control source
        limits = java_class(spark, "org.apache.spark.sql.connector.read.streaming.ReadLimit")
        everything = limits.allAvailable()
        classes = [str(instance.getClass().getSimpleName()) for instance in instances]
    except (Py4JError, TypeError, AttributeError) as error:
        raise unknown_spark() from error
    inputs: dict[str, Input | None] = {}
    for node, instance, name in zip(plan.sources, instances, classes, strict=True):
        connector, options = connector_of(node.source.connector.kind), Options.of_source(node)
        if connector.source_class(options) not in (None, name):
            raise RuntimeError(f"Spark has a {name} in the place of source '{node.name}'")
        lists = not ends and (len(plan.sources) > 1 or plan.quiet is not None)
        source = SparkSource(instance, running, everything, lists)
        inputs[node.name] = connector.input(source, options)
    return inputs
