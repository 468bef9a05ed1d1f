"""When a run begins and ends, for its lineage (`vsc.runtime.spark.report.lineage`)."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from vsc.runtime.spark.query.failures import in_a_line
from vsc.runtime.spark.query.running_query import RunningQuery
from vsc.runtime.spark.report.lineage import RunLineage
from vsc.runtime.spark.session.interrupts import Interrupted, Interrupts

__all__ = ["beginning", "tell_end", "telling"]

_WAIT_S = 10.0
"""At the end of the process, for what is said of a query that has just ended."""


@contextlib.contextmanager
def telling(lineage: RunLineage | None, spark: SparkSession, interrupts: Interrupts) -> Iterator[None]:
    """A run, from its begin to its end."""
    with _begun(lineage, spark, lambda error: interrupts.at_once or isinstance(error, Interrupted | KeyboardInterrupt)):
        yield
    if lineage is not None:
        lineage.end("COMPLETE")


def beginning(lineage: RunLineage | None, spark: SparkSession) -> AbstractContextManager[None]:
    """The begin of a run that goes on elsewhere."""
    return _begun(lineage, spark, lambda error: False)


@contextlib.contextmanager
def _begun(lineage: RunLineage | None, spark: SparkSession, stopped: Callable[[BaseException], bool]) -> Iterator[None]:
    """A run that has begun; an error in it is its end: an abort where it was `stopped`, else a failure."""
    if lineage is None:
        yield
        return
    try:
        lineage.begin(spark)
        yield
    except BaseException as error:
        if stopped(error):
            lineage.end("ABORT")
        else:
            lineage.end("FAIL", in_a_line(error))
        raise


def tell_end(query: RunningQuery, lineage: RunLineage, bounded: bool) -> None:
    """Tells how `query` has ended, whenever that is; on a thread of its own. `bounded`: it does so by itself."""

    def wait() -> None:
        with contextlib.suppress(Exception):  # the query's own failure is its caller's to see
            query.awaitTermination()
        failure: BaseException | None = None
        complete = False
        with contextlib.suppress(Exception):  # of a session that has been stopped, nothing more is known
            failure = query.exception()
            complete = bounded and failure is None and _has_read_all(query)
        if failure is not None:
            lineage.end("FAIL", in_a_line(failure))
        else:
            lineage.end("COMPLETE" if complete else "ABORT")
        atexit.unregister(leave)

    def leave() -> None:
        """The process ends, and the query with it."""
        active = False
        with contextlib.suppress(Exception):
            active = query.isActive
        if not active:
            thread.join(_WAIT_S)
        lineage.end("ABORT")

    thread = threading.Thread(target=wait, name="vsc-lineage-end", daemon=True)
    atexit.register(leave)
    thread.start()


def _has_read_all(query: RunningQuery) -> bool:
    """Whether a bounded query that has ended has read what there was, whoever ended it.

    Spark has then looked for more and found nothing (`noNewData`). Where it reads all in one epoch (``once``, and
    sources that cannot do otherwise) it does not look again: the progress of that epoch comes after its commit.
    """
    execution = query._jsq.streamingQuery()
    if execution.noNewData():
        return True
    executor = execution.triggerExecutor()  # None if it was stopped before its first epoch
    one_epoch = executor is not None and executor.getClass().getSimpleName() == "SingleBatchExecutor"
    return one_epoch and query.lastProgress is not None
