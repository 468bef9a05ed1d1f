"""First step of a foreign-key join on whole columns: at most two subscriptions for each change of the left table.

`tests/oracle/records` has the same rules for one record, in a form that is easy to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Subscribe
from vsc.runtime.expressions import null_rows, true_rows
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow, blanked, stacked, taken
from vsc.runtime.operators.foreign_key_join import UNCHANGED, Instruction, no_key, travelling
from vsc.runtime.operators.new_keys import NewKeys
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import NEVER
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import to_array, to_values

__all__ = ["OPERATOR"]


_Sending = tuple[NewKeys, Mask, np.ndarray]
"""Keys, which of them are sent something, and the instructions."""


class _Subscribe(Step):
    """Takes the changes of the left table, with the rows before them."""

    def __init__(self, site: Site, operation: Subscribe) -> None:
        self._site, self._operation = site, operation
        self._left = site.inputs[0]
        self._foreign = site.evaluation(operation.foreign_key)
        self._keys = KeyCodec([c.type for c in site.node.schema.key])
        self._columns = travelling(site.plan, site.node)

    def process(self, flow: Flow) -> Flow:
        """The subscriptions, those of one change in order; their values are what they carry."""
        flow = self._site.newest(flow, self._operation.versioned)
        now, failed = self._of(flow, flow.time, flow.present, flow.values)
        present = flow.present & self._site.kept(flow, failed)
        if failed:  # such a row counts as deleted
            flow = flow.with_rows(present, blanked(flow.values, present), flow.old)
        if flow.old is None:
            before = now.nowhere()
        else:
            old = flow.old
            before, _ = self._of(flow, old.time, old.present, old.values)  # failures were handled as the new rows
        differ = now.there & before.there & ~now.same(before, self._keys)
        unchanged = np.where(self._unchanged(flow, now.there), UNCHANGED, 0)
        if self._operation.left:
            return self._left_join(flow, now, before, differ, unchanged)
        return self._inner_join(flow, now, before, differ, unchanged)

    def _inner_join(self, flow: Flow, now: NewKeys, before: NewKeys, differ: Mask, unchanged: np.ndarray) -> Flow:
        gone = before.there & ~now.there
        first = np.where(gone, Instruction.DELETE_AND_ANSWER, Instruction.DELETE)
        second = np.where(differ, Instruction.KEEP, Instruction.KEEP_IF_VALUE | unchanged)
        return self._sent(flow, (before, gone | differ, first), (now, now.there, second))

    def _left_join(self, flow: Flow, now: NewKeys, before: NewKeys, differ: Mask, unchanged: np.ndarray) -> Flow:
        anything = flow.present if flow.old is None else flow.present | flow.old.present
        first = np.full(len(flow), Instruction.DELETE)
        alone = np.where(flow.present, Instruction.ALONE, Instruction.GONE)
        second = np.where(now.there, Instruction.KEEP | unchanged, alone)
        nowhere = [to_array([value], t) for value, t in zip(no_key(self._keys.types), self._keys.types, strict=True)]
        places = np.where(now.there, np.arange(len(flow)), len(flow))
        columns = taken(stacked(now.columns, nowhere), places)
        deleted = before.there & (differ | ~now.there)
        return self._sent(flow, (before, deleted, first), (NewKeys(now.there, columns), anything, second))

    def _of(self, flow: Flow, time: Int64s, present: Mask, values: Sequence[pa.Array]) -> tuple[NewKeys, Failed]:
        """The foreign keys of rows; none for a missing row, a null in the key, or a key that cannot be computed."""
        found = self._foreign.where((*flow.keys, *values), time, present)
        return NewKeys(present & ~null_rows(found.columns, len(flow)), found.columns), found.failed

    def _unchanged(self, flow: Flow, asked: Mask) -> Mask:
        """Where `asked` and the left row has not changed."""
        same = np.zeros(len(flow), dtype=np.bool_)
        if flow.old is None:
            return same
        same = asked & flow.old.present
        for new, old, column in zip(flow.values, flow.old.values, self._left.value, strict=True):
            if pa.types.is_nested(new.type):
                pairs = zip(to_values(new, column.type), to_values(old, column.type), strict=True)
                same &= np.fromiter((one == other for one, other in pairs), dtype=np.bool_, count=len(flow))
                continue
            equal = true_rows(pc.equal(new, old))
            if new.null_count and old.null_count:
                equal = equal | true_rows(pc.and_(new.is_null(), old.is_null()))
            same &= equal
        return same

    def _sent(self, flow: Flow, first: _Sending, second: _Sending) -> Flow:
        """The subscriptions of keys that are sent one, with instructions; the first ones carry no row."""
        one, other = np.flatnonzero(first[1]), np.flatnonzero(second[1])
        # By the number of the change. The sort is stable, so the first subscription of a change stays before its
        # second.
        order = np.argsort(np.concatenate([one, other]), kind="stable")
        rows = np.concatenate([one, other])[order]
        carried = np.concatenate([np.full(len(one), -1), np.where(flow.present[other], other, -1)])[order]
        instruction = np.concatenate([first[2][one], second[2][other]])[order]
        places = np.concatenate([one, other + len(flow)])[order]
        keys = taken(stacked(first[0].columns, second[0].columns), places)
        values = (
            *taken(flow.keys, rows),
            *taken([flow.values[i] for i in self._columns], carried),
            *self._span(flow, rows, second[0]),
            pa.array(instruction.astype(np.int32)),
        )
        at = self._site.give(flow.at.take(rows), (order >= len(one)).astype(np.int64))
        there = np.ones(len(rows), dtype=np.bool_)
        return Flow(at, flow.key[rows], flow.space, flow.time[rows], there, keys, values)

    def _span(self, flow: Flow, rows: Int64s, now: NewKeys) -> tuple[pa.Array, ...]:
        """The columns of `SPAN` for the changes at `rows`, if the join's history is complete. `now`: the keys that the
        new rows refer to."""
        if not self._operation.complete:
            return ()
        assert flow.until is not None
        ends, closing = np.zeros(len(flow), dtype=np.bool_), np.flatnonzero(flow.until < NEVER)
        if len(closing):
            asking = replace(flow.take(closing), time=flow.until[closing])
            found = self._site.look_up(self._site.node.inputs[0], as_of=True)(asking)
            following, _ = self._of(asking, found.time, found.present, found.values)
            mine = NewKeys(now.there[closing], taken(now.columns, closing))
            ends[closing] = ~mine.same(following, self._keys)
        return pa.array(flow.until[rows]), pa.array(ends[rows])


OPERATOR = Operator(_Subscribe)
