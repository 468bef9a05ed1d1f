"""Where a plan's nodes run: its stages.

Stage 0 reads the sources and does what needs no state and no key. Every other stage is what can be computed without
moving a record to another partition. The number of a node's stage is its *level* (see `levels`).

A table is in every stage that has a reader of it, together with everything that it comes from: its rows must be where
its readers are, and each of these stages keeps its state. Each also takes the table's input: the rows of its sources,
and the records of the stream that a `to_table` or an aggregate reads. The first of them emits its changes. A stream is
in one stage only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vsc.compiler.lower.levels import find_levels, is_made_of_stream
from vsc.plan import Node, Stage, StageInput

__all__ = ["stages"]


def stages(nodes: Sequence[Node]) -> tuple[Stage, ...]:
    """The stages of `nodes`, whose inputs come first; ids from 0, without gaps."""
    placed = _places(nodes, find_levels(nodes))
    numbers = {level: number for number, level in enumerate(sorted({0}.union(*placed.values())))}
    built = []
    for level, number in numbers.items():
        inside = [node for node in nodes if level in placed[node.name]]
        names = tuple(node.name for node in inside)
        emits = tuple(node.name for node in inside if level == _emitting(node, placed[node.name]))
        built.append(Stage(number, names, _inputs(inside, nodes, level), emits))
    return tuple(built)


def _places(nodes: Sequence[Node], levels: Mapping[str, int]) -> dict[str, frozenset[int]]:
    """The levels at which each node runs: one for a stream, one or more for a table, 0 too for a source table."""
    by_name = {node.name: node for node in nodes}
    places: dict[str, set[int]] = {node.name: set() for node in nodes}
    for node in reversed(nodes):
        if node.kind == "stream":
            places[node.name].add(levels[node.name])
        _place_inputs(node, by_name, places)
    for node in reversed(nodes):
        if not places[node.name]:  # a table that nothing reads, or only such tables
            free = _where_it_is_kept(node, by_name, places)
            at_least = levels[node.name]
            places[node.name].add(min((level for level in free or () if level >= at_least), default=at_least))
            _place_inputs_of_tables(node, by_name, places)
    for node in nodes:
        if node.kind == "table" and not node.inputs:
            places[node.name].add(0)
    return {name: frozenset(found) for name, found in places.items()}


def _place_inputs(node: Node, by_name: Mapping[str, Node], places: Mapping[str, set[int]]) -> None:
    """Places the tables that `node` reads wherever it is."""
    for name in node.inputs:
        if by_name[name].kind == "table":
            places[name].update(places[node.name])


def _place_inputs_of_tables(node: Node, by_name: Mapping[str, Node], places: Mapping[str, set[int]]) -> None:
    _place_inputs(node, by_name, places)
    for name in node.inputs:
        if by_name[name].kind == "table":
            _place_inputs_of_tables(by_name[name], by_name, places)


def _where_it_is_kept(node: Node, by_name: Mapping[str, Node], places: Mapping[str, set[int]]) -> frozenset[int] | None:
    """The levels at which everything that `node` comes from is kept anyway; None if nothing of it is kept so far."""
    if places[node.name]:
        return frozenset(places[node.name])
    if not node.inputs or is_made_of_stream(node):
        return None
    known = [found for name in node.inputs if (found := _where_it_is_kept(by_name[name], by_name, places)) is not None]
    return frozenset.intersection(*known) if known else None


def _emitting(node: Node, places: frozenset[int]) -> int:
    """The level that emits the changes of `node`: the first that keeps it, for a source table not level 0.

    Every partition keeps a global table, so its rows are emitted once, where they are read.
    """
    if node.kind == "table" and not node.inputs and not node.operation.global_:
        return min(level for level in places if level > 0)
    return min(places)


def _inputs(inside: Sequence[Node], nodes: Sequence[Node], level: int) -> tuple[StageInput, ...]:
    """What a stage receives, in the order of the plan: inputs from elsewhere, and its source tables from stage 0."""
    if level == 0:
        return ()
    names = {node.name for node in inside}
    entering = {name for node in inside for name in node.inputs if name not in names}
    entering.update(node.name for node in inside if not node.inputs)
    return tuple(StageInput(node.name, node.operation.global_) for node in nodes if node.name in entering)
