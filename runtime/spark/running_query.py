"""A query in a user's session. Its failure is reported in vsc's words, which Spark's message buries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.captured import StreamingQueryException as CapturedException
from pyspark.sql.streaming.query import StreamingQuery

from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.status import QueryStatus

__all__ = ["QueryFailedError", "RunningQuery"]


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
