"""What a `suppress` keeps beside its table: the rows that it holds back, and a view of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vsc.plan.nodes import Column, Node, Plan
from vsc.plan.nodes import Suppress as Operation
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import Lookup, TableRows
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.tables.store import NO_RECORD
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Beside, Contents, Entry, clock
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.suppressed import MOVING, Suppressed

__all__ = ["HELD", "SUFFIX", "Hidden", "behind_held", "opened"]

SUFFIX = b"s"
_UNKNOWN = -1
"""The valid from of a row of which a `suppress` hides a change."""


def opened(site: Site) -> Suppressed:
    """The held rows of a site's `suppress`."""
    return Suppressed(site.kv, site.prefix + SUFFIX)


@dataclass(frozen=True, slots=True)
class Hidden:
    """For each record that looks up a key: whether a change of the key is `held`, and the row before the change.

    `place` is that row's place in `pool`, -1 without a row.
    """

    held: Mask
    place: Int64s
    pool: Pool


def behind_held(behind: Lookup, hidden: Callable[[Flow], Hidden]) -> Lookup:
    """The look-up into a `suppress`, as if the held changes had not happened yet; `behind` looks into its input."""

    def find(flow: Flow) -> TableRows:
        found, ours = behind(flow), hidden(flow)
        held = ours.held
        if not held.any():
            return found
        count = len(held)
        columns = stacked(found.values, ours.pool.take(ours.place))
        missed = np.where(held, np.where(ours.place >= 0, 0, NO_RECORD), found.missed).astype(np.uint8)
        places = np.where(missed == 0, np.where(held, count + np.arange(count), np.arange(count)), -1)
        failed = {row: failure for row, failure in found.failed.items() if not held[row]}
        return TableRows(missed, np.where(held, _UNKNOWN, found.time), taken(columns, places), failed)

    return find


class _View:
    """The held rows, in the order in which they come out; `due`: the stream time that releases one."""

    def __init__(self, node: Node, operation: Operation, info: StoreInfo, kv: OrderedKV) -> None:
        self._held, self._wait = Suppressed(kv, info.prefix), operation.wait
        self._keys = KeyCodec([c.type for c in info.key])
        self._rows = RowCodec([c.type for c in info.value])

    @property
    def stream_time(self) -> int | None:
        return clock(self._held.stream_time)

    @property
    def held(self) -> int:
        return self._held.count

    def rows(self) -> int:
        return self.held

    def answer(self, question: Question) -> Iterator[Entry]:
        for one in self._held.all():
            if question.wants(one.key):
                row = None if one.row is None else self._rows.decode(one.row)
                status = Status.TOMBSTONE if row is None else Status.WAITING
                extra = (one.timestamp, one.place + self._wait)
                yield Entry(status, one.key, self._keys.decode(one.key), row, extra)


def _contents(plan: Plan, node: Node, operation: Operation) -> Contents:
    before = plan.node(node.inputs[0]).schema
    return Contents(("timestamp", "due"), before.key, before.value, node.name)


def _encoded(plan: Plan, node: Node, operation: Operation) -> tuple[Column, ...]:
    return plan.node(node.inputs[0]).schema.value


HELD = Beside(SUFFIX, _contents, _View, lambda _: MOVING, _encoded)
