"""Times in a zone that is not UTC, read by Spark: in its own patterns, and from ORC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.zones import OPTION

__all__ = ["check_java_zone", "timestamp_in_zone"]

_UTC = ("UTC", "Z", "GMT", "Etc/UTC", "Universal", "Zulu", "Etc/UCT", "UCT", "Etc/Universal", "Etc/Zulu", "Etc/GMT")


def timestamp_in_zone(cell: Column, zone: str, options: Mapping[str, str]) -> Column:
    """The timestamp that a text is in `zone`, null if it is not one; `options` are Spark's of the format."""
    # Spark takes a zone for a whole document only.
    document = F.to_json(F.struct(cell.alias("t")))
    return F.from_json(document, "t timestamp", {**options, OPTION: zone})["t"]


def check_java_zone(spark: SparkSession, ends: Iterable[tuple[Options, Node, type[VscRuntimeError]]]) -> None:
    """Refuses sources and sinks, each with its node and its error, if times would be read from ORC, or written to it,
    in a zone that is not UTC.

    ORC keeps what a clock shows, and Spark takes that for the clock of each Java that reads or writes.
    """
    in_orc = [(error, of) for of, node, error in ends if of.get("format") == "orc" and _keeps_times(node)]
    if not in_orc:
        return
    tasks = spark.range(0, 64, 1, spark.sparkContext.defaultParallelism)
    zones = tasks.select(F.call_function("reflect", F.lit("java.time.ZoneId"), F.lit("systemDefault"))).distinct()
    others = sorted(zone for (zone,) in zones.collect() if zone not in _UTC)
    if others:
        error, options = in_orc[0]
        raise error(
            f"{options.place}: Spark's Java runs in the time zone {others[0]} and reads times in ORC as local times",
            "start Spark with TZ=UTC in its environment and spark.executorEnv.TZ=UTC, or use parquet",
        )


def _keeps_times(node: Node) -> bool:
    return any("timestamp" in str(column.type) for column in (*node.schema.key, *node.schema.value))
