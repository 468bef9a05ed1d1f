"""A query in a user's session. Its failure is reported in vsc's words, which Spark's message buries; its status is
Spark's, shown as a table of what matters.

Guarantees: a status is of the moment in which it was asked for. Not for the progress of ``vsc run``: see `displays`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.captured import StreamingQueryException as CapturedException
from pyspark.sql.streaming.query import StreamingQuery

from vsc.plan.words import counted
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.report.progress import Finished, Tracker
from vsc.runtime.spark.report.progress_text import summary_parts

__all__ = ["Epochs", "QueryFailedError", "QueryStatus", "RunningQuery"]

Lines = Sequence[tuple[str, Sequence[str]]]


class QueryFailedError(CapturedException):
    """A query of vsc failed. Its text is that of `error`, which holds the parts; the cause is Spark's exception."""

    def __init__(self, error: VscRuntimeError) -> None:
        super().__init__(desc=str(error), stackTrace="")
        self.error = error

    def __str__(self) -> str:
        return str(self.error)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of Spark's and Java's traces."""
        return str(self).splitlines()

    def getMessage(self) -> str:
        """The text, under the name that Spark's own exceptions have for it."""
        return str(self.error)


class RunningQuery(StreamingQuery):
    """The query that `query` is.

    `why` explains its failure, None if vsc does not know the cause. `status` adds to Spark's own.
    """

    def __init__(
        self,
        query: StreamingQuery,
        why: Callable[[BaseException], VscRuntimeError | None],
        status: Callable[[RunningQuery, Mapping[str, Any]], QueryStatus],
    ) -> None:
        super().__init__(query._jsq)
        self._why = why
        self._status = status
        self._known: VscRuntimeError | None = None

    @property
    def status(self) -> QueryStatus:
        """Spark's status; displayed as a table of rows in and out, dropped and held records, and state."""
        return self._status(self, super().status)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """Waits for the end, as Spark's method does. Raises `QueryFailedError`, or what Spark raises."""
        with self._explained():
            return super().awaitTermination(timeout)

    def processAllAvailable(self) -> None:
        """Waits for all input, as Spark's method does. Raises `QueryFailedError`, or what Spark raises."""
        with self._explained():
            super().processAllAvailable()

    def exception(self) -> StreamingQueryException | None:
        """The query's error: a `QueryFailedError`, or Spark's own; None if it has not failed."""
        failure = super().exception()
        return None if failure is None else self._own(failure)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except StreamingQueryException as failure:
            own = self._own(failure)
            if own is failure:
                raise
            raise own from failure

    def _own(self, failure: StreamingQueryException) -> StreamingQueryException:
        if self._known is None:
            self._known = self._why(failure)
        if self._known is None:
            return failure
        own = QueryFailedError(self._known)
        own.__cause__ = failure
        return own


class QueryStatus(dict[str, Any]):
    """The dictionary that Spark's ``StreamingQuery.status`` is, of `query`; shown, it is a table of `lines`."""

    def __init__(self, spark: Mapping[str, Any], query: RunningQuery, title: str, lines: Lines) -> None:
        super().__init__(spark)
        self.query = query
        self._title = title
        self._lines = lines

    def __repr__(self) -> str:
        width = max((len(name) for name, _ in self._lines), default=0)
        lines = [f"  {name:<{width}}  {', '.join(parts)}" for name, parts in self._lines]
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        left = 'style="text-align:left"'
        rows = (
            f"<tr><th {left}>{escape(name)}</th><td {left}>{'<br/>'.join(map(escape, parts))}</td></tr>"
            for name, parts in self._lines
        )
        return f"<table><caption {left}>{escape(self._title)}</caption>{''.join(rows)}</table>"


class Epochs:
    """Sums up the epochs of a query for its status."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._lock = threading.Lock()

    def done(self, report: EpochReport) -> None:
        """For foreachBatch, on its thread."""
        with self._lock:
            self._tracker.batch(report, 0)

    def status(self, query: RunningQuery, spark: Mapping[str, Any], running: int | None) -> QueryStatus:
        """What there is to say now; `running` is the epoch at work."""
        with self._lock:
            event = self._tracker.finished()
        return QueryStatus(spark, query, f"{query.name}: {_doing(query, spark, running)}", _lines(event))


def _lines(event: Finished) -> Lines:
    rows = [counted(event.batches, "epoch"), f"{counted(event.input_rows, 'row')} in", f"{event.output_rows:,} out"]
    waiting = [("waiting", [f"{counted(event.waiting, 'record')} for other sources"])] if event.waiting else []
    return [("done", rows), *summary_parts(event), *waiting]


def _doing(query: RunningQuery, spark: Mapping[str, Any], running: int | None) -> str:
    if not query.isActive:
        failure = query.exception()
        return "ended" if failure is None else f"failed: {str(failure).splitlines()[0]}"
    if running is not None:
        return f"epoch {running}"
    return "preparing the next epoch" if spark.get("isTriggerActive") else "waiting for new data"
