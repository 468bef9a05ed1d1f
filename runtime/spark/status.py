"""What a running query says of itself when it is asked: Spark's status, shown as a table of what matters.

Guarantees: a status is of the moment in which it was asked for. Not for the progress of ``vsc run``: see `displays`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from vsc.plan.words import counted
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.progress import Finished, Tracker
from vsc.runtime.spark.progress_text import summary_parts

if TYPE_CHECKING:
    from vsc.runtime.spark.running_query import RunningQuery

__all__ = ["Epochs", "QueryStatus"]

Lines = Sequence[tuple[str, Sequence[str]]]


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
    rows = [counted(event.batches, "batch"), f"{counted(event.input_rows, 'row')} in", f"{event.output_rows:,} out"]
    waiting = [("waiting", [f"{counted(event.waiting, 'record')} for other sources"])] if event.waiting else []
    return [("done", rows), *summary_parts(event), *waiting]


def _doing(query: RunningQuery, spark: Mapping[str, Any], running: int | None) -> str:
    if not query.isActive:
        failure = query.exception()
        return "ended" if failure is None else f"failed: {str(failure).splitlines()[0]}"
    if running is not None:
        return f"batch {running}"
    return "preparing the next batch" if spark.get("isTriggerActive") else "waiting for new data"
