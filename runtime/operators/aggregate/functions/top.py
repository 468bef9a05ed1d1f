"""``collect_top``: the values of the first rows in an order, of equal ones those that came first; ``collect_last``: the
same from the other end, so of equal times the rows that came last, shown in order of time.

Entries: the value of a row at its place, which is what orders it (see `order_bytes`; inverted if the greatest come
first) and its arrival. A stream keeps as many as are collected: a row that is not among them never will be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from vsc.plan.expressions import Literal
from vsc.plan.nodes import AggregateCall
from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.collected import PLACE
from vsc.runtime.operators.aggregate.functions.entries import At, Entries
from vsc.runtime.operators.aggregate.functions.order import order_bytes
from vsc.runtime.state.rows import RowCodec

__all__ = ["CollectTop", "Top", "top_of"]

_INVERTED = bytes(range(255, -1, -1))


@dataclass(frozen=True, slots=True)
class Top:
    """How many rows are collected, and what they are ordered by."""

    count: int
    by: DataType
    place: Callable[[Any, int], bytes]
    """The place of a row, from its ordering value and its arrival."""
    backwards: bool = False
    """Whether the first row is shown last."""

    def shown(self, rows: list[Any]) -> list[Any]:
        """The rows that are collected, as they are shown, given those in front of all others."""
        chosen = rows[: self.count]
        return chosen[::-1] if self.backwards else chosen


def top_of(call: AggregateCall) -> Top:
    """What a call collects."""
    _, by, count, *descending = call.args
    assert isinstance(count, Literal) and isinstance(count.value, int)
    encode = order_bytes(by.type)
    if not descending:
        newest = Top(
            count.value, by.type, lambda value, arrival: (encode(value) + _packed(arrival)).translate(_INVERTED)
        )
        return replace(newest, backwards=True)
    assert isinstance(descending[0], Literal)
    if descending[0].value:
        return Top(count.value, by.type, lambda value, arrival: encode(value).translate(_INVERTED) + _packed(arrival))
    return Top(count.value, by.type, lambda value, arrival: encode(value) + _packed(arrival))


def _packed(arrival: int) -> bytes:
    return arrival.to_bytes(8, "big")


class CollectTop:
    """The rows of a group, one by one. Those of a table are only read here."""

    types: tuple[DataType, ...] = ()
    has_entries = True

    def __init__(self, of: DataType, top: Top) -> None:
        self._row, self._top = RowCodec([of]), top

    def start(self) -> tuple[Any, ...]:
        return ()

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[1] is not None:
            entries.put(PLACE + self._top.place(args[1], at.arrival), self._row.encode(args[:1]))
            self._trim(entries)

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        """No two rows share a place, even across groups."""
        for suffix, data in list(others.scan()):
            entries.put(suffix, data)
        self._trim(entries)

    def _trim(self, entries: Entries) -> None:
        for place, _ in list(islice(entries.scan(PLACE), self._top.count, None)):
            entries.delete(PLACE + place)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The values as a list."""
        found = islice(entries.scan(PLACE), self._top.count)
        return self._top.shown([self._row.decode(data)[0] for _, data in found])
