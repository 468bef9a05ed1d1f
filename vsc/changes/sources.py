"""Which source of a new plan is which one of the old plan: by the place that they read, then by name.

A source that reads what another one has read continues that one, whatever the two are called. So names can be passed
on, or swapped. Where no place tells (``memory``), or a source reads from somewhere else now, names do; then columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vsc.changes.values import alike, holds
from vsc.plan import Connector, Node, Plan

__all__ = ["paired_sources", "place"]

_PLACES = ("path", "topic", "table")


def paired_sources(old: Plan, new: Plan) -> dict[str, Node]:
    """By the name of a source of `new`, the source of `old` that it continues, if there is one."""
    pairs: dict[str, Node] = {}
    left = list(old.sources)
    for fits in _BY_PLACE:
        _pair(new.sources, left, pairs, fits)
    _pair(new.sources, left, pairs, lambda was, now: was.name == now.name)
    for node in (one for one in new.sources if one.name not in pairs):
        near = [was for was in left if _declared_alike(was, node) and was.schema == node.schema]
        there = [was for was in near if was.source.connector == node.source.connector]
        grown = [was for was in left if was.source.connector == node.source.connector and _grown(was, node)]
        one = next(iter(there), None) or _only(near) or _only(grown)
        if one is not None:
            pairs[node.name] = one
            left.remove(one)
    return pairs


def _only(found: list[Node]) -> Node | None:
    return found[0] if len(found) == 1 else None


def place(connector: Connector) -> tuple[object, ...]:
    """What a connector reads or writes: its kind, and the folder, topic or table as the topology writes it."""
    options = dict(connector.options)
    return (connector.kind, *(options.get(name) for name in _PLACES))


def _declared_alike(old: Node, new: Node) -> bool:
    """Whether two sources declare the same key, times and deletions."""
    members = ("timestamp", "delete_when", "global_")
    same = all(alike(getattr(old.source, name), getattr(new.source, name)) for name in members)
    return same and old.kind == new.kind and old.schema.key == new.schema.key


def _grown(old: Node, new: Node) -> bool:
    """Whether they differ only in columns that are added, dropped or widened."""
    types = {column.name: column.type for column in old.schema.value}
    both = [(types[column.name], column.type) for column in new.schema.value if column.name in types]
    return _declared_alike(old, new) and all(holds(now, was) for was, now in both)


def _pair(new: Sequence[Node], left: list[Node], found: dict[str, Node], fits: Callable[[Node, Node], bool]) -> None:
    for node in new:
        was = next((one for one in left if node.name not in found and fits(one, node)), None)
        if was is not None:
            found[node.name] = was
            left.remove(was)


def _reads_the_same(was: Node, now: Node) -> bool:
    """Whether both read the same place, and there is one."""
    at = place(now.source.connector)
    return any(at[1:]) and place(was.source.connector) == at and was.kind == now.kind


_BY_PLACE: tuple[Callable[[Node, Node], bool], ...] = (
    lambda was, now: was.name == now.name and _reads_the_same(was, now),
    lambda was, now: was.source.connector == now.source.connector and _reads_the_same(was, now),
    _reads_the_same,
)
