"""Primary-key join of two tables (KIP-914): newest row with newest row, at the later of both times.

Each side's changes look into the other side; a versioned side drops changes that are not its key's newest. A look-up
into a join without a store continues in both sides. The row before a change is the last one sent (D27): that of the
join's own store; without one, it is computed from the row before on the changed side. The compiler gives a store to a
join whose sides change together, with the same record. Then each side finds the other one as it is behind the record:
if both lose their rows, neither finds a partner any more, and the result is deleted all the same (D30). What was never
sent is not deleted: where no store tells, the changes of the batch do, and the sides' rows as they were before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Schema, TableTableJoin
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.operators.complete.join import CompleteJoin
from vsc.runtime.operators.layout import above
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import taken_back
from vsc.runtime.operators.tables.lookups import NO_RECORD, Lookup, TableRows, missing
from vsc.runtime.records import Int64s, Mask

__all__ = ["OPERATOR"]


Pairs = Callable[[tuple[pa.Array, ...], TableRows, TableRows], TableRows]
"""The rows that the join makes from those of its two sides, given the records' keys."""


def _pairs(site: Site, operation: TableTableJoin) -> Pairs:
    items = site.evaluation(operation.items, 2)

    def rows(keys: tuple[pa.Array, ...], left: TableRows, right: TableRows) -> TableRows:
        """The result for each record, at the later of both rows' times; `failed` if a side's row could not be made."""
        there = {"inner": left.present & right.present, "left": left.present, "outer": left.present | right.present}
        newest = np.where(left.present, _later(left.time, right), right.time)
        before = {**right.failed, **left.failed}
        missed = np.where(there[operation.mode], 0, np.where(left.present, NO_RECORD, left.missed)).astype(np.uint8)
        missed = missing(missed, before)
        one, other = (side.side(keys, wanted) for side, wanted in zip((left, right), items.wanted, strict=True))
        found = items.run(one, other, asked=missed == 0)
        failed = {**found.failed, **before}
        return TableRows(missing(missed, failed), newest, found.columns, failed)

    return rows


class _TableTableJoin(Step):
    def __init__(self, site: Site, operation: TableTableJoin) -> None:
        self._site, self._operation = site, operation
        self._pairs = _pairs(site, operation)
        self._left, self._right = (site.look_up(name) for name in site.node.inputs)
        self._together = operation.mode == "inner" and _change_together(site)
        self._failing: list[Flow] = []

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        left, _ = feeding
        sent = Flow.merged([self._side(flow, flow is left) for flow in feeding if flow is not None])
        if self._site.table is None:
            return self._site.opened(sent.select(self._of_rows(sent)) if self._together else sent)
        sent = self._site.stored(sent, old=self._together)
        if self._together and sent.old is not None:
            sent = sent.select(sent.present | sent.old.present)
        return self._site.opened(sent)

    def _of_rows(self, sent: Flow) -> Mask:
        """Which of the changes are results, or delete one; one that cannot be computed may stand for one before it.

        What one record leads to is judged by what it has led to before; the first of it by the rows ahead of it.
        """
        routes, count = self._site.routes, len(sent)
        at = Moments.concat([sent.at, *(flow.at for flow in self._failing)])
        key = np.concatenate([sent.key, *(flow.key for flow in self._failing)])
        results = np.append(sent.present, np.ones(len(key) - count, dtype=np.bool_))
        order, causes = processing(at), (*routes.causes(at), key)
        order = order[np.lexsort([column[order] for column in causes])]
        same = [column[order][1:] == column[order][:-1] for column in causes]
        follows = np.flatnonzero(np.logical_and.reduce(same))
        needed, first = results.copy(), np.ones(len(key), dtype=np.bool_)
        needed[order[follows + 1]] |= results[order[follows]]
        first[order[follows + 1]] = False
        needed, released = needed[:count], routes.is_released(sent.at)
        for asked in (np.flatnonzero(first[:count] & ~needed & one) for one in (released, ~released)):
            if len(asked):
                needed[asked] = self._had(sent.take(asked))
        return needed

    def _had(self, flow: Flow) -> Mask:
        """For which of these changes' keys there was a result ahead of the record, or one that cannot be computed."""
        flow = replace(flow, at=self._site.routes.ahead(flow.at))
        found = self._pairs(flow.keys, self._left(flow), self._right(flow))
        had: Mask = found.present
        had[list(found.failed)] = True
        return had

    def _side(self, flow: Flow, is_left: bool) -> Flow:
        operation = self._operation
        schema = self._site.inputs[0 if is_left else 1]
        versioned = operation.left_versioned if is_left else operation.right_versioned
        flow = self._site.newest(flow, versioned, 0 if is_left else 1)
        other = self._right(flow) if is_left else self._left(flow)
        kept = self._kept(flow, other.failed, schema)
        sends = kept & self._sends(flow, other, is_left)
        flow, other = flow.select(sends), other.select(sends)
        result = self._pair(flow, TableRows.of(flow.present, flow.time, flow.values), other, is_left)
        kept = self._kept(flow, result.failed, schema)
        old = self._before(flow, other, is_left) if self._site.owes_old else None
        changed = replace(flow, time=_later(flow.time, other), latest=None).with_rows(result.present, result.values)
        return taken_back(changed, kept, old)

    def _kept(self, flow: Flow, failed: Failed, schema: Schema) -> Mask:
        kept = self._site.kept(flow, failed, schema)
        if self._together and failed:
            self._failing.append(flow.select(~kept))
        return kept

    def _before(self, flow: Flow, other: TableRows, is_left: bool) -> Old:
        """The results before the changes of a side."""
        before = flow.old
        if before is None:
            nothing = np.zeros(len(flow), dtype=np.bool_)
            before = Old(nothing, flow.time, blanked(flow.values, nothing))
        rows = self._pair(flow, TableRows.of(before.present, before.time, before.values), other, is_left)
        return Old(rows.present, _later(before.time, other), rows.values)

    def _pair(self, flow: Flow, own: TableRows, other: TableRows, is_left: bool) -> TableRows:
        return self._pairs(flow.keys, *((own, other) if is_left else (other, own)))

    def _sends(self, flow: Flow, other: TableRows, is_left: bool) -> Mask:
        """Which changes give a result: not those without a required partner, nor tombstones with nothing before."""
        mode = self._operation.mode
        if is_left and self._together:  # of a row that both sides lose at once, the left one tells
            return other.present | ~flow.present
        if mode == "inner" or (mode == "left" and not is_left):
            return other.present
        known = other.present | flow.present
        return known if flow.old is None else known | flow.old.present


def _change_together(site: Site) -> bool:
    """Whether one record may change both sides."""
    left, right = (above(site.plan, site.stage, name) for name in site.node.inputs)
    return not left.isdisjoint(right)


def _later(own: Int64s, other: TableRows) -> Int64s:
    """The times of results: the later of both sides', or the only one's."""
    return np.where(other.present, np.maximum(own, other.time), own)


def _look_up(site: Site, operation: TableTableJoin, as_of: bool) -> Lookup:
    pairs, (left, right) = _pairs(site, operation), (site.look_up(name) for name in site.node.inputs)
    return lambda flow: pairs(flow.keys, left(flow), right(flow))


def _build(site: Site, operation: TableTableJoin) -> Step:
    return CompleteJoin(site, _pairs(site, operation)) if site.node.complete else _TableTableJoin(site, operation)


OPERATOR = Operator(_build, _look_up)
