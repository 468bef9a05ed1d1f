"""What an epoch's tasks count, in Spark's own `StreamingQueryProgress`: as ``observedMetrics["vsc"]``, for listeners.

The counters travel as JSON beside the records (`exchange.counters`); here they are summed up by `observe`,
inside the job that computes the epoch. Guarantees: the sums are those of `EpochReport`; nothing is computed twice.

State is that of the partitions that had something to do in the epoch: all of it is in vsc's own progress only.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.runtime.spark.exchange.wire import CONTROL

__all__ = ["NAME", "is_heard", "observed"]

NAME = "vsc"
"""Under which name the metrics stand in the progress."""

_MAP = "map<string, bigint>"
_STORES = "struct<stores: map<string, struct<rows: bigint, bytes: bigint, held: bigint, stream_time: bigint>>>"
_COUNTS = f"struct<dropped_records: {_MAP}, missed_lookups: {_MAP}>"
"""Parts of a task's JSON. A count's name is ``NODE.REASON``."""


def is_heard(spark: SparkSession) -> bool:
    """Whether anything listens to Spark's progress: a listener of queries, one of Spark's events, or the event log.

    To observe costs 20 ms an epoch or more: a query that nothing listens to does not pay for it.
    """
    settings = spark.sparkContext.getConf()
    logged = settings.get("spark.eventLog.enabled", "false") == "true" or bool(settings.get("spark.extraListeners", ""))
    return logged or len(spark._jsparkSession.streams().listListeners()) > 0


def observed(frame: DataFrame) -> DataFrame:
    """The frame of wire rows, with its control rows observed; the rows are the same."""
    stores = _task("state", _STORES)["stores"]
    metrics = {
        "input_rows": _merged(_task("read", _MAP), _sum),
        "output_rows": _merged(_task("written", _MAP), _sum),
        "dropped_records": _merged(_task("counts", _COUNTS)["dropped_records"], _sum),
        "missed_lookups": _merged(_task("counts", _COUNTS)["missed_lookups"], _sum),
        "state_rows": _merged(_field(stores, "rows"), _sum),
        "state_bytes": _merged(_field(stores, "bytes"), _sum),
        "held_records": _merged(_field(stores, "held"), _sum),
        "stream_times": _merged(_field(stores, "stream_time"), F.least),
        "waiting_records": F.coalesce(F.sum(_task("state", "struct<waiting: bigint>")["waiting"]), F.lit(0)),
    }
    return frame.observe(NAME, *(metric.alias(name) for name, metric in metrics.items()))


def _task(member: str, type_: str) -> Column:
    """A member of a control row's JSON; null for all other rows."""
    parsed = F.from_json(F.col("payload").cast("string"), f"{member} {type_}")
    return F.when(F.col("dest") == CONTROL, parsed)[member]


def _field(stores: Column, name: str) -> Column:
    """One field of each store, where it has a value."""
    values = F.transform_values(stores, lambda _, store: store[name])
    return F.map_filter(values, lambda _, value: value.isNotNull())


def _merged(maps: Column, merge: Callable[[Column, Column], Column]) -> Column:
    """One map of those of all tasks, in order of its keys; values of the same key are merged."""
    found = F.aggregate(
        F.collect_list(maps),
        F.create_map().cast(_MAP),
        lambda all_, one: F.map_zip_with(all_, one, lambda _, a, b: merge(a, b)),
    )
    return F.map_from_entries(F.array_sort(F.map_entries(found)))


def _sum(a: Column, b: Column) -> Column:
    return F.coalesce(a, F.lit(0)) + F.coalesce(b, F.lit(0))
