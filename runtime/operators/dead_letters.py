"""The records that a stage loses: always counted, and kept as rows if a sink takes them.

One call, `Losses.lose`, does both, so what is counted is what is kept; `Losses.failed` decides what to do about a
failing expression. A row says at which node and why a record was lost, where it was read, and what it held. `Letters`
answers questions about a plan; `DEAD_LETTER` has a row's columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from vsc.plan.connectors import facts_of
from vsc.plan.nodes import (
    DEAD_LETTER,
    ROW_CHANGE,
    SPAN,
    VALIDITY,
    Column,
    DeadLetters,
    Node,
    Plan,
    Schema,
)
from vsc.plan.types import Field, StructType
from vsc.runtime.expressions.json_text import writer
from vsc.runtime.metrics import GRACE_NEEDED, Dropped, Metrics, Missed, group_of
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments, Routes, turns
from vsc.runtime.operators.columns.rows import rows_of
from vsc.runtime.operators.context import NodeFailure, expression_error
from vsc.runtime.records import Batch, Int64s, Mask, Order, Origin, sorted_places
from vsc.runtime.times import LAST
from vsc.runtime.values import to_array

__all__ = ["Letters", "Losses", "Lost", "Message", "json_rows", "letters_of"]

Message = Callable[[int], str]
"""More details about a lost record, by its place among the records lost together."""

_OUR_OWN = frozenset((*ROW_CHANGE, *VALIDITY, *SPAN))
"""Columns that say something about a change, not of the record."""

_EARLIEST = -62_135_596_800_000
"""The milliseconds of the years 1 to 9999, which every system accepts as timestamps."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Records that one node lost for one reason, and the dead-letter nodes that take them.

    `cause` are the places of the records' causes among the records that entered the stage, `at` their moments. If the
    cause is not a record's `own` source record, because the record has waited for another one, the place where it was
    read is no longer known. `source` is the only source that it can have come from, if only one is possible.
    """

    takers: tuple[str, ...]
    node: str
    reason: str
    cause: Int64s
    own: bool
    source: str | None
    time: Sequence[int | None]
    key: Sequence[str | None]
    value: Sequence[str | None]
    message: Sequence[str | None]
    raw: Sequence[str | None] | None = None
    at: Moments | None = None

    def __len__(self) -> int:
        return len(self.cause)


class Letters:
    """Which losses the dead letters of a plan take."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._asked = [(n.name, n.operation) for n in plan.dead_letters if isinstance(n.operation, DeadLetters)]
        self.takers = cache(self._takers)
        self.own = cache(self._own)
        self.source = cache(self._source)

    def _takers(self, why: type[Dropped | Missed], owner: str) -> tuple[str, ...]:
        """The nodes that take what the user's node `owner` drops or misses."""
        word = "dropped" if why is Dropped else "missed"
        return tuple(name for name, asked in self._asked if asked.lost == word and asked.of in (None, owner))

    def _own(self, name: str) -> bool:
        """Whether a record reaches node `name` at the moment of its source record: it has not waited on its way."""
        driving = [self._plan.node(read) for read in self._plan.node(name).driving]
        return all(not (node.waits or node.operation.watches) and self._own(node.name) for node in driving)

    def _source(self, name: str) -> str | None:
        """The source of all records that reach node `name`, if there is only one."""
        found = self._sources(self._plan.node(name))
        return min(found) if len(found) == 1 else None

    def _sources(self, node: Node) -> frozenset[str]:
        if not node.inputs:
            return frozenset([node.name])
        return frozenset().union(*(self._sources(self._plan.node(read)) for read in node.driving))

    def position(self, origin: Origin, offset: int) -> str | None:
        """Where a record was read, as JSON."""
        facts = facts_of(self._plan.node(origin.source).source.connector.kind)
        return json.dumps(facts.position(origin.part, offset), separators=(",", ":"))


class Losses:
    """The losses of one batch.

    A record on which an expression fails is one of them, if `on_error` says so. Failing records are a mask, not an
    exception: the other records of the batch go on. With ``fail`` the batch is computed to its end, then the first
    failure in the order of processing is raised; nothing has been written. The losses of nodes that are `repeated` are
    noted in another stage.
    """

    __slots__ = ("_first", "_letters", "_repeated", "_routes", "found", "metrics", "on_error")

    def __init__(
        self, letters: Letters, routes: Routes, on_error: Literal["drop", "fail"], repeated: frozenset[str]
    ) -> None:
        self._letters, self._routes, self.on_error, self._repeated = letters, routes, on_error, repeated
        self.metrics = Metrics()
        self.found: list[Lost] = []
        self._first: tuple[tuple[int, ...], NodeFailure] | None = None

    def takers(self, owner: str, why: Dropped | Missed, count: int) -> tuple[str, ...]:
        """Counts losses of the user's node `owner`; returns the nodes that take them."""
        self.metrics.count(owner, group_of(why), why, count)
        return self._letters.takers(type(why), owner) if count else ()

    def beside(self, node: Node, why: Dropped | Missed, count: int) -> None:
        """Counts something more about losses of `node` that have been noted."""
        if node.name not in self._repeated:
            self.metrics.count(node.owner, group_of(why), why, count)

    def late(self, node: Node, count: int, needed: int) -> None:
        """Counts versions that came too late for `node`, a join, for which it should have waited `needed` ms."""
        if node.name not in self._repeated:
            self.metrics.late(node.owner, count)
            self.metrics.peak(node.owner, GRACE_NEEDED, needed)

    def lose(
        self,
        node: Node,
        why: Dropped | Missed,
        flow: Flow,
        schema: Schema,
        rows: Mask | Int64s,
        message: Message | None = None,
        waited: bool = False,
        owner: str | None = None,
    ) -> None:
        """Notes the records of a flow at `rows` (a mask or places) as lost at `node`; `schema` names their columns.

        `message` has details for each of these places. `waited`: the flow's moments are not those of the records.
        `owner`: the node under which they are counted, if not `node`.
        """
        if node.name in self._repeated:
            return
        is_mask, owner = rows.dtype == np.bool_, owner or node.owner
        takers = self.takers(owner, why, int(np.count_nonzero(rows)) if is_mask else len(rows))
        if not takers:
            return
        places = np.flatnonzero(rows) if is_mask else rows.astype(np.int64, copy=False)
        count, chosen = len(places), pa.array(places)
        keys = [column.take(chosen) for column in flow.keys]
        pairs = zip(schema.value, flow.values, strict=True)
        shown = [(column, array.take(chosen)) for column, array in pairs if column not in _OUR_OWN]
        there, time = flow.present[places].tolist(), flow.time[places].tolist()
        value = [
            row if p else None
            for row, p in zip(
                json_rows([column for column, _ in shown], [array for _, array in shown], count), there, strict=True
            )
        ]
        key = json_rows(schema.key, keys, count) if schema.key else [None] * count
        told = [None if message is None else message(place) for place in range(count)]
        at, own = flow.at.take(places), not waited and self._letters.own(node.name)
        source = self._letters.source(node.name)
        cause = self._routes.cause(at)
        self.found.append(Lost(takers, owner, why.value, cause, own, source, time, key, value, told, at=at))

    def failed(self, node: Node, flow: Flow, schema: Schema, failed: Failed, waited: bool = False) -> Mask:
        """Notes the failures of a flow's records at `node`; returns which are left. For the rest see `lose`."""
        kept = np.ones(len(flow), dtype=np.bool_)
        if not failed:
            return kept
        kept[list(failed)] = False
        if self.on_error == "drop":
            for owner in dict.fromkeys(failure.node for failure in failed.values()):
                # the failure of a look-up belongs to the table that it goes through
                self._drop(node, flow, schema, {r: f for r, f in failed.items() if f.node == owner}, waited, owner)
            return kept
        for row, failure in failed.items():
            moment = tuple(int(level[row]) for level in flow.at.levels)
            if self._first is None or moment < self._first[0]:
                self._first = moment, failure
        return kept

    def _drop(self, node: Node, flow: Flow, schema: Schema, failed: Failed, waited: bool, owner: str) -> None:
        rows, every = np.array(list(failed), dtype=np.int64), list(failed.values())
        why = Dropped.EXPRESSION_FAILED
        self.lose(node, why, flow, schema, rows, lambda place: every[place].told, waited, owner)

    def check(self, origins: tuple[Origin, ...], order: Order) -> None:
        """Raises ExpressionError for the first failure that is not counted as a loss."""
        if self._first is not None:
            moment, failure = self._first
            cause = int(self._routes.cause(Moments((np.array(moment[:1]),)))[0])
            raise expression_error(failure, origins[int(order.origin[cause])], int(order.offset[cause]))


def json_rows(columns: Sequence[Column], arrays: Sequence[pa.Array], count: int) -> list[str | None]:
    """Rows as JSON objects, as `to_json` writes them, but with all digits of their times."""
    write = writer(StructType(tuple(Field(c.name, c.type) for c in columns)), exact=True)
    return [write(row) for row in rows_of(arrays, columns, count)]


Placed = Callable[[Lost], tuple[Order, Int64s]]
"""The places of lost records in the order of records, and for each a number of its cause."""


def letters_of(
    letters: Letters, found: Sequence[Lost], origins: tuple[Origin, ...], placed: Placed
) -> tuple[tuple[str, Batch], ...]:
    """The rows of lost records, by the node that takes them, in the order of their causes."""
    takers = dict.fromkeys(name for lost in found for name in lost.takers)
    return tuple(
        (name, _batch(letters, [lost for lost in found if name in lost.takers], origins, placed)) for name in takers
    )


def _batch(letters: Letters, found: Sequence[Lost], origins: tuple[Origin, ...], placed: Placed) -> Batch:
    orders, causes = zip(*map(placed, found), strict=True)
    order, cause = Order.concat(orders), np.concatenate(causes)
    rows = sorted_places(order)
    cause, at = cause[rows], order.take(rows)
    own: list[bool] = _spread([[lost.own] * len(lost) for lost in found], rows)
    read = [origins[number] for number in at.origin.tolist()]
    positions = [
        letters.position(origin, offset) if mine else None
        for origin, offset, mine in zip(read, at.offset.tolist(), own, strict=True)
    ]
    known = _spread([[lost.source] * len(lost) for lost in found], rows)
    sources = [origin.source if mine else source for origin, source, mine in zip(read, known, own, strict=True)]
    time = [_year(t) for t in _spread([lost.time for lost in found], rows)]
    columns: dict[str, list[Any]] = {
        "node": _spread([[lost.node] * len(lost) for lost in found], rows),
        "reason": _spread([[lost.reason] * len(lost) for lost in found], rows),
        "source": sources,
        "position": positions,
        "event_time": [None if t is None else t * 1000 for t in time],
        "key": _spread([lost.key for lost in found], rows),
        "value": _spread([lost.value for lost in found], rows),
        "raw": _spread([lost.raw or [None] * len(lost) for lost in found], rows),
        "message": _spread([lost.message for lost in found], rows),
    }
    stamps = np.array([max(t or 0, 0) for t in time], dtype=np.int64)
    values = tuple(to_array(columns[c.name], c.type) for c in DEAD_LETTER.value)
    there = np.ones(len(cause), dtype=np.bool_)
    return Batch(DEAD_LETTER, origins, at.extended(turns(cause)), stamps, there, (), values)


def _year(time: int | None) -> int | None:
    """The time, if it lies in the years 1 to 9999."""
    return time if time is not None and _EARLIEST <= time <= LAST else None


def _spread(parts: Sequence[Sequence[Any]], rows: Int64s) -> list[Any]:
    """The values of all parts, at these places."""
    every = [value for part in parts for value in part]
    return [every[row] for row in rows.tolist()]
