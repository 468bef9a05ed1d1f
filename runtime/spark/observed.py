"""What an epoch's tasks count, in Spark's own `StreamingQueryProgress`: as ``observedMetrics["vsc"]``, for listeners.

The counters travel as JSON beside the records (`vsc.runtime.spark.counters`); here they are summed up by `observe`,
inside the job that computes the epoch. Guarantees: the sums are those of `EpochReport`; nothing is computed twice.

State is that of the partitions that had something to do in the epoch: all of it is in vsc's own progress only.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.runtime.spark.wire import CONTROL

__all__ = ["NAME", "observed"]

NAME = "vsc"
"""Under which name the metrics stand in the progress."""

_STORE = "struct<rows: bigint, bytes: bigint, held: bigint, stream_time: bigint>"
_COUNTS = "struct<dropped_records: map<string, bigint>, missed_lookups: map<string, bigint>>"
_TASK = (
    f"read map<string, bigint>, written map<string, bigint>, counts {_COUNTS}, "
    f"state struct<waiting: bigint, stores: map<string, {_STORE}>>"
)
_MAPS = {
    "input_rows": "read",
    "output_rows": "written",
    "dropped_records": "counts.dropped_records",
    "missed_lookups": "counts.missed_lookups",
}
"""Each metric that is a sum by name, and where a task's JSON has it. A count's name is ``NODE.REASON``."""


def observed(frame: DataFrame) -> DataFrame:
    """The frame of wire rows, with its control rows observed; the rows are the same."""
    task = F.when(F.col("dest") == CONTROL, F.from_json(F.col("payload").cast("string"), _TASK))
    metrics = [_merged(_entries(task, place), "sum").alias(name) for name, place in _MAPS.items()]
    for name, field, how in (
        ("state_rows", "rows", "sum"), ("state_bytes", "bytes", "sum"), ("held_records", "held", "sum"),
        ("stream_times", "stream_time", "max"),
    ):  # fmt: skip
        stores = _entries(task, "state.stores")
        values = F.filter(_field(stores, field), lambda e: e["value"].isNotNull())
        metrics.append(_merged(values, how).alias(name))
    waiting = F.coalesce(F.sum(task["state"]["waiting"]), F.lit(0)).alias("waiting_records")
    return frame.observe(NAME, *metrics, waiting)


def _entries(task: Column, place: str) -> Column:
    """The entries of a map of all tasks, one after the other."""
    found = task
    for name in place.split("."):
        found = found[name]
    return F.flatten(F.collect_list(F.map_entries(found)))


def _field(entries: Column, name: str) -> Column:
    """The entries with one field of their values."""
    return F.transform(entries, lambda e: F.struct(e["key"].alias("key"), e["value"][name].alias("value")))


def _merged(entries: Column, how: str) -> Column:
    """The map of these entries; values of one key are added, or the highest one counts."""

    def of_key(key: Column) -> Column:
        values = F.transform(F.filter(entries, lambda e: e["key"] == key), lambda e: e["value"])
        if how == "max":
            return F.struct(key.alias("key"), F.array_max(values).alias("value"))
        return F.struct(
            key.alias("key"), F.aggregate(values, F.lit(0).cast("bigint"), lambda a, b: a + b).alias("value")
        )

    keys = F.array_sort(F.array_distinct(F.transform(entries, lambda e: e["key"])))
    return F.map_from_entries(F.transform(keys, of_key))
