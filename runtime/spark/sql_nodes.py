"""Stateless nodes as frames of Spark SQL, and what is counted on the way; the prefix of a plan with state.

`NodeFrames` is the meaning of `vsc.runtime.operators.source_task` and `stateless`, in Spark's terms, for records that
all have a value. `Counts` gathers what was read and dropped, by observing the frames while they are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Explode, Filter, Item, Map, Merge, Node, Plan, Rekey, Schema, Source
from vsc.plan.types import TIMESTAMP
from vsc.runtime.expressions import EVENT_TIME, can_fail, spark_sql
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.explode import element_place
from vsc.runtime.operators.layout import owner
from vsc.runtime.operators.merge import value_order
from vsc.runtime.operators.rekey import kept_columns
from vsc.runtime.spark.digest import DIGEST_BYTES
from vsc.runtime.spark.pack import BAD, INDEX, PART, START, TIME
from vsc.runtime.spark.sources import quoted
from vsc.runtime.spark.sql_prefix import AT, PLACE, REASONS, UNTIMED, Prefix, source_column

__all__ = ["Counts", "NodeFrames", "prefixed"]

_REASON = "_vsc_reason"
_READ = "read"


@dataclass
class Counts:
    """What an epoch read and dropped: each node is counted once, by the first sink that it leads to."""

    read: dict[str, int] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    _seen: set[str] = field(default_factory=set)
    _open: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def observed(self, frame: DataFrame, node: str, counted: Sequence[tuple[str, Column]]) -> DataFrame:
        """`frame`, in which rows are counted, under names, for which a condition holds; not again for the same node."""
        if node in self._seen or not counted:
            return frame
        self._seen.add(node)
        self._open.append((node, tuple(name for name, _ in counted)))
        return frame.observe(f"vsc:{node}", *(F.count_if(condition).alias(name) for name, condition in counted))

    def of(self, frames: NodeFrames, node: Node, digest: bool) -> tuple[int, int]:
        """Counts the rows of `node`, and all that is dropped on the way; with `digest` that of the rows, else 0."""
        frame = frames.of(node.name)
        # Numbers of 64 bits: their sum does not fit into one, and does not depend on the order in which tasks end.
        total = F.sum(F.xxhash64(*map(_column, frame.columns)).cast("decimal(38,0)")) if digest else F.lit(None)
        counted = frame.agg(F.count(F.lit(1)), total)
        rows, value = counted.collect()[0]
        observed = counted._jdf.queryExecution().observedMetrics()
        for name, kinds in self._open:
            found = observed.get(f"vsc:{name}")
            for i, kind in enumerate(kinds):
                self._take(name, kind, found.get().getLong(i) if found.isDefined() else 0)
        self._open.clear()
        return rows, int(value or 0) % (1 << (8 * DIGEST_BYTES))

    def _take(self, node: str, kind: str, count: int) -> None:
        if kind == _READ:
            self.read[node] = count
        else:
            self.metrics.count(owner(node), Group.DROPPED_RECORDS, Dropped(kind), count)


@dataclass(frozen=True)
class NodeFrames:
    """The frames of a plan's nodes: key columns, value columns, `AT`.

    `rows` gives the rows of a source. `strict`: a bad row is an error. `counts` is told what is dropped, if anybody
    wants to know.
    """

    plan: Plan
    rows: Callable[[str], DataFrame]
    strict: bool
    counts: Counts | None

    def of(self, name: str) -> DataFrame:
        """The records of a node."""
        node = self.plan.node(name)
        match node.operation:
            case Source() as source:
                return self._source(node, source)
            case Merge():
                return self._merge(node)
        before = self.plan.node(node.inputs[0]).schema
        frame = self.of(node.inputs[0])
        match node.operation:
            case Filter(predicate):
                return frame.where(_expr(predicate.expr))
            case Map(items):
                renamed = _renamed(before, node.schema)
                return self._forced(frame, items, name).select(*renamed, *map(_item, items), _column(AT))
            case Rekey(items):
                return self._rekey(node, items, before, frame)
            case Explode(item):
                return _explode(item, before, frame)
            case other:
                raise ValueError(f"node '{name}': {other.op} is not stateless")

    def _source(self, node: Node, source: Source) -> DataFrame:
        clause = source.timestamp
        timed, reasons = _judged(node, source, self.rows(node.name), None if clause is None else clause.expr)
        names = [c.name for c in (*node.schema.key, *node.schema.value)]
        reason = F.lit(None).cast("string")
        for why, bad in reversed(reasons):
            reason = F.when(bad, F.raise_error(F.lit(why.value)) if self.strict else F.lit(why.value)).otherwise(reason)
        judged = timed.select(*map(_column, names), _column(AT), reason.alias(_REASON))
        if self.counts is not None:
            kinds = dict.fromkeys(why.value for why, _ in reasons)
            counted = [(_READ, F.lit(True)), *((kind, _column(_REASON) == kind) for kind in kinds)]
            judged = self.counts.observed(judged, node.name, counted)
        return judged.where(_column(_REASON).isNull()).drop(_REASON)

    def _merge(self, node: Node) -> DataFrame:
        parts = []
        for name in node.inputs:
            before = self.plan.node(name).schema
            value = [before.value[i].name for i in value_order(before, node.schema)]
            parts.append(self.of(name).select(*(map(_column, [*(c.name for c in before.key), *value, AT]))))
        merged = parts[0]
        for part in parts[1:]:
            merged = merged.union(part)
        return merged.toDF(*(c.name for c in (*node.schema.key, *node.schema.value)), AT)

    def _rekey(self, node: Node, items: Sequence[Item], before: Schema, frame: DataFrame) -> DataFrame:
        columns = [c.name for c in (*before.key, *before.value)]
        kept = [_column(columns[i]) for i in kept_columns(before, node.schema)]
        keyed = self._forced(frame, items, node.name + "#forced").select(*map(_item, items), *kept, _column(AT))
        null = _any_of([_column(c.name).isNull() for c in node.schema.key])
        if self.counts is not None:
            keyed = self.counts.observed(keyed, node.name, [(Dropped.NULL_JOIN_KEY.value, null)])
        return keyed.where(~null)

    def _forced(self, frame: DataFrame, items: Sequence[Item], name: str) -> DataFrame:
        """`frame`, in which the items that can fail are looked at: Spark computes no column that nobody reads."""
        fallible = [_expr(item.expr) for item in items if can_fail(item.expr)]
        if self.counts is None or not fallible:
            return frame
        return frame.observe(f"vsc:{name}:forced", F.bit_xor(F.xxhash64(*fallible)))


def prefixed(node: Node, frame: DataFrame, prefix: Prefix) -> DataFrame:
    """The rows of a source as `pack` wants them where Spark SQL computes `prefix`: all rows, but few columns."""
    assert isinstance(node.operation, Source)
    source, time = node.operation, prefix.time
    timed, reasons = _judged(node, source, frame, None if time is None else time.expr)
    marks = [(holds, -1 - REASONS.index(reason)) for reason, holds in reasons]
    if time is not None:  # a time that Python has to compute looks like none
        doubt = _any_of([_expr(condition) for condition in time.doubts])
        marks.insert([reason for reason, _ in reasons].index(Dropped.NULL_TIMESTAMP), (doubt, UNTIMED))
    place = _column(AT)
    for holds, mark in reversed(marks):
        place = F.when(holds, F.lit(mark).cast("bigint")).otherwise(place)
    declared = [_column(c.name).alias(source_column(i)) for i, c in enumerate(source.columns)]
    parts = [name for name in (PART, INDEX, START) if name in frame.columns]
    frame = timed.select(*declared, *parts, AT, place.alias(PLACE))
    for step in prefix.steps:
        frame = frame.select("*", *(F.expr(text).alias(name) for name, text in step))
    return frame.select(PLACE, *(F.expr(text).alias(name) for name, text in prefix.columns), *parts)


def _judged(
    node: Node, source: Source, frame: DataFrame, time: Expr | None
) -> tuple[DataFrame, list[tuple[Dropped, Column]]]:
    """The rows of a source with their event time, `AT`, which is `time` or their own; what makes a row unusable: the
    first that holds counts."""
    reasons = [(Dropped.UNREADABLE, _unreadable(source))] if BAD in frame.columns else []
    reasons += [(Dropped.NULL_KEY, _column(c.name).isNull()) for c in node.schema.key]
    usable = ~_any_of([F.coalesce(bad, F.lit(False)) for _, bad in reasons])
    timed = frame.withColumn(AT, F.when(usable, _column(TIME) if time is None else _millis(time)))
    return timed, [
        *reasons, (Dropped.NULL_TIMESTAMP, _column(AT).isNull()), (Dropped.NEGATIVE_TIMESTAMP, _column(AT) < 0),
    ]  # fmt: skip


def _any_of(conditions: Sequence[Column]) -> Column:
    """Whether any of the conditions holds; false for none."""
    found = F.lit(False)
    for condition in conditions:
        found = found | condition
    return found


def _unreadable(source: Source) -> Column:
    """Whether a row could not be read, in whichever of its declared columns: Spark finds a value that does not fit in
    those only that it is asked for. So all are asked for, by a condition that its optimizer knows nothing about."""
    null = _any_of([_column(c.name).isNull() for c in source.columns])
    return _column(BAD) | ((F.spark_partition_id() < 0) & null)


def _millis(time: Expr) -> Column:
    return F.unix_millis(_expr(time)) if time.type == TIMESTAMP else _expr(time)


def _explode(item: Item, before: Schema, frame: DataFrame) -> DataFrame:
    names = [c.name for c in (*before.key, *before.value)]
    at = len(before.key) + element_place(before, item.name)
    columns = [_column(name) for name in names]
    return frame.select(*columns[:at], F.explode(_expr(item.expr)).alias(item.name), *columns[at + 1 :], _column(AT))


def _renamed(before: Schema, after: Schema) -> list[Column]:
    return [_column(a.name).alias(b.name) for a, b in zip(before.key, after.key, strict=True)]


def _item(item: Item) -> Column:
    return _expr(item.expr).alias(item.name)


def _expr(expr: Expr) -> Column:
    return F.expr(spark_sql(expr, _name))


def _name(read: ColumnExpr) -> str:
    return f"timestamp_millis({AT})" if read.name == EVENT_TIME else quoted(read.name)


def _column(name: str) -> Column:
    """A column of a frame by its name, whatever is in it."""
    return F.col(quoted(name))
