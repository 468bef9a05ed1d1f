"""What stage 0 does behind its sources, on whole columns: filter, map and rekey.

A table here has no store: it has no old rows, so a
row that a filter refuses is always sent on as a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from vsc.plan.nodes import Explode, Filter, Item, Map, Merge, Node, Plan, Rekey
from vsc.runtime.expressions import true_rows
from vsc.runtime.expressions.kernel_tools import null_rows
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.columns.evaluation import Computed, Evaluation
from vsc.runtime.operators.columns.flow import blanked
from vsc.runtime.operators.context import RunOptions, expression_error
from vsc.runtime.operators.counting import count
from vsc.runtime.operators.places import element_place, kept_columns, value_order
from vsc.runtime.records import Batch, Int64s, Mask, Origin

__all__ = ["Stateless", "settled"]


def settled(
    computed: Computed, rows: int, options: RunOptions, metrics: Metrics, origin: Origin, offsets: Int64s
) -> Mask:
    """Deals with failures as the options say: raises ExpressionError, or counts them and tells which rows are left."""
    kept = np.ones(rows, dtype=np.bool_)
    for row, failure in computed.failed.items():
        if options.on_error == "fail":
            raise expression_error(failure, origin, int(offsets[row]))
        metrics.count(failure.node, Group.DROPPED_RECORDS, Dropped.EXPRESSION_FAILED)
        kept[row] = False
    return kept


def _computed(node: Node, items: Sequence[Item], batch: Batch, asked: Mask) -> Computed:
    return Evaluation(node.owner, items, [batch.schema]).where(batch.columns, batch.timestamps, asked)


class Stateless:
    """Applies nodes to batches of one source partition; counts into `metrics`."""

    def __init__(self, plan: Plan, options: RunOptions, metrics: Metrics) -> None:
        self._schemas = {n.name: n.schema for n in plan.nodes}
        self._options = options
        self._metrics = metrics

    def apply(self, node: Node, batch: Batch, place: int = 0) -> Batch:
        """The records of `node` that those of one of its inputs give.

        `place` is the node's among those that hand records out: what makes several records of one puts it, and each
        record's number, into their order.
        """
        match node.operation:
            case Filter():
                return self._filter(node, node.operation, batch)
            case Map():
                return self._map(node, node.operation, batch)
            case Rekey():
                return self._rekey(node, node.operation, batch)
            case Merge():
                values = tuple(batch.values[i] for i in value_order(batch.schema, node.schema))
                return replace(batch, schema=node.schema, values=values)
            case Explode():
                return self._explode(node, node.operation, batch, place)
            case other:
                raise ValueError(f"node '{node.name}': {other.op} needs a store, and stage 0 has none")

    def _filter(self, node: Node, operation: Filter, batch: Batch) -> Batch:
        is_table = node.kind == "table"
        asked = batch.present if is_table else np.ones(len(batch), dtype=np.bool_)  # D14: nulls are asked too
        computed = _computed(node, [operation.predicate], batch, asked)
        true = true_rows(computed.columns[0])
        kept = self._kept(computed, batch)
        if not is_table:
            return replace(batch.filter(true & kept), schema=node.schema)
        present = batch.present & true
        values = blanked(batch.values, present)
        return replace(batch, schema=node.schema, present=present, values=values).filter(kept)

    def _map(self, node: Node, operation: Map, batch: Batch) -> Batch:
        computed = _computed(node, operation.items, batch, batch.present)
        return replace(batch, schema=node.schema, values=computed.columns).filter(self._kept(computed, batch))

    def _rekey(self, node: Node, operation: Rekey, batch: Batch) -> Batch:
        self._count(node, Dropped.NO_VALUE, ~batch.present)
        batch = batch.filter(batch.present)
        computed = _computed(node, operation.items, batch, batch.present)
        kept = self._kept(computed, batch)
        null = null_rows(computed.columns, len(batch))
        self._count(node, Dropped.NULL_JOIN_KEY, null & kept)
        columns = batch.columns
        values = tuple(columns[i] for i in kept_columns(batch.schema, node.schema))
        rekeyed = replace(batch, schema=node.schema, keys=computed.columns, values=values)
        return rekeyed.filter(kept & ~null)

    def _explode(self, node: Node, operation: Explode, batch: Batch, place: int) -> Batch:
        self._count(node, Dropped.NO_VALUE, ~batch.present)
        batch = batch.filter(batch.present)
        computed = _computed(node, [operation.item], batch, batch.present)
        (arrays,) = computed.columns
        kept = self._kept(computed, batch)
        if not kept.all():
            batch, arrays = batch.filter(kept), arrays.filter(kept)
        causes = pc.list_parent_indices(arrays).to_numpy(zero_copy_only=False).astype(np.int64)
        first = np.searchsorted(causes, causes)
        at = element_place(batch.schema, operation.item.name)
        many = batch.take(causes)
        values = (*many.values[:at], pc.list_flatten(arrays), *many.values[at + 1 :])
        order = many.order.extended(np.full(len(causes), place, dtype=np.int64))
        order = order.extended(np.arange(1, len(causes) + 1, dtype=np.int64) - first)
        return replace(many, schema=node.schema, order=order, values=values)

    def _kept(self, computed: Computed, batch: Batch) -> Mask:
        if not computed.failed:
            return np.ones(len(batch), dtype=np.bool_)
        return settled(computed, len(batch), self._options, self._metrics, batch.origins[0], batch.order.offset)

    def _count(self, node: Node, reason: Dropped, bad: Mask) -> None:
        count(self._metrics, node.owner, reason, bad)
