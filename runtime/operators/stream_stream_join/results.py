"""The results of a join of streams: of pairs and of single records, computed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import StreamStreamJoin
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.evaluation import Side as Seen
from vsc.runtime.operators.columns.flow import Flow, blanked, taken
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.stream_stream_join.sides import Layout, Side
from vsc.runtime.records import Int64s, Mask

__all__ = ["Made", "Results"]


@dataclass(frozen=True, slots=True)
class Made:
    """What a result is made of: its moment, its key's number, and the places of its records in the columns of the
    sides, -1 without one. Where `of_left` the left record is the one to which it happens."""

    at: Moments
    key: Int64s
    places: tuple[Int64s, Int64s]
    of_left: Mask

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: Int64s) -> Made:
        """The results at `rows`."""
        left, right = self.places
        return Made(self.at.take(rows), self.key[rows], (left[rows], right[rows]), self.of_left[rows])

    @staticmethod
    def merged(parts: Sequence[Made]) -> Made:
        """All results, in the order of their moments."""
        at = Moments.concat([part.at for part in parts])
        every = Made(
            at,
            np.concatenate([part.key for part in parts]),
            (np.concatenate([part.places[0] for part in parts]), np.concatenate([part.places[1] for part in parts])),
            np.concatenate([part.of_left for part in parts]),
        )
        return every.take(processing(at))


class Results:
    """Computes results at one node."""

    def __init__(self, site: Site, operation: StreamStreamJoin, layout: Layout) -> None:
        self._site, self._layout = site, layout
        self._items = site.evaluation(operation.items, 2)

    def of(self, made: Made, sides: Sequence[Side], waited: Mask) -> Flow:
        """The results. `waited`: which happen at another moment than that of their record."""
        site, times = self._site, self._times(made, sides)
        absent = [places < 0 for places in made.places]
        keys = self._keys(made)
        columns = [side.columns(self._layout, places) for side, places in zip(sides, made.places, strict=True)]
        seen = []
        for side, wanted in enumerate(self._items.wanted):
            width = len(keys)
            own = blanked([keys[i] for i in wanted if i < width], ~absent[side])
            values = [columns[side][i - width] for i in wanted if i >= width]
            seen.append(Seen((*own, *values), times[side], absent[side] if absent[side].any() else None))
        found = self._items.run(*seen)
        time = np.where(absent[0], times[1], np.where(absent[1], times[0], np.maximum(*times)))
        there = np.ones(len(made), dtype=np.bool_)
        flow = Flow(made.at, made.key, site.space, time, there, keys, found.columns)
        return flow.select(self._kept(made, found.failed, sides, waited)) if found.failed else flow

    def records(self, made: Made, sides: Sequence[Side], number: int) -> Flow:
        """The records of a side to which results happen, at the moments of these."""
        rows = np.flatnonzero(made.of_left == (number == 0))
        chosen, side = made.take(rows), sides[number]
        values = side.columns(self._layout, chosen.places[number])
        there = np.ones(len(rows), dtype=np.bool_)
        time = side.times(chosen.places[number])
        return Flow(chosen.at, chosen.key, self._site.space, time, there, self._keys(chosen), values)

    def _kept(self, made: Made, failed: Failed, sides: Sequence[Side], waited: Mask) -> Mask:
        """Which results are left; the others are lost with the records to which they happen."""
        kept = np.ones(len(made), dtype=np.bool_)
        kept[list(failed)] = False
        failing = np.flatnonzero(~kept)
        for number in (0, 1):
            for late in (False, True):
                rows = failing[(made.of_left[failing] == (number == 0)) & (waited[failing] == late)]
                if len(rows):
                    why = {place: failed[row] for place, row in enumerate(rows.tolist())}
                    flow = self.records(made.take(rows), sides, number)
                    self._site.kept(flow, why, self._site.inputs[number], waited=late)
        return kept

    def _times(self, made: Made, sides: Sequence[Side]) -> tuple[Int64s, Int64s]:
        left, right = (side.times(places) for side, places in zip(sides, made.places, strict=True))
        return left, right

    def _keys(self, made: Made) -> tuple[pa.Array, ...]:
        """The key columns."""
        space = self._site.space
        numbers, row = np.unique(made.key, return_inverse=True)
        decoded = space.codec.decode_columns([space.keys[number] for number in numbers.tolist()])
        return taken(decoded, row)
