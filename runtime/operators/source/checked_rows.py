"""The rows of a source partition, without those that cannot be used, and their event times.

A row without key, without usable event time or that could not be read is lost: always counted with its reason, and kept
as a dead letter if a sink takes it. The counterpart of `dead_letters.Losses` for rows, which may have no key and no
time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Item, Node, Schema
from vsc.runtime.errors import BadRowError
from vsc.runtime.expressions import null_rows, true_rows
from vsc.runtime.metrics import BadRow, Dropped
from vsc.runtime.operators.columns.evaluation import Computed, Evaluation
from vsc.runtime.operators.columns.times import event_times
from vsc.runtime.operators.context import RunOptions, expression_error
from vsc.runtime.operators.dead_letters import Losses, Lost, Message, json_rows
from vsc.runtime.operators.source.rows import EventTimes, SourceRows
from vsc.runtime.records import Mask
from vsc.runtime.times import LAST, time_text

__all__ = ["CheckedRows"]

_WHY = {
    Dropped.UNREADABLE: "cannot be read",
    Dropped.NULL_KEY: "has a null key column",
    Dropped.NULL_TIMESTAMP: "has no event time",
    Dropped.NEGATIVE_TIMESTAMP: "has a negative event time",
}


class CheckedRows:
    """The `rows` of source `node` that are left, their event times in ms (once known), and which have a value.

    `causes` are their places among all rows, those that are lost included.
    """

    def __init__(self, node: Node, rows: SourceRows, options: RunOptions, losses: Losses) -> None:
        self._node, self._options, self._losses = node, options, losses
        self.rows, self.causes = rows, np.arange(len(rows))
        self.times = np.zeros(len(rows), dtype=np.int64)
        self.present: Mask = np.zeros(0, dtype=np.bool_)

    def columns(self, schema: Schema) -> tuple[tuple[pa.Array, ...], tuple[pa.Array, ...]]:
        """The key columns and the value columns of the rows."""
        declared = dict(zip((c.name for c in self._node.source.columns), self.rows.columns, strict=True))
        return tuple(declared[c.name] for c in schema.key), tuple(declared[c.name] for c in schema.value)

    def check(self, latest: int | None) -> EventTimes | None:
        """Loses the rows that cannot be used, those later than `latest` or the year 9999 too; returns the times seen.

        Raises BadRowError or ExpressionError if the options do not say to drop such rows.
        """
        if self.rows.unreadable is not None:
            self._drop(self.rows.unreadable, Dropped.UNREADABLE)
        keys, _ = self.columns(self._node.schema)
        self._drop(null_rows(keys, len(self.rows)), Dropped.NULL_KEY)
        self._find_times()
        seen = EventTimes.of(self.times)
        times, last = self.times, LAST if latest is None else min(latest, LAST)
        why = lambda row: f"has the event time {time_text(int(times[row]))}, later than {time_text(last)}"  # noqa: E731
        self._drop(times > last, Dropped.IN_THE_FUTURE, why, timed=True)
        self._find_deleted()
        return seen

    def _find_times(self) -> None:
        rows, timestamp = self.rows, self._node.source.timestamp
        null = np.zeros(len(rows), dtype=np.bool_)
        if timestamp is None:
            if rows.record_time is None:
                raise ValueError(
                    f"source '{self._node.name}' has no timestamp clause, and its rows no time of their own"
                )
            self.times = rows.record_time
        else:
            own = null if rows.deleted is None or rows.record_time is None else rows.deleted
            computed = self._computed(timestamp, ~own)  # the clause cannot read `times`
            self.times, null = event_times(computed.columns[0], timestamp.expr.type)
            if rows.record_time is not None:
                self.times, null = np.where(own, rows.record_time, self.times), null & ~own
            null = null[self._kept(computed)]
        self._drop(null, Dropped.NULL_TIMESTAMP)
        self._drop(self.times < 0, Dropped.NEGATIVE_TIMESTAMP, timed=True)

    def _find_deleted(self) -> None:
        present, delete_when = np.ones(len(self.rows), dtype=np.bool_), self._node.source.delete_when
        if self.rows.deleted is not None:
            present = ~self.rows.deleted
        if delete_when is not None:
            computed = self._computed(delete_when, present)
            present = (present & ~true_rows(computed.columns[0]))[self._kept(computed)]
        self.present = present

    def _computed(self, item: Item, asked: Mask) -> Computed:
        schema = Schema((), self._node.source.columns)
        return Evaluation(self._node.name, [item], [schema]).where(self.rows.columns, self.times, asked)

    def _kept(self, computed: Computed) -> Mask:
        """Which rows are left: those on which a clause fails are lost or raise ExpressionError, as options say."""
        rows, failed = self.rows, computed.failed
        if failed and self._options.on_error == "fail":
            row, failure = next(iter(failed.items()))
            raise expression_error(failure, rows.origin, int(rows.offsets[row]))
        bad = np.zeros(len(rows), dtype=np.bool_)
        bad[list(failed)] = True
        self._lose(bad, Dropped.EXPRESSION_FAILED, lambda row: failed[row].told)
        return ~bad

    def _drop(self, bad: Mask, reason: Dropped, why: Message | None = None, timed: bool = False) -> None:
        """Loses the `bad` rows, or raises BadRowError for the first one, as the options say."""
        if not bad.any():
            return
        rows, why = self.rows, why or self._why(reason)
        place = int(bad.argmax())
        first = BadRow(rows.origin.part, int(rows.offsets[place]), why(place))
        if self._options.on_bad_row == "fail":
            raise BadRowError(
                f"source '{rows.origin.source}': {first} ({reason.value})",
                "fix the row, or run with --on-bad-row drop",
            )
        self._losses.metrics.example(rows.origin.source, reason, first)
        self._lose(bad, reason, why, timed)

    def _why(self, reason: Dropped) -> Message:
        """What is wrong with a row."""
        broken = self.rows.broken if reason is Dropped.UNREADABLE else None
        if broken is None:
            return lambda row: _WHY[reason]
        return lambda row: _WHY[reason] if (found := broken(row)[0]) is None else f"{_WHY[reason]}: {found}"

    def _lose(self, bad: Mask, why: Dropped, message: Message, timed: bool = False) -> None:
        """Notes the `bad` rows as lost; `timed`: at the times that are known."""
        rows, name, places = self.rows, self._node.name, np.flatnonzero(bad).tolist()
        if takers := self._losses.takers(name, why, len(places)):
            none = [None] * len(places)
            key, value = (none, none) if why is Dropped.UNREADABLE else self._shown(bad)
            broken = rows.broken if why is Dropped.UNREADABLE else None
            raw = None if broken is None else [broken(place)[1] for place in places]
            time = self.times[bad].tolist() if timed else none
            told, cause = [message(place) for place in places], self.causes[bad]
            self._losses.found.append(Lost(takers, name, why.value, cause, True, name, time, key, value, told, raw))
        if places:
            self.rows, self.times, self.causes = rows.filter(~bad), self.times[~bad], self.causes[~bad]

    def _shown(self, bad: Mask) -> tuple[list[str | None], list[str | None]]:
        """Keys and values; null for a row without value."""
        schema, chosen = self._node.schema, pa.array(bad)
        count = int(np.count_nonzero(bad))
        keys, values = ([column.filter(chosen) for column in part] for part in self.columns(schema))
        key: list[str | None] = json_rows(schema.key, keys, count) if schema.key else [None] * count
        value = json_rows(schema.value, values, count)
        if self.rows.deleted is not None:
            gone = self.rows.deleted[bad].tolist()
            value = [None if deleted else text for text, deleted in zip(value, gone, strict=True)]
        return key, value
