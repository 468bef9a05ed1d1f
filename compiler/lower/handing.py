"""Facts about nodes and stages that follow from the whole plan, so that the runtime need not derive them.

* Which stage hands what to which.
* By how many of its key columns a node's records are partitioned. The rows of a windowed table are in the partition of
  their group, whatever their window; what is joined with such a table, or inherits its key, is partitioned alike.
* Which nodes must send the row before a change, and whether a change is the newest of its key. These are Kafka's rules
  (KTable.enableSendingOldValues): a table sends old rows if a reader needs them; one without a store needs them from
  its input. A sink that applies only the newest changes is such a reader.
* Which nodes must say until when a change is valid: those that a complete history is computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise

from vsc.plan import Filter, HandOver, Node, Sink, Stage

__all__ = ["completed"]

_BOUNDS = 2
"""The key columns of a window: its start and its end."""


def completed(
    nodes: Sequence[Node], stages: Sequence[Stage], sinks: Sequence[Sink]
) -> tuple[tuple[Node, ...], tuple[Stage, ...]]:
    """The nodes and stages, with these facts filled in."""
    by_name = {node.name: node for node in nodes}
    bounds = _bounds(nodes)
    found = tuple(_deduping(replace(node, bounds=bounds[node.name]), by_name) for node in nodes)
    by_name = {node.name: node for node in found}
    newest = {sink.node for sink in sinks if sink.connector.newest_only and _versioned(by_name[sink.node])}
    return found, tuple(_stage(stage, by_name, stages, newest.intersection(stage.emits)) for stage in stages)


def _stage(stage: Stage, by_name: Mapping[str, Node], stages: Sequence[Stage], newest: Set[str]) -> Stage:
    """The stage, completed; of the tables `newest`, sinks take only the newest changes."""
    readers: dict[str, list[tuple[Node, int]]] = {}
    moved: list[str] = []
    for node in (by_name[name] for name in stage.nodes):
        for port, name in enumerate(node.taken):
            readers.setdefault(name, []).append((node, port))
        if node.operation.moves or not set(moved).isdisjoint(node.taken):
            moved.append(node.name)

    def asked(
        asks: Callable[[Node, int], bool], passes: Callable[[Node], bool], name: str, sinks: Set[str] = frozenset()
    ) -> bool:
        return name in sinks or any(
            asks(n, port) or (passes(n) and asked(asks, passes, n.name, sinks)) for n, port in readers.get(name, ())
        )

    tables = [name for name in stage.nodes if by_name[name].kind == "table"]
    return replace(
        stage,
        hands_on=_hands_on(stage, stages),
        moved=tuple(moved),
        depth=stage.id,
        old=tuple(name for name in tables if asked(_asks_old, _passes_old, name)),
        latest=tuple(name for name in tables if asked(_asks_latest, _is_computed, name, newest)),
        intervals=tuple(name for name in tables if asked(_asks_interval, _is_computed, name)),
    )


def _hands_on(stage: Stage, stages: Sequence[Stage]) -> tuple[HandOver, ...]:
    found: dict[str, list[int]] = {}
    for later in stages:
        for name in (entry.node for entry in later.inputs):
            giving = stages[0] if name in stages[0].nodes else next(s for s in stages if name in s.emits)
            if giving is stage:
                found.setdefault(name, []).append(later.id)
    return tuple(HandOver(name, tuple(ids)) for name, ids in found.items())


# ------------------------------------------------------------------------------------------------------ partitioning


def _bounds(nodes: Sequence[Node]) -> dict[str, int]:
    first = {node.name: node.name for node in nodes}

    def root(name: str) -> str:
        while first[name] != name:
            name = first[name]
        return name

    for node in nodes:
        for one, other in _of_one_key(node):
            first[root(one)] = root(other)
    windowed = {root(node.name) for node in nodes if node.operation.begins_windows}
    return {node.name: _BOUNDS if root(node.name) in windowed else 0 for node in nodes}


def _of_one_key(node: Node) -> Iterator[tuple[str, str]]:
    """The pairs of nodes that `node` requires to be partitioned alike."""
    operation = node.operation
    meeting = node.inputs if operation.by_key else node.taken
    yield from pairwise(meeting)
    if meeting and not operation.moves and not operation.begins_windows:
        yield node.name, meeting[0]


# ------------------------------------------------------------------------------------------------------- rows before


def _deduping(node: Node, by_name: Mapping[str, Node]) -> Node:
    if not isinstance(node.operation, Filter) or node.kind != "table":
        return node
    table = by_name[node.inputs[0]]
    versioned = _versioned(table)
    while table.store is None and table.operation.row_by_row:
        table = by_name[table.inputs[0]]
    dedupe = not versioned and table.store is not None
    return replace(node, operation=replace(node.operation, dedupe=dedupe))


def _versioned(table: Node) -> bool:
    return table.status is not None and table.status.versioned


def _is_computed(node: Node) -> bool:
    return node.kind == "table" and node.store is None and node.operation.row_by_row


def _asks_old(node: Node, port: int) -> bool:
    knows = node.store is not None and node.operation.row_by_row  # its own store knows what it held
    return not knows and not node.complete and node.operation.asks_old(port)


def _passes_old(node: Node) -> bool:
    return _is_computed(node) or (node.store is None and node.operation.old_of_inputs)


def _asks_latest(node: Node, port: int) -> bool:
    return node.operation.asks_latest(port)


def _asks_interval(node: Node, port: int) -> bool:
    return node.complete or node.operation.complete
