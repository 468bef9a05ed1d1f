"""Plans written by hand (no compiler), records for them, and both engines side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.compiler.lower.handing import completed
from vsc.plan.expressions import Call, Cast, Expr, Literal
from vsc.plan.expressions import Column as Ref
from vsc.plan.nodes import (
    Aggregate,
    AggregateCall,
    Column,
    Connector,
    Filter,
    Item,
    Map,
    Materialize,
    Node,
    Operation,
    Plan,
    Rekey,
    Schema,
    Source,
    Stage,
    StageInput,
    Status,
    Store,
    StreamTableJoin,
    TableTableJoin,
    ToStream,
    ToTable,
    Window,
)
from vsc.plan.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, DecimalType
from vsc.runtime.records import Batch, Metrics, Order, Origin
from vsc.runtime.values import to_array, to_values

KEY = Column("k", STRING)
ROW = Schema((KEY,), (Column("v", BIGINT), Column("s", STRING)))
V, S = Ref(0, "v", BIGINT), Ref(0, "s", STRING)


def item(name: str, expr: Expr) -> Item:
    return Item(name, expr, name)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


V_ABOVE_2 = item("p", Call("gt", (V, number(2)), BOOLEAN))
V_IS_ODD = item("p", Call("eq", (Call("modulo", (V, number(2)), BIGINT), number(1)), BOOLEAN))
V_IS_4 = item("p", Call("eq", (V, number(4)), BOOLEAN))
NEXT = (item("v", Call("add", (V, number(1)), BIGINT)), item("s", S))


DECIMAL = DecimalType(10, 2)
THIRD = Call("divide", (Cast(V, DOUBLE), Literal(3.0, DOUBLE)), DOUBLE)
CALLS = (
    AggregateCall("count", (), False, BIGINT, "count(*)"),
    AggregateCall("count", (S,), False, BIGINT, "count(s)"),
    AggregateCall("sum", (V,), False, BIGINT, "sum(v)"),
    AggregateCall("avg", (V,), False, DOUBLE, "avg(v)"),
    AggregateCall("sum", (THIRD,), False, DOUBLE, "sum(v / 3)"),
    AggregateCall("avg", (THIRD,), False, DOUBLE, "avg(v / 3)"),
    AggregateCall("sum", (Cast(V, DECIMAL),), False, DecimalType(20, 2), "sum(decimal)"),
    AggregateCall("avg", (Cast(V, DECIMAL),), False, DecimalType(14, 6), "avg(decimal)"),
    AggregateCall("min", (V,), False, BIGINT, "min(v)"),
    AggregateCall("max", (S,), False, STRING, "max(s)"),
    AggregateCall("min_by", (S, V), False, STRING, "min_by(s, v)"),
    AggregateCall("max_by", (V, S), False, BIGINT, "max_by(v, s)"),
    AggregateCall("first", (V,), False, BIGINT, "first(v)"),
    AggregateCall("last", (S,), False, STRING, "last(s)"),
)
"""All that can be computed on whole columns."""


@dataclass
class Builder:
    """Collects nodes; stage 0 holds the sources, stage 1 the rest."""

    nodes: list[Node] = field(default_factory=list)

    def add(
        self, name: str, kind: Any, operation: Operation, inputs: Sequence[str], schema: Schema = ROW,
        store: Store | None = None,
    ) -> str:  # fmt: skip
        status = None
        if kind == "table":
            versioned = store.kind == "versioned" if store else any(self._versioned(i) for i in inputs)
            status = Status(versioned, "by hand", name)
        self.nodes.append(Node(name, kind, schema, operation, tuple(inputs), len(self.nodes) + 1, store, status))
        return name

    def _versioned(self, name: str) -> bool:
        status = next(n for n in self.nodes if n.name == name).status
        return status is not None and status.versioned

    def source(self, name: str, kind: Any, store: Store | None = None) -> str:
        rank = sum(isinstance(n.operation, Source) for n in self.nodes)
        source = Source(Connector("memory"), ROW.key + ROW.value, None, None, rank)
        return self.add(name, kind, source, (), ROW, store)

    def join(self, name: str, stream: str, table: str, left: bool, as_of: bool) -> str:
        """The stream's v plus the table's, both texts, and when the table's row became valid."""
        partner = Ref(1, "v", BIGINT)
        total = Call("add", (V, partner), BIGINT)
        items = (
            item("v", total), item("s", S), item("other", Ref(1, "s", STRING)), item("their_key", Ref(1, "k", STRING)),
            item("since", Call("event_time", (Literal(1, BIGINT),), TIMESTAMP)),
        )  # fmt: skip
        schema = Schema((KEY,), tuple(Column(i.name, i.expr.type) for i in items))
        return self.add(name, "stream", StreamTableJoin(left, as_of, None, items), (stream, table), schema)

    def table_join(self, name: str, mode: Any, left: str, right: str, store: Store | None = None) -> str:
        """The sum of both sides' v, or the v of the one that is there; the right one's text, or the left one's key."""
        ours, theirs = V, Ref(1, "v", BIGINT)
        total = Call("coalesce", (Call("add", (ours, theirs), BIGINT), ours, theirs), BIGINT)
        text = Call("coalesce", (Ref(1, "s", STRING), Ref(0, "k", STRING)), STRING)
        items = (item("v", total), item("s", text))
        operation = TableTableJoin(mode, self._versioned(left), self._versioned(right), items)
        self.add(name, "table", operation, (left, right), ROW, store)
        node = self.nodes[-1]
        if store is None:
            self.nodes[-1] = replace(node, status=Status(False, "by hand", name))
        return name

    def aggregate(
        self, name: str, read: str, window: Window | None = None, final: bool = False,
        calls: Sequence[AggregateCall] = CALLS, items: Sequence[Item] | None = None, store: Store | None = None,
    ) -> str:  # fmt: skip
        """The calls as columns c0, c1, ..., unless other `items` are made of them."""
        results = [Ref(0, f"#{i}", call.type) for i, call in enumerate(calls)]
        items = items or [item(f"c{i}", result) for i, result in enumerate(results)]
        bounds = () if window is None else (Column("window_start", TIMESTAMP), Column("window_end", TIMESTAMP))
        schema = Schema((KEY, *bounds), tuple(Column(i.name, i.expr.type) for i in items))
        row = next(n.schema for n in self.nodes if n.name == read)
        operation = Aggregate("stream", row, tuple(calls), tuple(items), window, final)
        return self.add(name, "table", operation, [read], schema, store or unversioned(name))

    def plan(self) -> Plan:
        names = [n.name for n in self.nodes]
        sources = [n.name for n in self.nodes if isinstance(n.operation, Source)]
        stored = [n.name for n in self.nodes if n.name not in sources or n.kind == "table"]
        streams = tuple(name for name in sources if name not in stored)
        stages: tuple[Stage, ...] = (
            Stage(0, tuple(sources), (), streams),
            Stage(1, tuple(stored), tuple(StageInput(s) for s in sources), tuple(stored)),
        )
        assert len(names) == len(set(names))
        nodes, stages = completed(self.nodes, stages, ())
        return Plan("by_hand", nodes, (), stages)


def versioned(name: str, retention: int, grace: int | None = None) -> Store:
    return Store(name, "versioned", retention, retention if grace is None else grace, 2)


def unversioned(name: str) -> Store:
    return Store(name, "unversioned")


def joins(retention: int, grace: int) -> Plan:
    """Joins in a row, with filters and maps on the stream between them."""
    b = Builder()
    b.source("t", "table", versioned("t", retention, grace))
    b.source("u", "table", unversioned("u"))
    b.source("s", "stream")
    b.add("high", "stream", Filter(V_ABOVE_2), ["s"])
    b.add("more", "stream", Map(NEXT), ["s"])
    b.join("as_of_left", "s", "t", left=True, as_of=True)
    b.join("as_of_inner", "more", "t", left=False, as_of=True)
    b.join("newest", "high", "t", left=True, as_of=False)
    b.join("unversioned", "as_of_left", "u", left=False, as_of=False)
    items = (item("o", S),)
    rekeyed = Schema((Column("o", STRING),), (Column("k", STRING), Column("v", BIGINT), Column("s", STRING)))
    b.add("rekeyed", "stream", Rekey(items), ["more"], rekeyed)
    return b.plan()


def tables(retention: int, grace: int) -> Plan:
    """Tables of all kinds, read through filters and maps."""
    b = Builder()
    b.source("t", "table", versioned("t", retention, grace))
    b.source("u", "table", unversioned("u"))
    b.source("p", "stream")
    b.source("s", "stream")
    b.add("t_next", "table", Map(NEXT), ["t"])
    b.add("t_high", "table", Filter(V_ABOVE_2), ["t_next"])
    b.add("t_kept", "table", Materialize(), ["t_high"], store=versioned("t_kept", 2 * retention, 0))
    b.add("t_last", "table", Materialize(), ["t"], store=unversioned("t_last"))
    b.add("u_high", "table", Filter(V_ABOVE_2), ["u"])
    b.add("u_next", "table", Map(NEXT), ["u"])
    b.add("u_next_high", "table", Filter(V_ABOVE_2), ["u_next"])
    b.add("u_own", "table", Filter(V_ABOVE_2), ["u"], store=unversioned("u_own"))
    b.add("u_own_next", "table", Map(NEXT), ["u_own"], store=unversioned("u_own_next"))
    b.add("q", "table", ToTable(V_IS_4), ["p"], store=versioned("q", retention, grace))
    b.add("q_last", "table", ToTable(None), ["p"], store=unversioned("q_last"))
    b.add("loose", "table", ToTable(V_IS_4), ["p"])
    b.add("loose_high", "table", Filter(V_ABOVE_2), ["loose"])
    for table, as_of in {"t_high": True, "t_kept": True, "t_last": False, "u_next_high": False, "u_own": False}.items():
        b.join(f"s_{table}", "s", table, left=True, as_of=as_of)
    b.join("s_q", "s", "q", left=False, as_of=True)
    b.join("s_q_last", "s", "q_last", left=True, as_of=False)
    return b.plan()


def table_joins(retention: int, grace: int) -> Plan:
    """Joins of tables of all modes, with and without a store, over stores, filters, maps and other joins."""
    b = Builder()
    b.source("t", "table", versioned("t", retention, grace))
    b.source("u", "table", unversioned("u"))
    b.source("w", "table", versioned("w", 2 * retention, retention))
    b.source("s", "stream")
    b.add("t_next", "table", Map(NEXT), ["t"])
    b.add("t_own", "table", Filter(V_ABOVE_2), ["t_next"], store=versioned("t_own", retention, grace))
    b.add("u_high", "table", Filter(V_ABOVE_2), ["u"])
    b.table_join("inner_tu", "inner", "t", "u")
    b.table_join("left_tu", "left", "t_next", "u_high", unversioned("left_tu"))
    b.table_join("left_ut", "left", "u", "t_next", versioned("left_ut", retention, grace))
    b.table_join("outer_tu", "outer", "t_own", "u")
    b.table_join("outer_ut", "outer", "u_high", "t_own", versioned("outer_ut", retention, 0))
    b.table_join("again", "left", "inner_tu", "w")
    b.table_join("outer_again", "outer", "w", "outer_tu", unversioned("outer_again"))
    b.table_join("of_stored", "outer", "left_ut", "w")
    b.add("high_again", "table", Filter(V_ABOVE_2), ["outer_tu"])
    b.table_join("of_filtered", "inner", "high_again", "w")
    b.add("kept", "table", Materialize(), ["of_stored"], store=versioned("kept", retention, grace))
    b.join("s_outer", "s", "outer_ut", left=True, as_of=True)
    b.join("s_left", "s", "left_tu", left=False, as_of=False)
    return b.plan()


COUNT_AND_LAST = (item("v", Ref(0, "#0", BIGINT)), item("s", Ref(0, "#13", STRING)))
EVENT_TIME = Call("event_time", (Literal(0, BIGINT),), TIMESTAMP)


def groups(retention: int, grace: int) -> Plan:
    """Aggregates without window, with and without a store, and what reads them."""
    b = Builder()
    b.source("t", "table", versioned("t", retention, grace))
    b.source("s", "stream")
    b.add("high", "stream", Filter(V_ABOVE_2), ["s"])
    b.aggregate("every", "s")
    b.aggregate("some", "high", items=COUNT_AND_LAST)
    b.add("some_odd", "table", Filter(V_IS_ODD), ["some"])
    b.add("some_stored", "table", Filter(V_ABOVE_2), ["some_odd"], store=unversioned("some_stored"))
    b.aggregate("kept", "high", items=COUNT_AND_LAST, store=unversioned("kept"))
    b.add("kept_odd", "table", Filter(V_IS_ODD), ["kept"])
    b.add("kept_next", "table", Map(NEXT), ["kept_odd"])
    b.table_join("with_t", "outer", "kept_next", "t")
    since = item("since", EVENT_TIME)
    b.aggregate("timed", "s", calls=CALLS[:3], items=[item("c", Ref(0, "#2", BIGINT)), since])
    b.add("as_stream", "stream", ToStream(), ["with_t"])
    b.aggregate("again", "as_stream", calls=CALLS[2:5])
    return b.plan()


def windows(size: int, grace: int) -> Plan:
    """Tumbling and hopping windows, their changes and their final results, and what reads them."""
    b = Builder()
    b.source("s", "stream")
    b.source("p", "stream")
    b.add("high", "stream", Filter(V_ABOVE_2), ["s"])
    tumbling = Window("tumbling", size + 1, size + 1, grace)
    hopping = Window("hopping", 2 * size + 3, size + 1, grace)
    bounds = Schema((KEY, Column("window_start", TIMESTAMP), Column("window_end", TIMESTAMP)), ROW.value)
    b.aggregate("each", "s", tumbling)
    b.aggregate("each_final", "s", tumbling, final=True)
    b.aggregate("each_kept", "s", tumbling, items=COUNT_AND_LAST, store=unversioned("each_kept"))
    b.add("each_odd", "table", Filter(V_IS_ODD), ["each_kept"], bounds)  # asks for the rows before
    b.aggregate("final_kept", "s", tumbling, final=True, items=COUNT_AND_LAST, store=unversioned("final_kept"))
    b.aggregate("hops_kept", "p", hopping, items=COUNT_AND_LAST, store=unversioned("hops_kept"))
    b.add("hops_kept_odd", "table", Filter(V_IS_ODD), ["hops_kept"], bounds)
    b.aggregate("hops_final_kept", "p", hopping, final=True, calls=CALLS[:1], store=unversioned("hops_final_kept"))
    b.aggregate("some_final", "high", tumbling, final=True, items=COUNT_AND_LAST)
    b.add("some_next", "table", Map(NEXT), ["some_final"], bounds)
    b.add("some_high", "table", Filter(V_ABOVE_2), ["some_next"], bounds)
    b.add("some_stream", "stream", ToStream(), ["some_final"], bounds)
    ended = Schema((Column("ended", TIMESTAMP),), (KEY, Column("window_start", TIMESTAMP), *ROW.value))
    end = item("ended", Ref(0, "window_end", TIMESTAMP))
    b.add("by_end", "stream", Rekey((end,)), ["some_stream"], ended)
    b.aggregate("hops", "p", hopping)
    b.aggregate("hops_high", "p", hopping, items=COUNT_AND_LAST)
    b.add("hops_next", "table", Map(NEXT), ["hops_high"], bounds)
    b.aggregate("hops_final", "p", hopping, final=True, calls=CALLS[:2], items=[
        item("since", EVENT_TIME), item("c", Ref(0, "#0", BIGINT)),
    ])  # fmt: skip
    return b.plan()


Record = tuple[str, str, int, tuple[int | None, str | None] | None]
"""Node, key, event time, row or None."""


def batches(records: Sequence[tuple[int, Record]], shuffle: Any) -> list[tuple[str, Batch]]:
    """The records (with their places in the whole sequence) as batches: per node one or two, rows in any order."""
    found = []
    for node in sorted({record[0] for _, record in records}):
        own = [(place, record) for place, record in records if record[0] == node]
        shuffle.shuffle(own)
        half = shuffle.randrange(len(own) + 1)
        found += [(node, _batch(node, part)) for part in (own[:half], own[half:]) if part]
    shuffle.shuffle(found)
    return found


def _batch(node: str, own: Sequence[tuple[int, Record]]) -> Batch:
    places = np.array([place for place, _ in own], dtype=np.int64)
    rows = [record[3] or (None, None) for _, record in own]
    order = Order(places // 3, (places % 2).astype(np.int32), places, np.zeros((len(own), 1), dtype=np.int64))
    values = tuple(to_array(list(column), c.type) for column, c in zip(zip(*rows, strict=True), ROW.value, strict=True))
    return Batch(
        ROW, (Origin("x", 0, "0"), Origin("x", 0, "0")), order,
        np.array([r[2] for _, r in own], dtype=np.int64), np.array([r[3] is not None for _, r in own]),
        (pa.array([r[1] for _, r in own]),), values,
    )  # fmt: skip


def collected(results: Sequence[Any]) -> tuple[dict[str, list[Any]], Metrics]:
    """Everything that several calls handed out, by node and in order, as Python values; and their metrics."""
    found: dict[str, list[Any]] = {}
    metrics = Metrics()
    for result in results:
        metrics.merge(result.metrics)
        for name, batch in result.batches:
            if len(batch):
                found.setdefault(name, []).extend(_rows(batch))
    return found, metrics


def _rows(batch: Batch) -> list[Any]:
    schema = batch.schema
    columns = [to_values(c, t.type) for c, t in zip(batch.columns, schema.key + schema.value, strict=True)]
    order = batch.order
    return list(
        zip(
            order.time.tolist(), order.offset.tolist(), order.path.tolist(), batch.timestamps.tolist(),
            batch.present.tolist(), zip(*columns, strict=True), strict=True,
        )
    )  # fmt: skip


def meeting(retention: int, grace: int) -> Plan:
    """Joins whose sides come from the same records: of a table with its stream, and of one table twice."""
    b = Builder()
    b.source("s", "stream")
    b.add("own", "table", ToTable(None), ["s"], store=versioned("own", retention, grace))
    b.join("joined", "s", "own", left=True, as_of=True)
    b.source("t", "table", versioned("t", retention, grace))
    b.source("u", "table", unversioned("u"))
    b.table_join("both", "left", "t", "u")
    b.table_join("again", "outer", "both", "u")
    b.table_join("kept", "inner", "u", "both", store=unversioned("kept"))
    return b.plan()
