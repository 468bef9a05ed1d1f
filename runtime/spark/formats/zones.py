"""The zone of times that are written as text without an offset: what a source says, else UTC, whatever the session has.

Guarantees: a text with an offset means what it says, in any zone. Where a zone's clocks are put forward, a time that is
left out is taken to be as much later; where they are put back, a time that comes twice is the earlier one: as in Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Plan
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.texts import zone_of

__all__ = ["OPTION", "check_java_zone", "check_zone", "declared_zone", "timestamp_in_zone"]

OPTION = "timeZone"
"""Spark's option for the zone."""

_TEXT = ("json", "csv")
_UTC = ("UTC", "Z", "GMT", "Etc/UTC", "Universal", "Zulu", "Etc/UCT", "UCT", "Etc/Universal", "Etc/Zulu", "Etc/GMT")


def _zone_of(options: Options) -> str | None:
    """The zone that a source names; None: UTC."""
    zone = options.get("time_zone")
    return None if zone is None else str(zone)


def check_zone(options: Options) -> None:
    """SourceError for what is wrong with a zone; the compiler has seen what holds no variable."""
    form, zone = options.text("format"), _zone_of(options)
    if zone is not None and form not in _TEXT:
        raise SourceError(f"{options.place}: time_zone is for times in text (json, csv), not for {form}", "remove it")
    try:
        zone_of(zone or "UTC")
    except ValueError:
        help = "write an IANA name, such as 'Europe/Berlin'; a machine without time zones needs the package tzdata"
        raise SourceError(f"{options.place}: there is no time zone {zone!r}", help) from None
    if OPTION.lower() in {name.lower() for name in options.spark}:
        raise SourceError(
            f"{options.place}: the option {OPTION!r} is not passed on to Spark", "write time_zone = '...'"
        )


def declared_zone(options: Options) -> tzinfo:
    """The zone of a source that has been checked."""
    return zone_of(_zone_of(options) or "UTC")


def timestamp_in_zone(cell: Column, zone: str, options: Mapping[str, str]) -> Column:
    """The timestamp that a text is in `zone`, null if it is not one; `options` are Spark's of the format."""
    # Spark takes a zone for a whole document only.
    document = F.to_json(F.struct(cell.alias("t")))
    return F.from_json(document, "t timestamp", {**options, OPTION: zone})["t"]


def check_java_zone(spark: SparkSession, resolved: Plan) -> None:
    """Raises SourceError or SinkError if times would be read from ORC, or written to it, in a zone that is not UTC.

    ORC keeps what a clock shows, and Spark takes that for the clock of each Java that reads or writes.
    """
    reads = [(SourceError, Options.of_source(n)) for n in resolved.sources if _keeps_times(n)]
    writes = [(SinkError, Options.of_sink(s)) for s in resolved.sinks if _keeps_times(resolved.node(s.node))]
    in_orc = [(kind, options) for kind, options in (*reads, *writes) if options.get("format") == "orc"]
    if not in_orc:
        return
    tasks = spark.range(0, 64, 1, spark.sparkContext.defaultParallelism)
    zones = tasks.select(F.call_function("reflect", F.lit("java.time.ZoneId"), F.lit("systemDefault"))).distinct()
    others = sorted(zone for (zone,) in zones.collect() if zone not in _UTC)
    if others:
        kind, options = in_orc[0]
        raise kind(
            f"{options.place}: Spark's Java runs in the time zone {others[0]} and reads times in ORC as local times",
            "start Spark with TZ=UTC in its environment and spark.executorEnv.TZ=UTC, or use parquet",
        )


def _keeps_times(node: Node) -> bool:
    return any("timestamp" in str(column.type) for column in (*node.schema.key, *node.schema.value))
