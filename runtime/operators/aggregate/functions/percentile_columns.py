"""``approx_percentile`` in a batch, with the same entries as `aggregate.functions.percentile`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.collected import PLACE
from vsc.runtime.operators.aggregate.functions.collecting import Collected, Group, Ranked, Stretch
from vsc.runtime.operators.aggregate.functions.order import order_bytes
from vsc.runtime.operators.aggregate.functions.percentile import placed, rank_of
from vsc.runtime.operators.aggregate.functions.states import Rows, State
from vsc.runtime.values import to_values

__all__ = ["PercentileColumns"]


class PercentileColumns(Collected):
    """Groups in a batch. A state is a list with the value's number, without values an empty one."""

    def __init__(self, of: DataType, share: float) -> None:
        super().__init__(of, PLACE)
        self._order, self._share = order_bytes(of), share

    def _empty(self, group: int) -> Group:
        return Ranked(self.ranges, group)

    def _read(self, kept: Group, names: list[bytes], numbers: range) -> list[int]:
        assert isinstance(kept, Ranked)
        begin = len(kept.prefix) + len(PLACE)
        kept.places, kept.numbers = [name[begin:] for name in names], list(numbers)
        return self._chosen(kept)

    def _chosen(self, kept: Ranked) -> list[int]:
        return [kept.numbers[rank_of(self._share, len(kept.numbers))]] if kept.numbers else []

    def _prepare(self, rows: Rows) -> None:
        values, arrivals = to_values(rows.args[0], self._of), rows.arrival.tolist()
        self._places = [
            b"" if value is None else placed(self._order(value), arrival)
            for value, arrival in zip(values, arrivals, strict=True)
        ]

    def _add(self, kept: Group, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        assert isinstance(kept, Ranked)
        place = self._places[at]
        kept.added[PLACE + place] = number
        if ident:
            kept.identified(ident, place)
        kept.insert(place, number)
        return self._lists.of(self._chosen(kept))

    def _remove(self, kept: Group, now: Stretch, at: int, ident: bytes) -> Stretch:
        assert isinstance(kept, Ranked)
        place = kept.taken(ident)
        if place is None:
            return now
        kept.delete(PLACE + place)
        kept.take_out(place)
        return self._lists.of(self._chosen(kept))

    def results(self, state: State) -> pa.Array:
        lists = super().results(state)
        length = state[1]
        return lists.flatten().take(pa.array(np.cumsum(length) - 1, mask=length == 0))
