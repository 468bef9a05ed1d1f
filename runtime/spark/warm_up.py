"""Starts Spark's Python workers while the driver still prepares the query: the first epoch would wait for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import SparkSession

from vsc.runtime.spark.session import configured, is_here, query_configuration, settled
from vsc.runtime.spark.ship import ship

__all__ = ["warm_up"]

_log = logging.getLogger(__name__)


def warm_up(spark: SparkSession) -> None:
    """Runs an empty task on each core of this machine, from a separate thread. Does nothing on a cluster."""
    if not is_here(spark.sparkContext.master or ""):
        return
    ship(spark)
    with configured(spark, query_configuration(partitions=1)):
        session = settled(spark)
    threading.Thread(target=_tasks, args=(session,), name="vsc-warm-up", daemon=True).start()


def _tasks(session: SparkSession) -> None:
    cores = session.sparkContext.defaultParallelism
    try:
        session.range(0, cores, 1, cores).mapInArrow(_none, "id bigint").write.format("noop").mode("append").save()
    except Exception:  # the query meets it too and reports it, or the session has been stopped
        _log.debug("Python workers were not started ahead of the query", exc_info=True)


def _none(_: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return iter(())
