"""The windows in which the rows of a table count whose times never change: tumbling and hopping ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Window
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.versioned_columns import spread
from vsc.runtime.values import arrow_type

__all__ = ["RowWindows"]

_MILLISECOND = 1000


class RowWindows:
    """The windows like `window` at one node."""

    def __init__(self, site: Site, window: Window) -> None:
        self._site, self._grace, self._grid = site, window.grace, grid_of(window)

    def of(self, flow: Flow, taken: Mask, added: Mask) -> tuple[Int64s, Int64s, Mask, Mask]:
        """Each change with each window that it concerns and that is open: the numbers of both, and whether the row
        before counted there, and whether the new one does. Those that are too late are counted."""
        time = flow.time if flow.old is None else flow.old.time
        old, new = self._reached(time, taken), self._reached(flow.time, added)
        row, number = (np.concatenate(both) for both in zip(old, new, strict=True))
        is_new = np.repeat([False, True], [len(old[0]), len(new[0])])
        order = np.lexsort((is_new, number, row))
        row, number, is_new = row[order], number[order], is_new[order]
        first = np.append(True, (row[1:] != row[:-1]) | (number[1:] != number[:-1]))[: len(row)]
        place = np.cumsum(first) - 1
        before, after = np.zeros(int(first.sum()), dtype=np.bool_), np.zeros(int(first.sum()), dtype=np.bool_)
        before[place[~is_new]], after[place[is_new]] = True, True
        row, number = row[first], number[first]
        is_open = self._grid.ends(number) + self._grace > self._site.moving(flow)[row]
        self._site.lose(Dropped.WINDOW_CLOSED, flow, row[~is_open])
        return row[is_open], number[is_open], before[is_open], after[is_open]

    def bounds(self, number: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of windows: when they begin and end."""
        bound = arrow_type(self._site.node.schema.key[-1].type)
        both = self._grid.starts(number), self._grid.ends(number)
        return tuple(pa.array(one * _MILLISECOND).view(bound) for one in both)

    def _reached(self, time: Int64s, there: Mask) -> tuple[Int64s, Int64s]:
        """The rows that are there, each with the numbers of its windows."""
        rows = np.flatnonzero(there)
        first, last = self._grid.reached(time[rows])
        many = last - first + 1
        return np.repeat(rows, many), spread(first, many)
