"""The calls of aggregates over the right records of each left one, by the accumulators of `aggregate`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import AggregateCall, Item, Node, Schema, WithinAggregate
from vsc.runtime.operators.aggregate.functions.accumulators import column_accumulator
from vsc.runtime.operators.aggregate.functions.calls import accumulator_of
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed
from vsc.runtime.operators.columns.flow import taken
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.within_aggregate.ranges import Asked, Found, Sorted
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.values import arrow_type

__all__ = ["Calls"]


class Calls:
    """The calls of one node. `arguments` computes theirs, one call after the other, of right records."""

    def __init__(self, node: Node, operation: WithinAggregate, right: Schema) -> None:
        self._name, self._calls = node.owner, operation.calls
        args = [Item(call.text, arg, call.text) for call in operation.calls for arg in call.args]
        self.arguments = Evaluation(node.owner, args, [right])

    def results(
        self, rows: Sorted, asked: Sequence[Asked], args: Sequence[pa.Array], times: Int64s
    ) -> tuple[tuple[pa.Array, ...], Failed]:
        """The column of each call, given what it asks for, its arguments, and the times of the right rows."""
        columns, failed, begun = [], dict[int, NodeFailure](), 0
        for call, one in zip(self._calls, asked, strict=True):
            own = args[begun : begun + len(call.args)]
            begun += len(call.args)
            parts = [self._part(call, found, own, times, failed) for found in rows.found(one)]
            columns.append(pa.concat_arrays(parts) if parts else pa.array([], arrow_type(call.type)))
        return tuple(columns), failed

    def _part(
        self, call: AggregateCall, found: Found, args: Sequence[pa.Array], times: Int64s, failed: dict[int, NodeFailure]
    ) -> pa.Array:
        """The results for some of the left records."""
        count = found.end - found.start
        accumulator = column_accumulator(call, table=False)
        state = accumulator.load([pa.nulls(count, arrow_type(type)) for type in accumulator_of(call, False).types])
        if accumulator.keeps:
            nothing = np.zeros(count, dtype=np.bool_)
            state = accumulator.open(EntryRanges(MemoryKV(), [b""] * count, nothing), state)
        arrival = np.arange(len(found.row), dtype=np.int64)
        given = Rows(taken(args, found.row), times[found.row], arrival)
        _, ended = accumulator.fold(state, Segments(found.left - found.start, count), given)
        for place, reason in accumulator.refused(ended).items():
            failed.setdefault(found.start + place, NodeFailure(self._name, call.text, reason))
        return accumulator.results(ended)
