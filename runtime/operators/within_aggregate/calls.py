"""The calls of aggregates over the right records of each left one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import AggregateCall, Item, Node, Schema, WithinAggregate
from vsc.runtime.operators.aggregate.functions.accumulators import column_accumulator
from vsc.runtime.operators.aggregate.functions.calls import accumulator_of
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Refused, Rows
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed
from vsc.runtime.operators.columns.flow import taken
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.within_aggregate.ranged import ranged
from vsc.runtime.operators.within_aggregate.ranges import Asked, Pieces, Sorted
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.values import arrow_type

__all__ = ["Calls", "by_row"]


class Calls:
    """The calls of one node. `arguments` computes theirs, one call after the other, of right records."""

    def __init__(self, node: Node, operation: WithinAggregate, right: Schema) -> None:
        self._name, self._operation = node.owner, operation
        args = [Item(call.text, arg, call.text) for call in operation.calls for arg in call.args]
        self.arguments = Evaluation(node.owner, args, [right])

    def results(
        self, rows: Sorted, asked: Asked, pieces: Pieces, args: Sequence[pa.Array], times: Int64s
    ) -> tuple[tuple[pa.Array, ...], Failed]:
        """The column of each call, given what is asked for and the `pieces` that it finds; the arguments of the calls,
        and the times, of all right rows."""
        args, times = taken(args, rows.order), times[rows.order]
        columns, failed = [], dict[int, NodeFailure]()
        shorter = {self._operation.before: pieces}
        for call, over, own in zip(self._operation.calls, self._operation.overs, self._own(args), strict=True):
            if over not in shorter:
                shorter[over] = pieces.since(rows.low(asked.key, asked.time - over))
            column, refused = ranged(call, own, shorter[over]) or by_row(call, own, times, shorter[over])
            columns.append(column)
            for place, reason in refused.items():
                failed.setdefault(place, NodeFailure(self._name, call.text, reason))
        return tuple(columns), failed

    def _own(self, args: Sequence[pa.Array]) -> Iterator[Sequence[pa.Array]]:
        begun = 0
        for call in self._operation.calls:
            yield args[begun : begun + len(call.args)]
            begun += len(call.args)


def by_row(call: AggregateCall, args: Sequence[pa.Array], times: Int64s, pieces: Pieces) -> tuple[pa.Array, Refused]:
    """The results of a call that takes one row after the other, as `aggregate` does."""
    parts, refused = [pa.array([], arrow_type(call.type))], dict[int, str]()
    for start, end, left, place in pieces.expanded():
        count = end - start
        accumulator = column_accumulator(call, table=False)
        state = accumulator.load([pa.nulls(count, arrow_type(type)) for type in accumulator_of(call, False).types])
        if accumulator.keeps:
            nothing = np.zeros(count, dtype=np.bool_)
            state = accumulator.open(EntryRanges(MemoryKV(), [b""] * count, nothing), state)
        given = Rows(taken(args, place), times[place], np.arange(len(place), dtype=np.int64))
        _, ended = accumulator.fold(state, Segments(left, count), given)
        refused.update((start + at, reason) for at, reason in accumulator.refused(ended).items())
        parts.append(accumulator.results(ended))
    return pa.concat_arrays(parts), refused
