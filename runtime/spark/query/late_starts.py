"""Queries that Spark ends before their first epoch, as a Python worker of the driver took too long to start.

Spark waits ten seconds for such a worker, whatever the load, and no setting changes that. Nothing has been done by
then: the query starts again, after a pause in which others may finish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from vsc.runtime.spark.query.failures import started_late

if TYPE_CHECKING:
    from vsc.runtime.spark.query.opened import Opened
    from vsc.runtime.spark.query.start import Started

__all__ = ["PAUSES", "tell_again", "under_way"]

PAUSES = (2.0, 5.0, 10.0, 20.0)
"""The seconds before a query starts again, each time."""
_PATIENCE_S = 60.0
"""How long a query may take to its first epoch, if it has any, until nobody looks any more."""
_POLL_S = 0.05
_log = logging.getLogger(__name__)


def tell_again(pause: float) -> None:
    """Says that a query starts again after a pause."""
    _log.warning(
        "a Python worker of Spark took too long to start on this busy machine: the query starts again in %g seconds",
        pause,
    )


def under_way(
    opened: Opened, start: Callable[[Opened], Started], wait: Callable[[float], None] = time.sleep
) -> Started:
    """The query that `start` makes, once it has begun its first epoch, has nothing to do, or has ended for another
    reason."""
    for pause in PAUSES:
        started = start(opened)
        failure = _ended_early(started, wait)
        if failure is None or not started_late(failure):
            return started
        started.claim.release()
        tell_again(pause)
        wait(pause)
        opened = opened.again()
    return start(opened)


def _ended_early(started: Started, wait: Callable[[float], None]) -> StreamingQueryException | None:
    """Why the query ended before its first epoch; None if it did not. If the caller is interrupted, the query stops."""
    query, until = started.query, time.monotonic() + _PATIENCE_S
    try:
        while query.isActive and not started.writer.begun and time.monotonic() < until:
            status = query.status
            if not status["isTriggerActive"] and status["message"].startswith("Waiting for"):
                break
            wait(_POLL_S)
    except BaseException:
        query.stop()
        raise
    return None if query.isActive or started.writer.begun else query.exception()
