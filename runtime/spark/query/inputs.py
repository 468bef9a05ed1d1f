"""The inputs of a running query: Spark's sources, each as its connector knows it."""

from __future__ import annotations

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource, running_query, unknown_spark

__all__ = ["has_inputs", "query_inputs"]


def has_inputs(ends: Ends) -> bool:
    """Whether a query has to look at its inputs: to keep them in step, or as a source needs it."""
    return bool(stages_in_step(ends.plan)) or any(source.needs_input for source in ends.sources)


def query_inputs(ends: Ends, spark: SparkSession, stops: bool) -> dict[str, Input | None]:
    """The inputs, by source, of the query that this thread runs (in foreachBatch); None for a source whose future input
    is unknown.

    `stops`: the query takes what there is and stops, so nothing is left but what Spark has listed.
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
    lists = not stops and (len(ends.sources) > 1 or ends.plan.quiet is not None)
    for source, instance, name in zip(ends.sources, instances, classes, strict=True):
        if source.source_class not in (None, name):
            raise RuntimeError(f"Spark has a {name} in the place of source '{source.node.name}'")
        inputs[source.node.name] = source.input(SparkSource(instance, running, everything, lists))
    return inputs
