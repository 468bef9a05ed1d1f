"""The results at the events of a corrected join, and which of them are sent: those that differ from the last one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import REVISION, Correct, with_revision
from vsc.runtime.expressions import columns_of, null_rows
from vsc.runtime.metrics import RETENTION_NEEDED
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed, Side, shifted
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import processing
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.correct.events import Events
from vsc.runtime.operators.correct.layout import Layout
from vsc.runtime.operators.correct.records import Records
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import NO_RECORD, TableRows
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import LOOKUP_MISSES

__all__ = ["Found", "Results"]

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Found:
    """What there is at each event: whether it counts (`valid`: nothing has failed), whether there `is` a result, which
    `columns` it has, what its items were computed from, and whether it is `sent`, as which `revision`."""

    valid: Mask
    there: Mask
    columns: tuple[pa.Array, ...]
    sides: tuple[Side, Side]
    sent: Mask
    revision: Int32s


class Results:
    """Computes them at one node."""

    def __init__(self, site: Site, operation: Correct, layout: Layout) -> None:
        self._site, self._operation, self._layout = site, operation, layout
        self._look_up = site.look_up(site.node.inputs[1], True)
        left = with_revision(site.inputs[0])
        self._items = Evaluation(site.name, operation.items, (left, site.inputs[1]))
        self._counts = any(c.name == REVISION.name for item in operation.items for c in columns_of(item.expr))
        self._key_width, self._width = len(left.key), len(left.key) + len(left.value)

    def at(self, records: Records, events: Events) -> Found:
        """What there is at the events, and what of it is sent."""
        record = events.record
        keys, time = taken(records.keys, record), records.time[record]
        removed = np.zeros(len(events), dtype=np.bool_)
        removed[: events.own] = ~records.new
        unasked = null_rows(keys, len(events)) | removed
        rows = self._rows(records, events, keys, time, unasked)
        failed: dict[int, NodeFailure] = dict(rows.failed)
        there = rows.present if not self._operation.left else ~removed
        if self._operation.drop_older:
            there &= ~rows.forgotten
        there[list(failed)] = False
        sides = self._sides(records, events, keys, time, rows)
        computed = self._items.run(*sides, asked=there)
        failed |= computed.failed
        valid = self._valid(records, events, failed)
        there = there & valid
        self._miss(records.came, np.where(unasked | ~valid, 0, rows.missed)[: events.own], rows.needed)
        sent, revision = self._sent(records, events, valid, there, computed.columns)
        return Found(valid, there, computed.columns, sides, sent, revision)

    def flow(self, records: Records, events: Events, found: Found) -> Flow:
        """The results that are sent, under the keys of their records. They move: their keys have no numbers here."""
        site, out = self._site, np.flatnonzero(found.sent)
        if not len(out):
            return Flow.empty(site.node.schema, site.space)
        record, present = events.record[out], found.there[out]
        values = taken(self._revised(found), np.where(present, out, -1))
        at = site.routes.beside(events.at.take(out), site.node.name, events.turn[out])
        order = processing(at)
        rows = record[order]
        by = taken(records.kept.by, rows)
        return Flow(
            at.take(order), records.key[rows], records.came.space, records.time[rows], present[order], by,
            taken(values, order),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ look-ups

    def _rows(
        self, records: Records, events: Events, keys: tuple[pa.Array, ...], time: Int64s, unasked: Mask
    ) -> TableRows:
        """The table's rows at the events; none for a record without a key (D26), or one that removes a row."""
        asking = Flow(
            events.at, records.key[events.record], records.came.space, time - int(self._operation.strictly_before),
            np.ones(len(events), dtype=np.bool_), keys, (),
        )  # fmt: skip
        if unasked.any():
            found = self._look_up(asking.select(~unasked))
            back = np.where(unasked, -1, np.cumsum(~unasked) - 1)
            missed = np.where(unasked, NO_RECORD, np.append(found.missed, 0)[back]).astype(np.uint8)
            failed = shifted(found.failed, np.flatnonzero(~unasked))
            rows = TableRows(missed, np.append(found.time, 0)[back], taken(found.values, back), failed, found.needed)
        else:
            rows = self._look_up(asking)
        max_age = self._operation.max_age
        return rows if max_age is None else rows.since(time - max_age)

    def _sides(
        self, records: Records, events: Events, keys: tuple[pa.Array, ...], time: Int64s, rows: TableRows
    ) -> tuple[Side, Side]:
        wanted, table = self._items.wanted
        place = {self._key_width + at: number for number, at in enumerate(self._layout.places)}
        columns = []
        for at in wanted:
            if at < self._key_width:
                columns.append(keys[at])
            elif at == self._width - 1:
                columns.append(pa.array(np.zeros(len(events), dtype=np.int32)))
            else:
                columns.append(taken([records.kept.left[place[at]]], events.record)[0])
        return Side(columns, time), rows.side(keys, table)

    def _miss(self, came: Flow, missed: npt.NDArray[np.uint8], needed: int) -> None:
        counts = np.bincount(missed, minlength=len(LOOKUP_MISSES)).tolist()
        for number, reason in enumerate(LOOKUP_MISSES):
            if reason is not None and counts[number]:
                self._site.lose(reason, came, missed == number)
        if needed >= 0:
            self._site.peak(RETENTION_NEEDED, needed)

    def _valid(self, records: Records, events: Events, failed: Failed) -> Mask:
        """Which events count: those that have not failed, and none of a record whose own join has."""
        valid = np.ones(len(events), dtype=np.bool_)
        if not failed:
            return valid
        valid[list(failed)] = False
        lost = np.zeros(len(records), dtype=np.bool_)
        lost[records.stored :] = ~valid[: events.own]
        self._site.kept(records.came, {row: why for row, why in failed.items() if row < events.own})
        rows = np.flatnonzero(~valid & ~lost[events.record])
        valid &= ~lost[events.record]
        if len(rows):
            record = events.record[rows]
            left = self._layout.whole(taken(records.kept.left, record), len(rows))
            there, at = np.ones(len(rows), dtype=np.bool_), events.at.take(rows)
            flow = Flow(
                at, records.key[record], records.came.space, records.time[record], there, taken(records.keys, record),
                tuple(left),
            )  # fmt: skip
            self._site.kept(flow, {place: failed[row] for place, row in enumerate(rows.tolist())}, waited=True)
        return valid

    # ---------------------------------------------------------------------------------------------------- what is sent

    def _sent(
        self, records: Records, events: Events, valid: Mask, there: Mask, columns: tuple[pa.Array, ...]
    ) -> tuple[Mask, Int32s]:
        """Which results are sent, and as which revision of their record."""
        sent, revision = there.copy(), np.zeros(len(events), dtype=np.int32)
        sent[events.own :] = False
        of_table = self._operation.table
        if not len(events) or (len(events) == events.own and not of_table):
            return sent, revision
        if of_table:
            valid = valid.copy()
            valid[: events.own] = True  # a row that cannot be computed is none
        touched = np.full(len(records), of_table)
        touched[records.row[events.record[events.own :]]] = True
        rows = np.flatnonzero(valid & touched[records.row[events.record]])
        before, unknown = self._before(records, touched)
        first = len(before) + len(unknown)
        code = self._layout.results(
            stacked(taken(records.kept.results, np.concatenate([before, unknown])), taken(columns, rows)),
            first + len(rows),
        )
        row = records.row[np.concatenate([before, unknown, events.record[rows]])]
        arrived = np.concatenate([np.full(first, -1, dtype=np.int64), events.arrived[rows]])
        is_there = np.concatenate([records.kept.sent[before], np.ones(len(unknown), dtype=np.bool_), there[rows]])
        is_known = np.ones(first + len(rows), dtype=np.bool_)
        is_known[len(before) : first] = False
        order = np.lexsort((arrived, row))
        row, is_there, is_known, code = row[order], is_there[order], is_known[order], code.take(pa.array(order))
        changed = is_there.copy()
        same = row[1:] == row[:-1]
        equal = pc.equal(code[1:], code[:-1]).to_numpy(zero_copy_only=False) & is_known[:-1]
        differs = (is_there[1:] != is_there[:-1]) | (is_there[1:] & ~equal)
        changed[1:] = np.where(same, differs, is_there[1:])
        real = order >= first
        changed &= real
        begins = np.append(True, ~same)
        count = np.cumsum(changed) - changed
        base = count[np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))]
        place = rows[order[real] - first]
        sent[place] = changed[real]
        revision[place] = (count - base + records.revision[row])[real]
        return sent, revision

    def _before(self, records: Records, touched: Mask) -> tuple[Int64s, Int64s]:
        """The records whose last result is known of the touched rows; and those that came of which there was a row
        before that is not kept."""
        stored = records.stored
        before = np.flatnonzero(touched[records.row[:stored]])
        known = np.zeros(len(records), dtype=np.bool_)
        known[records.row[:stored]] = True
        came, first = records.row[stored:], np.zeros(len(records) - stored, dtype=np.bool_)
        first[np.unique(came, return_index=True)[1]] = True
        return before, stored + np.flatnonzero(first & records.old & ~known[came])

    def _revised(self, found: Found) -> tuple[pa.Array, ...]:
        """The columns, recomputed where they depend on a revision that is not the first."""
        later = found.sent & found.there & (found.revision > 0)
        if not self._counts or not later.any():
            return found.columns
        left, table = found.sides
        at = self._items.wanted[0].index(self._width - 1)
        columns = [*left.columns[:at], pa.array(found.revision), *left.columns[at + 1 :]]
        again = self._items.run(Side(columns, left.times), table, asked=later)
        rows = np.arange(len(later))
        return taken(stacked(found.columns, again.columns), np.where(later, len(later) + rows, rows))
