"""Runs an operator record by record between columns: it gets rows, and what it sends becomes columns.

For operators whose dependence on earlier records no array expression can compute: sessions, sliding windows, values
that are collected or taken back, rows that are held back. Guarantees: the operator sees its records in the order of
processing. Not for look-ups into other tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column, Schema
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, Old
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Give, Moments, turns
from vsc.runtime.operators.context import Context, RunOptions
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.tables.store import TableColumns, VersionedColumns
from vsc.runtime.records import Mask
from vsc.runtime.values import to_array, to_values

if TYPE_CHECKING:
    from vsc.runtime.operators.site import Site

__all__ = ["Loop", "LoopContext", "ResultTable", "Sent", "TableLoop", "columns_of", "there"]


class LoopContext(Context):
    """The context of an operator in a loop: `event` is the place of the record being processed."""

    __slots__ = ("event",)

    def __init__(self, failures: Failures) -> None:
        super().__init__(RunOptions(on_error=failures.on_error))
        self.metrics = failures.metrics
        self.event = 0


class Sent:
    """Collects what an operator sends, in order: a stream's records or a table's changes."""

    __slots__ = ("_context", "events", "kbs", "keys", "news", "olds", "times")

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self.events: list[int] = []
        self.kbs: list[bytes] = []
        self.keys: list[Row] = []
        self.news: list[Row | None] = []
        self.olds: list[Row | None] = []
        self.times: list[int] = []

    def stream(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        self.table(kb, key, value, None, True, time)

    def table(self, kb: bytes, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        self.events.append(self._context.event)
        self.kbs.append(kb)
        self.keys.append(key)
        self.news.append(new)
        self.olds.append(old)
        self.times.append(time)

    def flow(self, at: Moments, schema: Schema, space: KeySpace, give: Give | None, old: bool) -> Flow:
        """All of it. `at` are the moments of the input records; if `give` is None, each gives at most one record."""
        events = np.array(self.events, dtype=np.int64)
        moments = at.take(events)
        present = there(self.news)
        return Flow(
            moments if give is None else give(moments, turns(events)),
            space.encoded(self.kbs), space, np.array(self.times, dtype=np.int64), present,
            columns_of(self.keys, schema.key), columns_of(self.news, schema.value),
            Old(there(self.olds), columns_of(self.olds, schema.value)) if old else None,
        )  # fmt: skip


class Loop:
    """Feeds an operator. `before` is the schema of its input."""

    def __init__(self, before: Schema, context: LoopContext) -> None:
        self._before, self._context = before, context

    def records(self, flow: Flow, process: Callable[[bytes, Row, Row | None, int], None]) -> None:
        """Hands a stream's records to `process`."""
        context = self._context
        keys, values = self._rows(flow)
        rows = zip(_encoded(flow), keys, values, flow.time.tolist(), strict=True)
        for context.event, row in enumerate(rows):
            process(*row)

    def changes(self, flow: Flow, process: Callable[[bytes, Row, Row | None, Row | None, bool, int], None]) -> None:
        """Hands a table's changes to `process`."""
        context = self._context
        keys, values = self._rows(flow)
        olds: Sequence[Row | None] = [None] * len(flow)
        if flow.old is not None:
            olds = _rows(flow.old.values, self._before.value, flow.old.present)
        latest = [True] * len(flow) if flow.latest is None else flow.latest.tolist()
        rows = zip(_encoded(flow), keys, values, olds, latest, flow.time.tolist(), strict=True)
        for context.event, row in enumerate(rows):
            process(*row)

    def each(self, waiting: Sequence[tuple[int, Any]], release: Callable[[Any], None]) -> None:
        """Hands what has waited to `release`."""
        context = self._context
        for context.event, (_, one) in enumerate(waiting):
            release(one)

    def _rows(self, flow: Flow) -> tuple[Sequence[Row], Sequence[Row | None]]:
        everything = np.ones(len(flow), dtype=np.bool_)
        keys: Any = _rows(flow.keys, self._before.key, everything)
        return keys, _rows(flow.values, self._before.value, flow.present)


def _encoded(flow: Flow) -> list[bytes]:
    keys = flow.space.keys
    return [keys[number] for number in flow.key.tolist()]


def _rows(columns: Sequence[pa.Array], schema: Sequence[Column], present: Mask) -> Sequence[Row | None]:
    values = [to_values(column, c.type) for column, c in zip(columns, schema, strict=True)]
    rows: list[Row | None] = list(zip(*values, strict=True)) if values else [()] * len(present)
    for place in np.flatnonzero(~present).tolist():
        rows[place] = None
    return rows


def columns_of(rows: Sequence[Row | None], schema: Sequence[Column]) -> tuple[pa.Array, ...]:
    """The columns of rows; a missing row is null."""
    absent = (None,) * len(schema)
    columns = zip(*[absent if row is None else row for row in rows], strict=True) if rows else [()] * len(schema)
    return tuple(to_array(column, c.type) for column, c in zip(columns, schema, strict=True))


def there(rows: Sequence[Row | None]) -> Mask:
    """Where a row exists."""
    return np.fromiter((row is not None for row in rows), dtype=np.bool_, count=len(rows))


ASKED: Any = ("the row that the store held before",)
"""Stands for an old row that the result table will supply."""


class ResultTable:
    """The result table, as the operator sees it during the loop.

    A versioned table refuses what is older than its `floor`, or more than its `grace` behind stream time.
    """

    __slots__ = ("_sent", "floor", "gone", "grace", "stream_time", "versioned")

    def __init__(self, store: TableColumns, grace: int, sent: Sent) -> None:
        self.versioned = isinstance(store, VersionedColumns)
        self.stream_time, self.floor = -1, 0
        if isinstance(store, VersionedColumns):
            self.stream_time, self.floor = store.stream_time, store.floor
        self.grace = grace
        self._sent = sent

    def newest(self, kb: bytes) -> Row | None:
        """A stand-in for the row, which is looked up after the loop."""
        return ASKED  # type: ignore[no-any-return]

    def process(self, kb: bytes, key: Row, new: Row | None, old: Row | None, time: int) -> None:
        """Takes a change."""
        if time >= max(self.stream_time - self.grace, self.floor):
            self.stream_time = max(self.stream_time, time)
        self._sent.table(kb, key, new, old, True, time)


class TableLoop:
    """A loop over a node's input that makes the node's table, from all that the operator has sent.

    The operator sends to `put` if the table has a store, otherwise to `sent`.
    """

    def __init__(self, site: Site) -> None:
        self._site, self.context = site, LoopContext(site.failures)
        self.loop = Loop(site.inputs[0], self.context)
        self.sent = Sent(self.context)
        store, kept = site.table, site.node.store
        grace = 0 if kept is None else (kept.grace if kept.grace is not None else kept.retention) or 0
        self.put = None if store is None else ResultTable(store, grace, self.sent)

    def flow(self, at: Moments) -> Flow:
        """What was sent for the records at these moments."""
        sent, site = self.sent, self._site
        asked = np.fromiter((old is ASKED for old in sent.olds), dtype=np.bool_, count=len(sent.olds))
        sent.olds = [None if old is ASKED else old for old in sent.olds]
        give = site.give if site.routes.opens(site.node.name) else None
        return site.stored(sent.flow(at, site.node.schema, site.space, give, site.old), asked)
