"""The stores of a plan: every place where a stage keeps something, under the name that users use.

A table's store has the name of the table in the topology. What an operator keeps beside it has the operator's name and
a suffix for its kind: ``hourly#windows``, ``closed#suppressed``, ``priced#waiting``, ``enriched#subscriptions``,
``totals#groups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from vsc.plan.clocks import node_clocks
from vsc.plan.nodes import EXPIRING, Aggregate, Node, Plan, Stage
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.layout import askers, stage_of_store, store_prefix
from vsc.runtime.operators.operator import operator_of
from vsc.runtime.operators.views.expiring import EXPIRY
from vsc.runtime.operators.views.limited import limited
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.operators.views.tables import open_table_view
from vsc.runtime.operators.views.view import SideStore, StoreView
from vsc.runtime.state.kv_base import OrderedKV

__all__ = ["find_store", "held_back", "left_behind", "next_due", "open_view", "side_store_of", "stores_of"]


def stores_of(plan: Plan) -> tuple[StoreInfo, ...]:
    """All stores, stage by stage, in the order of the stages' nodes."""
    found: list[StoreInfo] = []
    for stage in plan.stages:
        if stage.id > 0:
            for name in stage.nodes:
                found.extend(_of_node(plan, stage, plan.node(name)))
    return tuple(found)


def find_store(plan: Plan, name: str) -> StoreInfo:
    """The store called `name`, or the only store of node `name`. Raises ConfigurationError if none exists."""
    stores = [s for s in stores_of(plan) if s.canonical]
    named = [s for s in stores if s.name == name] or [s for s in stores if s.owner == name and s.is_table]
    if not named:
        named = [s for s in stores if s.owner == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise ConfigurationError(f"'{name}' keeps {len(named)} stores", f"name one of {_names(named)}")
    known = _names(stores)
    raise ConfigurationError(f"there is no store '{name}'", f"there are {known}" if stores else "it keeps no state")


def _names(stores: Iterable[StoreInfo]) -> str:
    return ", ".join(sorted({s.name for s in stores}))


def open_view(plan: Plan, store: StoreInfo, kv: OrderedKV, starts: Mapping[str, int] | None = None) -> StoreView:
    """Opens `store` in the map of its stage and partition. Nothing is written.

    `starts`: by source, its clock now; it decides what a store still has if the plan goes by the clock of the input.
    """
    node = plan.node(store.node)
    if starts is None or plan.clock == "records":
        return _opened(plan, store, kv, None)
    now, asking = _clocks(plan, store, starts)
    view = _opened(plan, store, kv, min((now, *asking)))
    stays = asking and (store.is_table or not _is_of_sessions(node))
    return limited(view, node, now, min((now, *asking)) if stays else now + 1)


def _is_of_sessions(node: Node) -> bool:
    """Whether it is an aggregate of sessions: one that has closed leaves its group at once, asked for or not."""
    operation = node.operation
    return isinstance(operation, Aggregate) and operation.window is not None and operation.window.kind == "session"


def _opened(plan: Plan, store: StoreInfo, kv: OrderedKV, clock: int | None) -> StoreView:
    if store.is_table:
        return open_table_view(plan, store, kv, clock)
    node = plan.node(store.node)
    return side_store_of(node).view(node, node.operation, store, kv)


def _clocks(plan: Plan, store: StoreInfo, starts: Mapping[str, int]) -> tuple[int, list[int]]:
    """What the clock of a store's node shows, and those of the nodes that look into it."""
    clocks, asking = node_clocks(plan), askers(plan, plan.stages[store.stage]).get(store.node, ())
    return clocks[store.node].shown(starts), [clocks[name].shown(starts) for name in asking]


def left_behind(plan: Plan, stage: Stage, node: Node) -> StoreInfo:
    """The store of what still waits at a join that has a `grace` no longer."""
    operation: Any = node.operation
    waits = replace(node, operation=replace(operation, grace=0))
    return next(store for store in _of_node(plan, stage, waits) if not store.is_table)


def held_back(plan: Plan, stage: Stage, node: Node, kv: OrderedKV) -> int:
    """How many records, windows without a final result or suppressed rows `node` holds."""
    (store,) = (store for store in _of_node(plan, stage, node) if not store.is_table)
    return open_view(plan, store, kv).held


def next_due(plan: Plan, stage: Stage, kv: OrderedKV) -> list[tuple[int, list[str]]]:
    """What the clock of the input shows when the first of what is held in a stage is due, and the sources whose clock
    that is; for each set of sources for which anything waits."""
    clocks = node_clocks(plan)
    found: dict[frozenset[str], int] = {}
    for node in (node for node in map(plan.node, stage.nodes) if node.waits):
        side = side_store_of(node)
        assert side.due is not None, f"{node.operation.op} waits for nothing"
        due = side.due(node, node.operation, kv, store_prefix(stage, node.name) + side.suffix)
        if due is not None:
            for branch in clocks[node.name].branches:
                moment = due + branch.hold
                found[branch.sources] = min(moment, found.get(branch.sources, moment))
    return sorted((due, sorted(sources)) for sources, due in found.items())


def side_store_of(node: Node) -> SideStore:
    """What `node`, which has a store that is not a table's, keeps there."""
    side_store = EXPIRY if node.keeps == EXPIRING else operator_of(node.operation).side_store
    assert side_store is not None
    return side_store


def _of_node(plan: Plan, stage: Stage, node: Node) -> Iterator[StoreInfo]:
    prefix = store_prefix(stage, node.name)
    if node.store is not None:
        home = stage_of_store(plan, node.name)
        yield StoreInfo(
            node.store.name, node.name, node.owner, stage.id, node.store.kind, node.schema.key, node.schema.value,
            ("valid_from", "valid_to"), prefix, node.name, _replicated(plan, node),
            home is None or home.id == stage.id,
        )  # fmt: skip
    kind = node.keeps
    if kind is not None:
        side_store = side_store_of(node)
        contents = side_store.contents(plan, node, node.operation)
        yield StoreInfo(
            f"{node.owner}#{kind}", node.name, node.owner, stage.id, kind, contents.key,
            contents.value, contents.extra, prefix + side_store.suffix, contents.partitioned,
        )  # fmt: skip


def _replicated(plan: Plan, node: Node) -> bool:
    """Whether every partition has all rows: true for a global table, and for what is computed only from such tables."""
    if not node.inputs:
        return node.operation.global_
    return all(_replicated(plan, plan.node(name)) for name in node.inputs)
