"""How each node tells the time with `Plan.clock` ``input``, and which stages have to know that time passes (D25).

The *input's clock* at a place in D12's order is the highest event time so far of a set of sources. A node's clock is
that of the sources whose records drive it, less its *hold*: how long its records may have been held back above it, so
that a record that was in time where it was read is in time there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vsc.plan.nodes import Node, Plan
from vsc.plan.operations import Aggregate, GroupChanges, Source, Window
from vsc.plan.record import record

__all__ = ["NodeClock", "WindowEnds", "held_back_by", "moments_due", "node_clocks", "stepping"]


@record
class NodeClock:
    """A node's clock is that of `sources`, less `hold` ms; it `holds` records back itself, for so many ms at most.

    Only the nodes of dead letters have no `sources`. A joined table has rows of windows of different sources, each of
    which closes by the clock of its own: `branches` are these. Of all other nodes they are the sources together.
    """

    sources: frozenset[str]
    hold: int
    holds: int
    branches: frozenset[frozenset[str]]

    def of_input(self, starts: Mapping[str, int]) -> int:
        """The input's clock where each source's is the one in `starts`; -1 before the first record."""
        return max((starts.get(source, -1) for source in self.sources), default=-1)

    def shown(self, starts: Mapping[str, int]) -> int:
        """The node's clock there."""
        return self.of_input(starts) - self.hold

    def lowest(self, starts: Mapping[str, int]) -> int:
        """The lowest of the clocks by which the windows close that the node joins."""
        found = (max((starts.get(source, -1) for source in branch), default=-1) for branch in self.branches)
        return min(found, default=-1) - self.hold


def node_clocks(plan: Plan) -> Mapping[str, NodeClock]:
    """The clock of each node, whatever `Plan.clock` is. Computed at each call, in a time that grows with the plan."""
    nodes = {node.name: node for node in plan.nodes}
    clocks: dict[str, NodeClock] = {}
    for node in plan.nodes:
        own = {node.name} if isinstance(node.operation, Source) else ()
        hold = max((clocks[name].hold + clocks[name].holds for name in node.driving), default=0)
        sources = frozenset(own).union(*(clocks[name].sources for name in node.driving))
        branches = frozenset((sources,))
        if _joins_windows(node, nodes):
            branches = frozenset().union(*(clocks[name].branches for name in node.driving))
        clocks[node.name] = NodeClock(sources, hold, _held_back(node, nodes), branches)
    return clocks


def _joins_windows(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Whether its rows are of windows that other nodes have begun."""
    if node.kind != "table" or not node.driving or node.operation.begins_windows:
        return False
    return all(_window(nodes[name], nodes) is not None for name in node.driving)


def held_back_by(plan: Plan, name: str, clocks: Mapping[str, NodeClock]) -> tuple[str, ...]:
    """The nodes above `name` that make up its hold, the first one that records come to first."""
    found: list[str] = []
    at = plan.node(name)
    while clocks[at.name].hold:
        at = max(map(plan.node, at.driving), key=lambda node: clocks[node.name].hold + clocks[node.name].holds)
        found += [at.name] if clocks[at.name].holds else []
    return tuple(reversed(found))


def stepping(plan: Plan) -> tuple[frozenset[str], ...]:
    """By stage, the sources whose clock it has to know, even where it gets none of their records: something in it waits
    for that clock, counts by it what comes late, or meets records that waited for the clock of fewer sources only."""
    if plan.clock == "records":
        return (frozenset(),) * len(plan.stages)
    clocks = node_clocks(plan)
    asking = _asking(plan, clocks)
    asks = (asking.intersection(stage.nodes) if stage.id else () for stage in plan.stages)
    return tuple(frozenset().union(*(clocks[name].sources for name in names)) for names in asks)


def _asking(plan: Plan, clocks: Mapping[str, NodeClock]) -> frozenset[str]:
    """The nodes that have to know how their sources' clock goes on where none of their records is.

    Those that wait, or count what comes late; and those that ask how late it is and get records at the moment of
    another clock, beyond which theirs may be.
    """
    waited: dict[str, frozenset[frozenset[str]]] = {}
    corrected: set[str] = set()  # nodes that get records at the moments of versions of a table
    found = set()
    for node in plan.nodes:
        above = [plan.node(name) for name in node.driving]
        if any(one.operation.watches or one.name in corrected for one in above):
            corrected.add(node.name)
        before = frozenset().union(*(waited[one.name] for one in above))
        waited[node.name] = before | {clocks[one.name].sources for one in above if one.waits}
        beside = node.name in corrected
        beside |= any(sources != clocks[node.name].sources for sources in waited[node.name])
        if node.waits or node.operation.counts_late or (beside and _tells_time(node)):
            found.add(node.name)
    return frozenset(found)


def _tells_time(node: Node) -> bool:
    """Whether it matters to the node how late it is: to windows, versioned stores and look-ups, among others."""
    versioned = node.store is not None and node.store.kind == "versioned"
    looks_up = node.operation.looks_up or (node.kind == "table" and len(node.inputs) > 1)
    return bool(node.operation.begins_windows) or node.operation.tells_time or versioned or looks_up


@record
class WindowEnds:
    """Moments of a clock: those `after` ms after a window ends that is like `window`, which has no grace here."""

    window: Window
    after: int


def moments_due(plan: Plan) -> Mapping[str, frozenset[WindowEnds] | None]:
    """By source, the moments of its clock that a stage has to know of (`stepping`); None: all of them.

    Windows that wait to close are due at few.
    """
    nodes, clocks = {node.name: node for node in plan.nodes}, node_clocks(plan)
    by_source: dict[str, frozenset[WindowEnds] | None] = {node.name: frozenset() for node in plan.sources}
    asking = _asking(plan, clocks)
    for node in plan.nodes:
        if node.name in asking:
            due = _due(node, nodes, clocks[node.name])
            for source in clocks[node.name].sources:
                known = by_source[source]
                by_source[source] = None if due is None or known is None else known | {due}
    return by_source


def _due(node: Node, nodes: Mapping[str, Node], clock: NodeClock) -> WindowEnds | None:
    """When what the node holds can be due: windows of one size close one after the other."""
    operation = node.operation
    if not operation.waits or not (operation.begins_windows or operation.holds_windows):
        return None
    window = _window(node, nodes)
    if window is None or window.kind not in ("tumbling", "hopping"):
        return None
    return WindowEnds(replace(window, grace=0), clock.hold + clock.holds - window.span)


def _held_back(node: Node, nodes: Mapping[str, Node]) -> int:
    """How long, in ms, the node itself holds a record back at most."""
    window = _window(node, nodes) if node.operation.holds_windows else None
    return int(node.operation.holds) + (0 if window is None else window.span)


def _window(node: Node, nodes: Mapping[str, Node]) -> Window | None:
    """The windows of a windowed table: those that are joined in it are all alike."""
    while node.inputs and not node.operation.begins_windows:
        node = nodes[node.inputs[0]]
    return node.operation.window if isinstance(node.operation, Aggregate | GroupChanges) else None
