"""What Spark SQL computes of stage 0 in a plan with state, before a row reaches Python: a source's *prefix*.

These are the filters, maps, re-keys and merges behind a source. An expression that fails has to be told with its
record, and Spark would fail a whole query with it; so Spark computes forms that cannot fail (`tried`), and a row on
which that is not enough is *in doubt*: it goes to Python with what it was read with, and is computed there. Where there
is no such form, Python computes the node and what is behind it, as it does with an `explode`, which makes several
records of one row.

Every row still goes to Python, which needs its event time for D12's order, and counts what is dropped. But with a row
that no node keeps nothing else goes, nor does a column that nobody reads: Spark does not even take it out of the file.

A prefix depends on the plan alone. It is text: see `vsc.runtime.spark.sql_nodes.prefixed` for who makes a frame of it,
and `vsc.runtime.spark.prefix_rows` for who makes records of the frame's rows. The decision is `docs/decisions/0011`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Filter, Item, Map, Merge, Node, Plan, Rekey, Schema, Source
from vsc.plan.types import TIMESTAMP, DataType, ScalarType
from vsc.runtime.expressions import EVENT_TIME, Tried, columns_of, spark_sql, tried
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.layout import consumers, hands_out
from vsc.runtime.operators.merge import value_order
from vsc.runtime.operators.rekey import kept_columns

__all__ = ["AT", "DOUBT", "PLACE", "REASONS", "UNTIMED", "VALUED", "Given", "Prefix", "prefix_of", "source_column"]

AT = "_vsc_at"
"""Column: the event time in ms; null for a row that cannot be used."""

PLACE = "_vsc_place"
"""Column: the event time in ms; for a row that cannot be used -1 - its reason's place in `REASONS`, for one whose event
time Python has to compute `UNTIMED`."""

REASONS = (Dropped.UNREADABLE, Dropped.NULL_KEY, Dropped.NULL_TIMESTAMP, Dropped.NEGATIVE_TIMESTAMP)
"""Why a row cannot be used; the first that holds counts."""

UNTIMED = -1 - len(REASONS)

DOUBT = "_vsc_doubt"
"""Column: whether Python has to compute the row. It is there if that can be."""

VALUED = frozenset({"files", "rate"})
"""Connectors whose stream records always have a value: for one without, SQL would not mean the same (D14)."""

Computed = tuple[str, str]
"""A column's name, and what it is, as Spark SQL."""

_MOST = (2**63 - 1) // 1000
"""The highest event time, in ms, that a timestamp can hold."""


@dataclass(frozen=True, slots=True)
class Given:
    """A node whose records come out of the prefix: `columns` are its key and value columns, `kept` says which rows
    have a record (None: all that can be used)."""

    node: str
    columns: tuple[str, ...]
    kept: str | None


@dataclass(frozen=True, slots=True)
class Prefix:
    """What Spark SQL computes behind a source.

    `nodes` are those that Python has no more to compute; of them (and the source) `given` are those that it gets to
    see. `time` is the timestamp clause, if there is one, as `tried`. `steps` are columns to add, each step to the frame
    of the one before; then `columns` are all that is handed on beside `PLACE`. `re_keyed`: nodes, each with the columns
    that say which rows have a record of it, and of the node before it (None: all that can be used). `carried` are the
    places of the declared columns that a row in doubt goes on with; None if no row can be.
    """

    nodes: frozenset[str]
    time: Tried | None
    steps: tuple[tuple[Computed, ...], ...]
    columns: tuple[Computed, ...]
    given: tuple[Given, ...]
    re_keyed: tuple[tuple[str, str, str | None], ...]
    carried: tuple[int, ...] | None


def source_column(place: int) -> str:
    """What a declared column of the source is called in a prefix, by its place: users' names may hold anything."""
    return f"_vsc_column_{place}"


def prefix_of(plan: Plan, source: str) -> Prefix | None:
    """The prefix of source node `source`; None if there is nothing to compute."""
    node = plan.node(source)
    operation = node.operation
    assert isinstance(operation, Source)
    if node.kind != "stream" or operation.connector.kind not in VALUED:
        return None
    time = None if operation.timestamp is None else tried(operation.timestamp.expr)
    if time is None and operation.timestamp is not None:
        return None
    made = _Made(plan, node, operation, time)
    for name in plan.stages[0].nodes:
        made.add(plan.node(name))
    return made.prefix() if len(made.records) > 1 else None


@dataclass(frozen=True, slots=True)
class _Records:
    """The records of a node: its columns, and which rows have one, as columns of the frame."""

    columns: tuple[str, ...]
    kept: str | None


@dataclass
class _Made:
    """A prefix that is being put together, node by node."""

    plan: Plan
    source: Node
    operation: Source
    time: Tried | None
    records: dict[str, _Records] = field(default_factory=dict)
    steps: list[tuple[Computed, ...]] = field(default_factory=list)
    re_keyed: list[tuple[str, str, str | None]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        declared = [c.name for c in self.operation.columns]
        schema = self.source.schema
        columns = tuple(source_column(declared.index(c.name)) for c in (*schema.key, *schema.value))
        self.records[self.source.name] = _Records(columns, None)

    def add(self, node: Node) -> None:
        """Takes in a node whose input has been taken in, if Spark SQL can compute it."""
        # One input at most: a merge in which two ways from one source meet again is in a later stage.
        name = next((name for name in node.inputs if name in self.records), None)
        if name is None or any(tried(expr) is None for expr in _expressions(node)):
            return
        schema, before = self.plan.node(name).schema, self.records[name]
        key, value = before.columns[: len(schema.key)], before.columns[len(schema.key) :]
        match node.operation:
            case Filter(predicate):
                found = self._filtered(before, self._text(predicate.expr, schema, before))
            case Map(items):
                found = _Records(key + self._items(items, schema, before), before.kept)
            case Rekey(items):
                kept = tuple(before.columns[i] for i in kept_columns(schema, node.schema))
                found = self._rekeyed(node.name, self._items(items, schema, before), kept, before.kept)
            case Merge():
                found = _Records(key + tuple(value[i] for i in value_order(schema, node.schema)), before.kept)
            case _:
                return
        self.records[node.name] = found

    def prefix(self) -> Prefix:
        """What has been taken in; of the nodes only those that somebody reads."""
        seen = [name for name in self.records if self._is_seen(name)]
        given = tuple(Given(name, self.records[name].columns, self.records[name].kept) for name in seen)
        readers: dict[tuple[str, DataType], list[str | None]] = {}
        for one in given:
            schema = self.plan.node(one.node).schema
            for name, column in zip(one.columns, (*schema.key, *schema.value), strict=True):
                readers.setdefault((name, column.type), []).append(one.kept)
        flags = {one.kept for one in given} | {flag for _, *both in self.re_keyed for flag in both}
        steps, carried = list(self.steps), None
        conditions = list(dict.fromkeys(self.doubts))
        if self.time is not None and self.time.doubts:
            conditions.insert(0, f"{PLACE} = {UNTIMED}")
        if conditions:
            steps.append(((DOUBT, f"coalesce({' OR '.join(conditions)}, false)"),))
            flags.add(DOUBT)
            carried = self._carried(steps, [name for name, _ in readers])
            for place in carried:
                readers.setdefault((source_column(place), self.operation.columns[place].type), []).append(DOUBT)
        columns = [(flag, flag) for flag in sorted(flag for flag in flags if flag is not None)]
        columns += [(name, _where(kept, name) if _is_wide(type_) else name) for (name, type_), kept in readers.items()]
        nodes = frozenset(self.records) - {self.source.name}
        return Prefix(nodes, self.time, tuple(steps), tuple(columns), given, tuple(self.re_keyed), carried)

    def _is_seen(self, name: str) -> bool:
        stage = self.plan.stages[0]
        sinks = {sink.node for sink in self.plan.sinks}
        left = any(node.name not in self.records for node in consumers(self.plan, stage, name))
        return left or name in hands_out(self.plan, stage, sinks)

    def _filtered(self, before: _Records, predicate: str) -> _Records:
        (kept,) = self._step([_both(before.kept, f"coalesce({predicate}, false)")])
        return _Records(before.columns, kept)

    def _rekeyed(self, name: str, key: tuple[str, ...], value: tuple[str, ...], before: str | None) -> _Records:
        (kept,) = self._step([_both(before, " AND ".join(f"{column} IS NOT NULL" for column in key))])
        self.re_keyed.append((name, kept, before))
        return _Records(key + value, kept)

    def _items(self, items: tuple[Item, ...], schema: Schema, before: _Records) -> tuple[str, ...]:
        """The columns of `items`; one that is a column of the node before is that column."""
        texts = [self._text(item.expr, schema, before) for item in items]
        new = dict.fromkeys(text for text in texts if text not in before.columns)
        names = dict(zip(new, self._step(list(new)), strict=True))
        return tuple(names.get(text, text) for text in texts)

    def _step(self, texts: list[str]) -> tuple[str, ...]:
        """New columns of the frame, one for each of `texts`."""
        named = tuple((f"_vsc_step_{len(self.steps)}_{i}", text) for i, text in enumerate(texts))
        if named:
            self.steps.append(named)
        return tuple(name for name, _ in named)

    def _text(self, expr: Expr, schema: Schema, before: _Records) -> str:
        """The SQL of `expr`, which `tried` has a form of; notes where it is in doubt."""
        names = [c.name for c in (*schema.key, *schema.value)]
        found = tried(expr)
        assert found is not None

        def name(column: ColumnExpr) -> str:
            if column.name != EVENT_TIME:
                return before.columns[names.index(column.name)]
            if self._is_number:
                self._doubt(before, f"{AT} > {_MOST}")
            return f"timestamp_micros(try_multiply({AT}, 1000))"

        for doubt in found.doubts:
            self._doubt(before, spark_sql(doubt, name))
        return spark_sql(found.expr, name)

    def _doubt(self, before: _Records, condition: str) -> None:
        self.doubts.append(f"({_both(before.kept, f'{PLACE} >= 0 AND ({condition})')})")

    @property
    def _is_number(self) -> bool:
        """Whether an event time may be more than a timestamp can hold."""
        clause = self.operation.timestamp
        return clause is not None and clause.expr.type != TIMESTAMP

    def _carried(self, steps: list[tuple[Computed, ...]], read: Iterable[str]) -> tuple[int, ...]:
        """The declared columns that stage 0 reads: its key, its time, and what its nodes compute or hand out."""
        declared = self.operation.columns
        named = {c.name for c in self.source.schema.key}
        if self.operation.timestamp is not None:
            named |= {c.name for c in columns_of(self.operation.timestamp.expr)}
        texts = [*read, *(text for step in steps for _, text in step)]
        used = set(re.findall(r"\w+", " ".join(texts)))
        return tuple(i for i, c in enumerate(declared) if c.name in named or source_column(i) in used)


def _expressions(node: Node) -> Iterator[Expr]:
    match node.operation:
        case Filter(predicate):
            yield predicate.expr
        case Map(items) | Rekey(items):
            yield from (item.expr for item in items)


def _both(kept: str | None, condition: str) -> str:
    return condition if kept is None else f"{kept} AND {condition}"


def _is_wide(type_: DataType) -> bool:
    """Whether a null takes less time on its way than a value: what has a fixed width takes its place anyway."""
    return not isinstance(type_, ScalarType) or type_.name in ("string", "binary")


def _where(kept: list[str | None], column: str) -> str:
    """`column` in the rows of which one of `kept` is true, else null: what nobody reads need not be carried."""
    conditions = [name for name in dict.fromkeys(kept) if name is not None]
    return column if None in kept else f"CASE WHEN {' OR '.join(conditions)} THEN {column} END"
