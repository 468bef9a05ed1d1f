"""``approx_percentile``: the value at its rank among all.

Entries: one for each row, at its value (see `order_bytes`) and its arrival. They are all read wherever a result is
computed: a group costs what its rows do, as with `collect_list`. A row of a table is found by its identity.
"""

from __future__ import annotations

import math
from typing import Any

from vsc.plan.expressions import Literal
from vsc.plan.nodes import AggregateCall
from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.collected import PLACE, CollectList
from vsc.runtime.operators.aggregate.functions.entries import At, Entries
from vsc.runtime.operators.aggregate.functions.order import order_bytes

__all__ = ["Percentile", "placed", "rank_of", "share_of"]

_ARRIVAL = 8


def share_of(call: AggregateCall) -> float:
    """How far up the value is in their order, 0 to 1."""
    share = call.args[1]
    assert isinstance(share, Literal) and isinstance(share.value, float)
    return share.value


def rank_of(share: float, count: int) -> int:
    """The place of the value among `count`, from 0: as in Spark, by the product of two doubles."""
    return max(math.ceil(share * count), 1) - 1


def placed(order: bytes, arrival: int) -> bytes:
    """The place of a row, from its value's `order_bytes` and its arrival."""
    return order + arrival.to_bytes(_ARRIVAL, "big")


class Percentile(CollectList):
    """The rows of a group, one by one, as a list in another order. Those of a table are only read here."""

    def __init__(self, of: DataType, share: float) -> None:
        super().__init__(of)
        self._order, self._share = order_bytes(of), share

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            entries.put(PLACE + placed(self._order(args[0]), at.arrival), self._row.encode(args[:1]))

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value; null without values."""
        rows = [data for _, data in entries.scan(PLACE)]
        return self._row.decode(rows[rank_of(self._share, len(rows))])[0] if rows else None
