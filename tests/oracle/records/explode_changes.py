"""First step of an `explode` of a table: the changes of the elements of its arrays, under their positions."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.records.consumer import Before, RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from vsc.runtime.metrics import Dropped

__all__ = ["ExplodeChanges"]


class ExplodeChanges:
    """`versioned`: the table's status; then a change that is not its key's newest is dropped, and counted.

    An element that is as it was, with all columns of its row, sends nothing; NaN is as it was, another zero is not.
    `places`: that of the element among the columns, and that of its position in the key; `kept`: those of the table's
    columns that stay.
    """

    def __init__(
        self, name: str, array: Values, places: tuple[int, int], kept: Sequence[int], versioned: bool,
        context: Context, forward: RecordConsumer,
    ) -> None:  # fmt: skip
        self._name = name
        self._array = array
        self._element, self._position = places
        self._kept = kept
        self._versioned = versioned
        self._context = context
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        now: list[Row] = []
        if new is not None:
            try:
                now = self._rows(key, new, time)
            except NodeFailure as failure:
                self._context.failed(failure)
        before: list[Row] = []
        if old is not None:
            try:
                before = self._rows(key, old, old.time)
            except NodeFailure:
                before = []  # it failed, and was dealt with, when it was the new row
        for position in range(max(len(now), len(before))):
            row = now[position] if position < len(now) else None
            if row is not None and position < len(before) and repr(row) == repr(before[position]):
                continue
            self._forward((*key[: self._position], position, *key[self._position :]), row, time)

    def _rows(self, key: Row, row: Row, time: int) -> list[Row]:
        (elements,) = self._array(key + row, None, time, None)
        kept = [row[place] for place in self._kept]
        return [tuple([*kept[: self._element], element, *kept[self._element :]]) for element in elements or ()]
