"""From names to nodes: which statement declares what, and which node each input and sink means.

The result is always a `Topology`. Reported here are a name declared twice, `topology` twice or not first, and every use
of an undeclared name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.suggest import distance, misspelt, nearest
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.topology import Declaration, Topology, connect, inputs_of

__all__ = ["resolve"]


def resolve(file: syntax.File, stem: str, complete: bool = True) -> tuple[Topology, tuple[Finding, ...]]:
    """The topology of `file`; `stem` is its name if it does not name itself.

    `complete` is false if some of the text could not be read. A name that an unreadable statement would have declared
    is not reported.
    """
    findings: list[Finding] = []
    naming = _naming(file, findings)
    nodes = _declarations(file, findings)
    sinks = tuple(s for s in file.statements if isinstance(s, syntax.SinkDecl))
    lost = {n.text for n in file.broken}
    topology = connect(stem if naming is None else naming.name.text, nodes, sinks, complete)
    unknown = [
        (name, reader)
        for name, reader in _references(topology)
        if name.text not in nodes and name.text not in lost and not name.text.startswith(file.begun)
    ]
    written = {sink.name for sink in sinks}
    near = _Near(nodes)
    findings.extend(_unknown(n, near.of(n.text, reader, n in written), nodes) for n, reader in unknown)
    options = () if naming is None else naming.options
    constants = _constants(file, findings)
    functions = _functions(file, nodes, constants, findings)
    complete = complete and not findings
    topology = replace(
        topology, complete=complete, unfinished=file.unfinished, options=options, constants=constants,
        functions=functions,
    )  # fmt: skip
    return topology, tuple(findings)


def _naming(file: syntax.File, findings: list[Finding]) -> syntax.TopologyName | None:
    """The statement that names the topology."""
    first: syntax.TopologyName | None = None
    for index, statement in enumerate(file.statements):
        if not isinstance(statement, syntax.TopologyName):
            continue
        if first is not None:
            findings.append(
                Finding(
                    "VSC102", statement.span, "the topology is named twice",
                    (Label(first.span, f"it is already called `{first.name.text}` here"),), "remove one of them",
                )
            )  # fmt: skip
            continue
        first = statement
        if index > 0:
            findings.append(
                Finding(
                    "VSC102", statement.span, "`topology` is not the first statement",
                    (Label(file.statements[0].span, "this statement comes before it"),),
                    "move it to the top of the file",
                )
            )  # fmt: skip
    return first


def _constants(file: syntax.File, findings: list[Finding]) -> tuple[syntax.ConstantDecl, ...]:
    """The constants, each once."""
    known: dict[str, syntax.ConstantDecl] = {}
    for constant in file.statements:
        if isinstance(constant, syntax.ConstantDecl):
            earlier = known.setdefault(constant.name.text, constant)
            if earlier is not constant:
                findings.append(_twice(constant.name, earlier.name))
    return tuple(known.values())


def _functions(
    file: syntax.File,
    nodes: dict[str, Declaration],
    constants: tuple[syntax.ConstantDecl, ...],
    findings: list[Finding],
) -> dict[str, syntax.FunctionDecl]:
    """The functions by name, each once. None has the name of a node or of a constant."""
    others = {**{name: node.name for name, node in nodes.items()}, **{one.name.text: one.name for one in constants}}
    known: dict[str, syntax.FunctionDecl] = {}
    for function in file.statements:
        if isinstance(function, syntax.FunctionDecl):
            earlier = known.setdefault(function.name.text, function).name
            other = earlier if earlier is not function.name else others.get(function.name.text)
            if other is not None:
                findings.append(_twice(*sorted((function.name, other), key=lambda name: -name.span.start)))
    return known


def _twice(name: syntax.Name, earlier: syntax.Name) -> Finding:
    label = Label(earlier.span, "first declared here")
    return Finding("VSC101", name.span, f"`{name.text}` is declared twice", (label,), "give one of them another name")


def _declarations(file: syntax.File, findings: list[Finding]) -> dict[str, Declaration]:
    nodes: dict[str, Declaration] = {}
    for statement in file.statements:
        if not isinstance(statement, syntax.SourceDecl | syntax.DerivedDecl):
            continue
        name = statement.name
        if (earlier := nodes.get(name.text)) is not None:
            findings.append(_twice(name, earlier.name))
            continue
        nodes[name.text] = statement
    return nodes


def _references(topology: Topology) -> list[tuple[syntax.Name, str | None]]:
    """The names that are read, each with the node that reads it; None for a sink."""
    read = [(i.name, name) for name, node in topology.nodes.items() for i in inputs_of(node)]
    written = (sink.name if topology.lost(sink) is None else sink.of for sink in topology.sinks)
    return [*read, *((name, None) for name in written if name is not None)]


class _Near:
    """The names that an unknown one may misspell: looked up once for each unknown name, however often it is used."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._nodes = nodes
        self._found: dict[tuple[str, str | None, bool], tuple[str | None, str | None]] = {}

    def of(self, name: str, reader: str | None, written: bool) -> tuple[str | None, str | None]:
        """The name that is likely meant, and the name that certainly is. No node is meant to read itself; `written`
        by a sink, it may also be a word in place of a node."""
        likely, sure = self._look_up(name, None, written)
        if likely is None or reader is None:
            return likely, sure
        apart = reader == likely or distance(reader.lower(), name.lower()) < 2
        return self._look_up(name, reader, written) if apart else (likely, sure)

    def _look_up(self, name: str, reader: str | None, written: bool) -> tuple[str | None, str | None]:
        key = name, reader, written
        if key not in self._found:
            known = [*(one for one in self._nodes if one != reader), *(syntax.LOST if written else ())]
            self._found[key] = nearest(name, known), misspelt(name, known)
        return self._found[key]


def _unknown(name: syntax.Name, near: tuple[str | None, str | None], nodes: dict[str, Declaration]) -> Finding:
    message, (likely, sure) = f"there is no node `{name.text}`", near
    if likely is None:
        return Finding("VSC103", name.span, message, (), f"declare {code(named(name.text))}, or remove it")
    labels = (Label(nodes[likely].name.span, f"`{likely}` is declared here"),) if likely in nodes else ()
    fix = None if sure is None else Fix(name.span, named(sure))
    return Finding("VSC103", name.span, message, labels, f"write {code(named(likely))}", fix)
