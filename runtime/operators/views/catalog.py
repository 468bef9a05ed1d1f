"""The stores of a plan: every place where a stage keeps something, under the name by which a user asks for it.

A table's store has the name that the topology gave it. What an operator keeps beside it has the operator's name and
what it is: ``hourly#windows``, ``closed#suppressed``, ``priced#waiting``, ``enriched#subscriptions``,
``totals#groups``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from vsc.plan.nodes import Aggregate, Answer, Column, Node, Plan, Source, Stage, StreamTableJoin, Suppress
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.layout import owner, stage_of_store
from vsc.runtime.operators.stores import store_prefix

__all__ = ["AGGREGATE_PREFIX", "SUPPRESS_PREFIX", "Kind", "StoreInfo", "find_store", "stores_of"]

Kind = Literal["versioned", "unversioned", "groups", "windows", "sessions", "waiting", "suppressed", "subscriptions"]

AGGREGATE_PREFIX = b"a"
SUPPRESS_PREFIX = b"s"

_EXTRA: dict[Kind, tuple[str, ...]] = {
    "versioned": ("valid_from", "valid_to"),
    "unversioned": ("valid_from", "valid_to"),
    "groups": ("timestamp", "rows"),
    "windows": ("timestamp", "rows"),
    "sessions": ("timestamp", "rows"),
    "waiting": ("timestamp", "due"),
    "suppressed": ("timestamp", "due"),
    "subscriptions": ("timestamp",),
}


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store of a plan.

    `node` is the node in the plan that keeps it, `owner` the user's node that this belongs to. `key` and `value` are
    the columns of its rows, `partitioned` the node by whose key its rows are spread. `replicated`: every partition has
    all rows (a global table). `canonical` is False for a table's further copies, in other stages that read it.
    """

    name: str
    node: str
    stage: int
    kind: Kind
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    prefix: bytes
    partitioned: str
    replicated: bool = False
    canonical: bool = True

    @property
    def owner(self) -> str:
        """The node as the user wrote it."""
        return owner(self.node)

    @property
    def extra(self) -> tuple[str, ...]:
        """What its rows tell beside their columns, each a bigint or null: times in ms, a number of rows."""
        return _EXTRA[self.kind]

    @property
    def names(self) -> tuple[str, ...]:
        """What users read above its rows: the columns, the status, `extra`.

        Where one of these is called as a column is, it is called ``_vsc_...`` instead, which no column may be.
        """
        own = tuple(column.name for column in (*self.key, *self.value))
        taken = {name.lower() for name in own}
        beside = ("_status", *(f"_{name}" for name in self.extra))
        return (*own, *(f"_vsc{name}" if name in taken else name for name in beside))

    @property
    def is_table(self) -> bool:
        """Whether it is a table's own store."""
        return self.kind in ("versioned", "unversioned")


def stores_of(plan: Plan) -> tuple[StoreInfo, ...]:
    """All stores, stage by stage, in the order of the stages' nodes."""
    found: list[StoreInfo] = []
    for stage in plan.stages:
        if stage.id > 0:
            for name in stage.nodes:
                found.extend(_of_node(plan, stage, plan.node(name)))
    return tuple(found)


def find_store(plan: Plan, name: str) -> StoreInfo:
    """The store called `name`, or the only one that node `name` keeps; ConfigurationError if there is none."""
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


def _of_node(plan: Plan, stage: Stage, node: Node) -> list[StoreInfo]:
    found = []
    if node.store is not None:
        home = stage_of_store(plan, node.name)
        found.append(
            StoreInfo(
                node.store.name, node.name, stage.id, node.store.kind, node.schema.key, node.schema.value,
                store_prefix(stage, node.name), node.name, _replicated(plan, node), home is None or home.id == stage.id,
            )
        )  # fmt: skip
    beside = _beside(plan, stage, node)
    return found if beside is None else [*found, beside]


def _beside(plan: Plan, stage: Stage, node: Node) -> StoreInfo | None:
    """What the node's operator keeps that is not the node's table."""
    prefix = store_prefix(stage, node.name)
    match node.operation:
        case Aggregate(window=window):
            kind: Kind = "groups" if window is None else "sessions" if window.kind == "session" else "windows"
            key, value, prefix = node.schema.key, node.schema.value, prefix + AGGREGATE_PREFIX
            return StoreInfo(f"{node.name}#{kind}", node.name, stage.id, kind, key, value, prefix, node.name)
        case Suppress():
            before = plan.node(node.inputs[0]).schema
            prefix += SUPPRESS_PREFIX
            name = f"{node.name}#suppressed"
            return StoreInfo(name, node.name, stage.id, "suppressed", before.key, before.value, prefix, node.name)
        case StreamTableJoin(grace=grace) if grace is not None:
            stream = plan.node(node.inputs[0])
            name, key, value = f"{node.name}#waiting", node.schema.key, stream.schema.value
            return StoreInfo(name, node.name, stage.id, "waiting", key, value, prefix, stream.name)
        case Answer(left_schema=left):
            subscribe, right = (plan.node(name) for name in node.inputs)
            columns = tuple(Column(f"left_{c.name}", c.type) for c in (*left.key, *left.value))
            name = f"{owner(node.name)}#subscriptions"
            key = right.schema.key
            return StoreInfo(name, node.name, stage.id, "subscriptions", key, columns, prefix, subscribe.name)
        case _:
            return None


def _replicated(plan: Plan, node: Node) -> bool:
    """Whether every partition has all rows: a global table, and what is made of nothing else."""
    if isinstance(node.operation, Source):
        return node.operation.global_
    return bool(node.inputs) and all(_replicated(plan, plan.node(name)) for name in node.inputs)
