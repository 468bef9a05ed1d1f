"""The compiler's one graph: the declared nodes, and which reads which.

A `Topology` may be invalid: with cycles, undeclared inputs, statements of the wrong kind. The passes examine it; their
facts are kept separately. The only module of the compiler that knows networkx.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx

from vsc.compiler import syntax
from vsc.plan.record import record

__all__ = ["Declaration", "Topology", "connect", "inputs_of"]

Declaration = syntax.SourceDecl | syntax.DerivedDecl

_NO_FUNCTIONS: Mapping[str, syntax.FunctionDecl] = {}


@record
class Topology:
    """The statements of one file, by node name.

    `nodes` holds the first declaration of every name, in the order of the file; `sinks` every sink statement, also of
    unknown nodes. `complete` is false if a statement, a name or an input is known to be missing: then the absence of
    something proves nothing. `unfinished` has the nodes whose statements are not finished. `options` are those of the
    statement that names it. `constants` has each constant once, `functions` each function by its name.
    """

    name: str
    nodes: Mapping[str, Declaration]
    sinks: tuple[syntax.SinkDecl, ...]
    complete: bool
    graph: nx.DiGraph[str]
    unfinished: frozenset[str] = frozenset()
    options: tuple[syntax.Option, ...] = ()
    constants: tuple[syntax.ConstantDecl, ...] = ()
    functions: Mapping[str, syntax.FunctionDecl] = _NO_FUNCTIONS

    def lost(self, sink: syntax.SinkDecl) -> str | None:
        """Which lost records a sink writes, ``dropped`` or ``missed``; None if it writes a node.

        A node of that name has priority; ``of`` leaves no ambiguity.
        """
        name = sink.name
        is_word = name.text in syntax.LOST and not name.quoted and name.text not in self.nodes
        return name.text if is_word or sink.of is not None else None

    def inputs(self, name: str) -> tuple[syntax.Input, ...]:
        """The inputs of a node as written, unknown ones too."""
        return inputs_of(self.nodes[name])

    def consumers(self, name: str) -> tuple[str, ...]:
        """The nodes that read `name`, in the order of the file."""
        return tuple(sorted(self.graph.successors(name), key=self._index))

    def reaching(self, names: Iterable[str]) -> frozenset[str]:
        """`names`, and every node from which one of them can be reached."""
        found, waiting = set[str](), [name for name in names if name in self.nodes]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.graph.predecessors(name)
        return frozenset(found)

    @property
    def written(self) -> frozenset[str]:
        """The nodes that reach a sink."""
        names = (sink.name if self.lost(sink) is None else sink.of for sink in self.sinks)
        return self.reaching({name.text for name in names if name is not None})

    def above(self, name: str) -> frozenset[str]:
        """`name`, and every node that it is computed from; none if there is no such node."""
        return frozenset((name, *nx.ancestors(self.graph, name))) if name in self.nodes else frozenset()

    def readers(self, names: Iterable[str]) -> frozenset[str]:
        """Every node that reads one of `names`, directly or through others."""
        return frozenset().union(*(nx.descendants(self.graph, name) for name in names if name in self.nodes))

    def order(self) -> tuple[str, ...]:
        """The nodes: inputs first, otherwise in the order of the file. Those on a cycle, or after one, are left out."""
        waiting = {name: self.graph.in_degree(name) for name in self.nodes}
        found: list[str] = []
        while ready := next((name for name, count in waiting.items() if count == 0), None):
            found.append(ready)
            del waiting[ready]
            for consumer in self.graph.successors(ready):
                waiting[consumer] -= 1
        return tuple(found)

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """One cycle for each group of nodes that read each other, from its first declared node on.

        Each name reads the one before it, and the first one reads the last.
        """
        groups = [group for group in nx.strongly_connected_components(self.graph) if self._is_cycle(group)]
        ways = []
        for group in groups:
            first = min(group, key=self._index)
            ways.append(self._way_round(first, group))
        return tuple(sorted(ways, key=lambda way: self._index(way[0])))

    def _is_cycle(self, group: set[str]) -> bool:
        return len(group) > 1 or any(self.graph.has_edge(name, name) for name in group)

    def _way_round(self, first: str, group: set[str]) -> tuple[str, ...]:
        if self.graph.has_edge(first, first):
            return (first,)
        inside = self.graph.subgraph(group)
        nexts = sorted(inside.successors(first), key=self._index)
        ways = [nx.shortest_path(inside, consumer, first) for consumer in nexts]
        shortest: list[str] = min(ways, key=len)
        return (first, *shortest[:-1])

    def _index(self, name: str) -> int:
        rank: int = self.graph.nodes[name]["rank"]
        return rank


def connect(
    name: str, nodes: Mapping[str, Declaration], sinks: tuple[syntax.SinkDecl, ...], complete: bool
) -> Topology:
    """The topology of these statements, with an edge from every known input to the node that reads it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((node, {"rank": rank}) for rank, node in enumerate(nodes))
    for node, declaration in nodes.items():
        graph.add_edges_from((i.name.text, node) for i in inputs_of(declaration) if i.name.text in nodes)
    return Topology(name, nodes, sinks, complete, graph)


def inputs_of(declaration: Declaration) -> tuple[syntax.Input, ...]:
    """The inputs that a declaration reads, in the order in which they are written."""
    if isinstance(declaration, syntax.SourceDecl):
        return ()
    found: tuple[syntax.Input, ...] = declaration.operation.inputs
    return found
