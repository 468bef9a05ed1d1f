"""Where a plan's nodes run: its stages.

Stage 0 reads the sources and does what needs no state and no key. Every other stage is what can be computed without
moving a record to another partition. The number of a node's stage is its *level*:

* a stream source 0; a stateless stream node that of its input; a re-key that of its input, at the end of its stage;
* a join with a table the highest of 1, the level of its stream (one more, if that was re-keyed) and that of its table;
* a table at least 1, and the level of the stream that it is made of;
* a stateless stream node at least 1 where both it and its input are read by key. Kafka Streams takes a record depth
  first, each consumer in the order of its declaration, and only one stage can do that for both of them.

A table stands, with all that it comes from, in every stage in which a join reads it: its rows have to be where the
stream's records are, and its state is kept once for each. The first of them hands its changes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vsc.plan import Node, Rekey, Source, Stage, StageInput, StreamTableJoin, ToTable

__all__ = ["stages"]


def stages(nodes: Sequence[Node]) -> tuple[Stage, ...]:
    """The stages of `nodes`, which are in an order in which inputs come first; ids from 0 on, without gaps."""
    by_name = {node.name: node for node in nodes}
    levels = _levels(nodes)
    placed = _places(nodes, by_name, levels)
    numbers = {level: number for number, level in enumerate(sorted({0}.union(*placed.values())))}
    built = []
    for level, number in numbers.items():
        inside = [node for node in nodes if level in placed[node.name]]
        names = tuple(node.name for node in inside)
        emits = tuple(node.name for node in inside if level == _emitting(node, placed[node.name]))
        built.append(Stage(number, names, _inputs(inside, nodes, level), emits))
    return tuple(built)


def _levels(nodes: Sequence[Node]) -> dict[str, int]:
    """The lowest stage in which each node can run; for a source table the one that keeps it."""
    levels: dict[str, int] = {}
    moving: set[str] = set()  # streams whose records do not stand where their key belongs
    together = _read_together(nodes)
    for node in nodes:
        keyed = _is_keyed(node)
        least = 1 if keyed or node.name in together else 0
        levels[node.name] = max(
            [least, *(levels[name] + (1 if keyed and name in moving else 0) for name in node.inputs)]
        )
        if isinstance(node.operation, Rekey) or (not keyed and not moving.isdisjoint(node.inputs)):
            moving.add(node.name)
    return levels


def _is_keyed(node: Node) -> bool:
    """Whether a node has to have the records of one key in one place."""
    return node.kind == "table" or isinstance(node.operation, StreamTableJoin)


def _read_together(nodes: Sequence[Node]) -> frozenset[str]:
    """The stateless stream nodes that lead to a reader by key, as does their input without them."""
    by_key = {name for node in nodes if _is_keyed(node) for name in node.inputs}
    leading = set(by_key)
    found = set()
    for node in reversed(nodes):
        if _is_keyed(node) or isinstance(node.operation, Source | Rekey) or node.name not in leading:
            continue
        leading.update(node.inputs)
        if not by_key.isdisjoint(node.inputs):
            found.add(node.name)
    return frozenset(found)


def _places(nodes: Sequence[Node], by_name: Mapping[str, Node], levels: Mapping[str, int]) -> dict[str, frozenset[int]]:
    """The levels at which each node runs: one for a stream, one or more for a table, 0 too for a source table."""
    places: dict[str, set[int]] = {node.name: set() for node in nodes}
    for node in reversed(nodes):
        if node.kind == "stream":
            places[node.name].add(levels[node.name])
            if isinstance(node.operation, StreamTableJoin):
                places[node.inputs[1]].add(levels[node.name])
        elif not isinstance(node.operation, Source | ToTable):
            for read in node.inputs:
                places[read].update(places[node.name])
    for node in nodes:
        if node.kind == "table" and not places[node.name]:
            _place_unread(node, by_name, levels, places)
    for node in nodes:
        if node.kind == "table" and isinstance(node.operation, Source):
            places[node.name].add(0)
    return {name: frozenset(found) for name, found in places.items()}


def _place_unread(
    node: Node, by_name: Mapping[str, Node], levels: Mapping[str, int], places: Mapping[str, set[int]]
) -> None:
    """A table that no join reads runs where what it comes from runs first, or else as early as it can."""
    way = [node]
    while not isinstance(way[-1].operation, Source | ToTable) and not places[way[-1].name]:
        way.append(by_name[way[-1].inputs[0]])
    level = min(places[way[-1].name], default=levels[node.name])
    for passed in way:
        places[passed.name].add(level)


def _emitting(node: Node, places: frozenset[int]) -> int:
    """The level whose changes of `node` go on: the first that keeps it, for a source table not the one that reads."""
    if node.kind == "table" and isinstance(node.operation, Source):
        return min(level for level in places if level > 0)
    return min(places)


def _inputs(inside: Sequence[Node], nodes: Sequence[Node], level: int) -> tuple[StageInput, ...]:
    """What enters a stage, in the order of the plan: inputs that are not in it, and its source tables from stage 0."""
    if level == 0:
        return ()
    names = {node.name for node in inside}
    entering = {name for node in inside for name in node.inputs if name not in names}
    entering.update(node.name for node in inside if isinstance(node.operation, Source))
    return tuple(StageInput(node.name) for node in nodes if node.name in entering)
