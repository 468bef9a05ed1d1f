"""Opens a store for reading, by its kind."""

from __future__ import annotations

from vsc.plan.nodes import Plan
from vsc.runtime.operators.views.catalog import StoreInfo
from vsc.runtime.operators.views.groups import GroupsView
from vsc.runtime.operators.views.tables import open_table_view
from vsc.runtime.operators.views.view import StoreView
from vsc.runtime.operators.views.waiting import open_waiting_view
from vsc.runtime.state.kv import OrderedKV

__all__ = ["open_view"]


def open_view(plan: Plan, store: StoreInfo, kv: OrderedKV) -> StoreView:
    """Opens `store` in the map of its stage and partition. Nothing is written."""
    if store.is_table:
        return open_table_view(plan, store, kv)
    if store.kind in ("groups", "windows", "sessions"):
        return GroupsView(plan, store, kv)
    return open_waiting_view(plan, store, kv)
