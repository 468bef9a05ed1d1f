"""What is kept in all stages, as its readers see it and byte for byte, so that two states can be compared."""

from __future__ import annotations

import struct
from typing import Any

from tests.oracle.records.tables import Content
from vsc.plan.nodes import Aggregate, Plan
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.operators.views import Question
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.state.kv import MemoryKV, OrderedKV, prefix_end
from vsc.runtime.state.kv_base import store_root

__all__ = ["Shown", "Stores", "bytes_kept", "shown", "shown_in"]

_MARKS = (struct.pack("<4sH", b"VSTS", 1), struct.pack("<4sH", b"VSUB", 1))

Shown = tuple[int | None, int, list[str]]
"""A `Content` with its rows as text: NaN is equal to itself and 0.0 is not -0.0."""


class Stores:
    """Keeps the state of every stage and partition, whoever opens it. `starts`: the clocks of sources, if kept here."""

    def __init__(self) -> None:
        self.starts: dict[str, int] = {}
        self._kept: dict[tuple[int, int], MemoryKV] = {}

    def __call__(self, stage: int, partition: int) -> MemoryKV:
        """The state of one stage and partition."""
        return self._kept.setdefault((stage, partition), MemoryKV())

    def content(self, plan: Plan) -> dict[Any, Shown]:
        """What lies in every store: by stage, partition, node, and whether it is the node's table or beside it."""
        found: dict[Any, Shown] = {}
        for (stage, partition), kv in sorted(self._kept.items()):
            found |= {(stage, partition, *place): one for place, one in shown_in(plan, stage, kv).items()}
        return found

    def bytes_kept(self, plan: Plan) -> dict[Any, bytes]:
        """See the function, for all stages and partitions."""
        found: dict[Any, bytes] = {}
        for (stage, partition), kv in sorted(self._kept.items()):
            found |= {(stage, partition, key): value for key, value in bytes_kept(plan, stage, kv).items()}
        return found


def shown(content: Content) -> Shown:
    """The content with its rows as text."""
    clock, held, rows = content
    return clock, held, [repr(row) for row in rows]


def shown_in(plan: Plan, stage: int, kv: OrderedKV) -> dict[tuple[str, str], Shown]:
    """What lies in the stores of a stage, by node, and whether it is the node's table or beside it."""
    stores = [store for store in stores_of(plan) if store.stage == stage]
    return {(s.node, "table" if s.is_table else "beside"): shown(_content(plan, s, kv)) for s in stores}


def _content(plan: Plan, store: StoreInfo, kv: OrderedKV) -> Content:
    view = open_view(plan, store, kv)
    grouped = isinstance(plan.node(store.node).operation, Aggregate) and not store.is_table
    rows = [
        (entry.key, entry.value, *entry.extra, *([str(entry.status)] if grouped else []))
        for entry in view.answer(Question(history=store.is_table))
    ]
    return view.stream_time, view.held, rows


def bytes_kept(plan: Plan, stage: int, kv: OrderedKV) -> dict[bytes, bytes]:
    """Every row of a stage's map, but for those of versioned stores: when they clear what is too old is up to them; and
    for marks that say nothing except that a store has been written to."""
    rows = {key: value for key, value in kv.scan(b"", None) if value not in _MARKS}
    for name in plan.stages[stage].nodes:
        store = plan.node(name).store
        if store is not None and store.kind == "versioned":
            root = store_root(store_prefix(plan.stages[stage], name))
            for key, _ in kv.scan(root, prefix_end(root)):
                rows.pop(key, None)
    return rows
