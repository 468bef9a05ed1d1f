"""What an epoch's tasks count, in Spark's own `StreamingQueryProgress`: as ``observedMetrics["vsc"]``, for listeners.

The counters travel as JSON beside the records (`exchange.counters`); here they are summed up by `observe`,
inside the job that computes the epoch. Guarantees: the sums are those of `EpochReport`; nothing is computed twice.

State is that of the partitions that had something to do in the epoch: all of it is in vsc's own progress only.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.runtime.spark.exchange.wire import CONTROL

__all__ = ["NAME", "is_heard", "observed"]

NAME = "vsc"
"""Under which name the metrics stand in the progress."""

_MAP = "map<string, bigint>"
_STORES = "struct<stores: map<string, struct<rows: bigint, bytes: bigint, held: bigint, stream_time: bigint>>>"
_COUNTS = f"struct<dropped_records: {_MAP}, missed_lookups: {_MAP}>"
"""Parts of a task's JSON. A count's name is ``NODE.REASON``."""
_SUM = "coalesce(a, 0) + coalesce(b, 0)"


def is_heard(spark: SparkSession) -> bool:
    """Whether anything listens to Spark's progress: a listener of queries, one of Spark's events, or the event log.

    To observe costs 20 ms an epoch or more: a query that nothing listens to does not pay for it.
    """
    settings = spark.sparkContext.getConf()
    logged = settings.get("spark.eventLog.enabled", "false") == "true" or bool(settings.get("spark.extraListeners", ""))
    return logged or len(spark._jsparkSession.streams().listListeners()) > 0


def observed(frame: DataFrame) -> DataFrame:
    """The frame of wire rows, with its control rows observed; the rows are the same.

    Spark reads each metric from one text: made of columns, they would be hundreds of calls of the JVM.
    """
    counts, stores = _task("counts", _COUNTS), f"{_task('state', _STORES)}.stores"
    metrics = {
        "input_rows": _merged(_task("read", _MAP), _SUM),
        "output_rows": _merged(_task("written", _MAP), _SUM),
        "dropped_records": _merged(f"{counts}.dropped_records", _SUM),
        "missed_lookups": _merged(f"{counts}.missed_lookups", _SUM),
        "state_rows": _merged(_field(stores, "rows"), _SUM),
        "state_bytes": _merged(_field(stores, "bytes"), _SUM),
        "held_records": _merged(_field(stores, "held"), _SUM),
        "stream_times": _merged(_field(stores, "stream_time"), "least(a, b)"),
        "waiting_records": f"coalesce(sum({_task('state', 'struct<waiting: bigint>')}.waiting), 0)",
    }
    return frame.observe(NAME, *(F.expr(text).alias(name) for name, text in metrics.items()))


def _task(member: str, type_: str) -> str:
    """A member of a control row's JSON; null for all other rows."""
    parsed = f"from_json(cast(payload as string), '{member} {type_}')"
    return f"(case when dest = {CONTROL} then {parsed} end).{member}"


def _field(stores: str, name: str) -> str:
    """One field of each store, where it has a value."""
    values = f"transform_values({stores}, (store, found) -> found.{name})"
    return f"map_filter({values}, (store, value) -> value is not null)"


def _merged(maps: str, merge: str) -> str:
    """One map of those of all tasks, in order of its keys; `merge` is made of the values ``a`` and ``b`` of a key."""
    both = f"(total, one) -> map_zip_with(total, one, (name, a, b) -> {merge})"
    found = f"aggregate(collect_list({maps}), cast(map() as {_MAP}), {both})"
    return f"map_from_entries(array_sort(map_entries({found})))"
