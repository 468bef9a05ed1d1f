"""What a `suppress` keeps beside its table: the rows that it holds back, and a view of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vsc.plan.nodes import Column, Node, Plan
from vsc.plan.nodes import Suppress as Operation
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.tables.lookups import NO_RECORD, Lookup, TableRows
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.operators.views.view import Contents, SideStore, Waiting, WaitingView
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.suppressed import FAR, MOVING, Suppressed

__all__ = ["HELD", "SUFFIX", "Hidden", "behind_held"]

SUFFIX = b"s"
_UNKNOWN = -1
"""The valid from of a row of which a `suppress` hides a change."""


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
        looked_up, ours = behind(flow), hidden(flow)
        held = ours.held
        if not held.any():
            return looked_up
        count = len(held)
        columns = stacked(looked_up.values, ours.pool.take(ours.place))
        missed = np.where(held, np.where(ours.place >= 0, 0, NO_RECORD), looked_up.missed).astype(np.uint8)
        places = np.where(missed == 0, np.where(held, count + np.arange(count), np.arange(count)), -1)
        failed = {row: failure for row, failure in looked_up.failed.items() if not held[row]}
        return TableRows(missed, np.where(held, _UNKNOWN, looked_up.time), taken(columns, places), failed)

    return find


def _view(node: Node, operation: Operation, info: StoreInfo, kv: OrderedKV) -> WaitingView:
    held, wait = Suppressed(kv, info.prefix), operation.wait

    def waiting() -> Iterator[Waiting]:
        return ((one.key, one.row, one.timestamp, one.place + wait) for one in held.all())

    return WaitingView(info, held.stream_time, held.count, waiting)


def _contents(plan: Plan, node: Node, operation: Operation) -> Contents:
    before = plan.node(node.inputs[0]).schema
    return Contents(("timestamp", "due"), before.key, before.value, node.name)


def _encoded(plan: Plan, node: Node, operation: Operation) -> tuple[Column, ...]:
    return plan.node(node.inputs[0]).schema.value


def _due(node: Node, operation: Operation, kv: OrderedKV, prefix: bytes) -> int | None:
    first = next(Suppressed(kv, prefix).until(FAR), None)
    return None if first is None else first.place + operation.wait


HELD = SideStore(SUFFIX, _contents, _view, lambda _: MOVING, _encoded, _due)
