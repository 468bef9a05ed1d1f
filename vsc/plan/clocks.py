"""How each node tells the time with `Plan.clock` ``input``, and which stages have to know that time passes (D25).

The *input's clock* at a place in D12's order is the highest event time so far of a set of sources. A node's clock is
that of the sources whose records drive it, less its *hold*: how long its records may have been held back above it, so
that a record that was in time where it was read is in time there. What is held back above a node goes on by the clock
of its own sources. Where that meets other sources, the node's clock is the lowest that any branch with a hold shows:
another source that is ahead makes nothing late that still waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vsc.plan.nodes import Node, Plan
from vsc.plan.operations import Aggregate, GroupChanges, Source, Window
from vsc.plan.record import record

__all__ = [
    "Branch",
    "NodeClock",
    "WindowEnds",
    "held_back_by",
    "moments_due",
    "node_clocks",
    "shortest_holds",
    "stepping",
]


@record
class Branch:
    """Where records come to a node that have been held back for up to `hold` ms, by the clock of `sources`."""

    sources: frozenset[str]
    hold: int

    def of_input(self, starts: Mapping[str, int]) -> int:
        """The input's clock where each source's is the one in `starts`; -1 before the first record."""
        return max((starts.get(source, -1) for source in self.sources), default=-1)


@record
class NodeClock:
    """A node's clock is the lowest of what its `branches` show: of each the clock of its sources, less its hold.

    Branches are where records come from that may have been held back; where none are, all `sources` together. Windows
    that a table takes over close by the clock of their own sources, so these are branches, with a hold or without. The
    node `holds` records back itself, for so many ms at most. Only the nodes of dead letters have no `sources`.
    """

    sources: frozenset[str]
    branches: tuple[Branch, ...]
    holds: int

    @property
    def hold(self) -> int:
        """For how many ms records may have been held back above the node."""
        return max(branch.hold for branch in self.branches)

    def of_input(self, starts: Mapping[str, int]) -> int:
        """The clock of all its sources where each one's is that in `starts`; -1 before the first record."""
        return Branch(self.sources, 0).of_input(starts)

    def shown(self, starts: Mapping[str, int]) -> int:
        """The node's clock there."""
        return min(branch.of_input(starts) - branch.hold for branch in self.branches)


def node_clocks(plan: Plan) -> Mapping[str, NodeClock]:
    """The clock of each node, whatever `Plan.clock` is. Computed at each call, in a time that grows with the plan."""
    nodes = {node.name: node for node in plan.nodes}
    clocks: dict[str, NodeClock] = {}
    for node in plan.nodes:
        own = {node.name} if isinstance(node.operation, Source) else ()
        sources = frozenset(own).union(*(clocks[name].sources for name in node.driving))
        let_out = tuple(_let_out(node, nodes, clocks))
        branches = tuple(one for one in let_out if not any(_covers(other, one) for other in let_out))
        clocks[node.name] = NodeClock(sources, branches or (Branch(sources, 0),), _held_back(node, nodes))
    return clocks


def _let_out(node: Node, nodes: Mapping[str, Node], clocks: Mapping[str, NodeClock]) -> Iterator[Branch]:
    """What is held back above the node, and the clocks by which windows close that it takes over."""
    takes_over = _is_windowed(node) and not node.operation.begins_windows
    found = set()
    for name in node.driving:
        windowed = takes_over and _is_windowed(nodes[name])
        for branch in clocks[name].branches:
            if windowed or branch.hold + clocks[name].holds:
                found.add(replace(branch, hold=branch.hold + clocks[name].holds))
    yield from sorted(found, key=lambda one: (one.hold, sorted(one.sources)))


def _is_windowed(node: Node) -> bool:
    return node.kind == "table" and node.bounds > 0


def _covers(one: Branch, other: Branch) -> bool:
    """Whether one branch never shows more than another one."""
    return one != other and one.sources <= other.sources and one.hold >= other.hold


def shortest_holds(plan: Plan) -> Mapping[str, int]:
    """By node, for how many ms all records have been held back above it, but for those that came later than that.

    A record may come to a node before the node's clock has got to its time, by the difference to the clock's hold.
    """
    nodes = {node.name: node for node in plan.nodes}
    found: dict[str, int] = {}
    for node in plan.nodes:
        above = (found[name] + _holds_all(nodes[name], nodes) for name in node.driving)
        found[node.name] = min(above, default=0)
    return found


def _holds_all(node: Node, nodes: Mapping[str, Node]) -> int:
    """For how many ms the node holds back all of its records, but for those that came later than that."""
    operation = node.operation
    closes = operation.waits and (operation.begins_windows or operation.holds_windows)
    window = _window(node, nodes) if closes else None
    if window is not None:  # an end that is not part of its window is 1 ms behind the last record
        return window.lingers + (not window.moving)
    return operation.holds if operation.holds_all else 0


def held_back_by(plan: Plan, name: str, branch: Branch, clocks: Mapping[str, NodeClock]) -> tuple[str, ...]:
    """The nodes above `name` that make up the hold of one of its branches, the first one that records come to first."""
    found: list[str] = []
    at = name
    while branch.hold:
        at, branch = next(
            (above, one)
            for above in plan.node(at).driving
            for one in clocks[above].branches
            if branch == replace(one, hold=one.hold + clocks[above].holds)
        )
        found += [at] if clocks[at].holds else []
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
            clock = clocks[node.name]
            for branch in clock.branches:
                due = _due(node, nodes, branch.hold + clock.holds)
                for source in clock.sources if due is None else branch.sources:
                    known = by_source[source]
                    by_source[source] = None if due is None or known is None else known | {due}
    return by_source


def _due(node: Node, nodes: Mapping[str, Node], hold: int) -> WindowEnds | None:
    """When what the node holds can be due by a clock that is `hold` behind at what it gives: windows of one size close
    one after the other."""
    operation = node.operation
    if not operation.waits or not (operation.begins_windows or operation.holds_windows):
        return None
    window = _window(node, nodes)
    if window is None or window.kind not in ("tumbling", "hopping"):
        return None
    return WindowEnds(replace(window, grace=0), hold - window.span)


def _held_back(node: Node, nodes: Mapping[str, Node]) -> int:
    """How long, in ms, the node itself holds a record back at most."""
    window = _window(node, nodes) if node.operation.holds_windows else None
    return int(node.operation.holds) + (0 if window is None else window.span)


def _window(node: Node, nodes: Mapping[str, Node]) -> Window | None:
    """The windows of a windowed table: those that are joined in it are all alike."""
    while node.inputs and not node.operation.begins_windows:
        node = nodes[node.inputs[0]]
    return node.operation.window if isinstance(node.operation, Aggregate | GroupChanges) else None
