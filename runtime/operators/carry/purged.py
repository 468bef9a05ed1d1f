"""Which rows a purge leaves out: all that stores keep under some keys, in every stage, and what else goes by them.

A key of a table is also that of its node's other stores (groups, windows, rows that are held back or expire) and
behind the foreign key in the subscriptions of a join of which the table is the left side. Bytes of keys begin with
those of their leading columns, and only with those (`vsc.runtime.state.keys`).

Not for what other nodes have computed from such rows and keep: `computed_from` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vsc.plan.nodes import Column, Filter, Map, Plan, Subscribe, TableTableJoin
from vsc.plan.order import ordered
from vsc.plan.types import DataType
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.operators.views.question import StoreInfo, encoded_key
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import store_root

__all__ = ["NOTHING", "Purged", "computed_from", "purged", "unbounded"]

_Place = tuple[int, bytes]
"""A store: its stage and its root."""


@dataclass(frozen=True, slots=True)
class Purged:
    """By store, how the keys begin whose rows are left out; keys that stand `behind` another one, with its types."""

    keys: Mapping[_Place, tuple[bytes, ...]] = field(default_factory=dict)
    behind: Mapping[_Place, tuple[tuple[DataType, ...], tuple[bytes, ...]]] = field(default_factory=dict)

    def touches(self, stage: int, root: bytes) -> bool:
        """Whether rows of that store may be left out."""
        return (stage, root) in self.keys or (stage, root) in self.behind

    def has(self, stage: int, root: bytes, key: bytes) -> bool:
        """Whether the row with that record key is left out of the store; more may follow the key."""
        place = stage, root
        if key.startswith(self.keys.get(place, ())):
            return True
        if place not in self.behind:
            return False
        types, keys = self.behind[place]
        return key[KeyCodec(types).decode_first(key)[1] :].startswith(keys)

    def nodes(self, plan: Plan) -> set[str]:
        """The nodes whose own keys they are."""
        return {store.node for store in stores_of(plan) if _place(store) in self.keys}

    def sources(self, plan: Plan) -> set[str]:
        """The sources of whose rows such rows are computed."""
        above, left = set(), [*self.nodes(plan)]
        while left:
            name = left.pop()
            if name not in above:
                above.add(name)
                left += plan.node(name).inputs
        return above.intersection(node.name for node in plan.sources)


NOTHING = Purged()


def purged(plan: Plan, asked: Iterable[tuple[StoreInfo, Mapping[str, Any]]]) -> Purged:
    """What is left out for keys of stores, by column; leading columns are enough. ConfigurationError for a key that a
    store cannot have."""
    keys: dict[_Place, set[bytes]] = {}
    behind: dict[_Place, tuple[tuple[DataType, ...], set[bytes]]] = {}
    for store, key in asked:
        _check_unbounded(plan, store, key)
        encoded = encoded_key(store, key)
        for one in _keyed_alike(plan, store):
            keys.setdefault(_place(one), set()).add(encoded)
        for one in _subscribed(plan, store):
            behind.setdefault(_place(one), (tuple(c.type for c in one.key), set()))[1].add(encoded)
    return Purged(
        {place: tuple(sorted(some)) for place, some in keys.items()},
        {place: (types, tuple(sorted(some))) for place, (types, some) in behind.items()},
    )


def unbounded(plan: Plan, store: StoreInfo) -> tuple[Column, ...]:
    """The key of a store without the bounds of a window."""
    node = plan.node(store.node)
    return store.key[: -node.bounds] if node.bounds and store.key == node.schema.key else store.key


def computed_from(plan: Plan, left_out: Purged) -> list[str]:
    """The stores, not purged themselves, that keep what was computed from rows that are left out."""
    reached = left_out.nodes(plan)
    for node in ordered(plan):
        if reached.intersection(node.inputs):
            reached.add(node.name)
    return sorted({s.name for s in stores_of(plan) if s.node in reached and not left_out.touches(*_place(s))})


def _place(store: StoreInfo) -> _Place:
    return store.stage, store_root(store.prefix)


def _keyed_alike(plan: Plan, store: StoreInfo) -> Iterable[StoreInfo]:
    """All stores of the store's node with its key, in every stage."""
    return (one for one in stores_of(plan) if one.node == store.node and one.key == store.key)


def _subscribed(plan: Plan, store: StoreInfo) -> Iterator[StoreInfo]:
    """The stores in which rows of a table that is the left side of foreign-key joins travel."""
    for one in stores_of(plan) if store.is_table else ():
        senders = map(plan.node, plan.node(one.node).inputs) if one.kind == "subscriptions" else ()
        tables = (name for sender in senders if isinstance(sender.operation, Subscribe) for name in sender.inputs)
        if any(_passes_on(plan, name, store.node) for name in tables):
            yield one


def _passes_on(plan: Plan, name: str, table: str) -> bool:
    """Whether the rows of node `name` are those of `table`, or are computed from them under the same key and not stored
    in between."""
    node = plan.node(name)
    passing = node.store is None and isinstance(node.operation, Filter | Map | TableTableJoin)
    return name == table or (passing and any(_passes_on(plan, above, table) for above in node.inputs))


def _check_unbounded(plan: Plan, store: StoreInfo, key: Mapping[str, Any]) -> None:
    """Refuses the bounds of a window, which do not belong to a group."""
    bounds = [column.name for column in store.key[len(unbounded(plan, store)) :]]
    given = next((name for name in bounds if name in key), None)
    if given is not None:
        raise ConfigurationError(
            f"{given} is a bound of the windows of '{store.name}', whose rows are purged by key",
            f"leave out {' and '.join(bounds)}: all windows of the key go",
        )
