"""Loads scenarios that fit their topology from the text of a scenario file.

Guarantees: everything wrong with a file is found here, before anything runs, and is reported with its place. A loaded
scenario contains only sources, nodes, columns and stores of its topology, and values of their types.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from vsc.compiler import TopologyError, compile_topology
from vsc.compiler.files import FileError, MissingFileError, bound, read_text
from vsc.compiler.source import Position
from vsc.plan.nodes import Column, Node, Plan, Source
from vsc.plan.parts import MODULE
from vsc.runtime.errors import VscRuntimeError
from vsc.scenario.document import Document, ScenarioError
from vsc.scenario.expectations import Expectations
from vsc.scenario.model import Delete, Drain, Pipe, Quiet, Read, Scenario, ScenarioFile, Step
from vsc.scenario.values import ROW, read_columns, read_time
from vsc.testing import file_rows, timestamp_column
from vsc.testing.driver import MOST_PARTITIONS

__all__ = ["RefusedTopology", "load", "paths_read"]

_BESIDE = ("timestamp", "expect", "stores", "metrics")
_VERBS = ("pipe", "delete", "drain", "quiet")
_FILE = "file"
"""The key of a step's file of rows."""
_NO_VARIABLES: Mapping[str, str] = {}


class RefusedTopology(ScenarioError):
    """The file's topology has errors. `topology` is its path, `error` the compiler's."""

    def __init__(self, document: Document, node: yaml.Node, topology: str, error: TopologyError) -> None:
        super().__init__(document.path, *document.place(node), f"the topology {topology} is refused")
        self.topology, self.error = topology, error


def load(
    path: str, text: str, variables: Mapping[str, str] = _NO_VARIABLES, functions: tuple[str, ...] = ()
) -> ScenarioFile:
    """The scenarios of the file at `path`, whose text is `text`. Raises ScenarioError or its subclass RefusedTopology.

    `variables` are for those that the file does not set; they take precedence over the environment.
    `functions`: the modules from which topologies may call functions, beside those that the file names.
    """
    document, fields = _open(path, text)
    topology = _Topology(document, fields["topology"])
    shared = {**variables, **_variables(document, fields.get("variables"))}
    functions = tuple(dict.fromkeys((*functions, *_functions(document, fields.get("functions")))))
    by_name: dict[str, Scenario] = {}
    for node in document.sequence(fields["scenarios"], "`scenarios`"):
        scenario = replace(_scenario(document, node, topology, shared), functions=functions)
        if scenario.name in by_name:
            line = by_name[scenario.name].position.line
            raise document.error(node, f"there already is a scenario `{scenario.name}`, on line {line}")
        by_name[scenario.name] = scenario
    if not by_name:
        raise document.error(fields["scenarios"], "there is no scenario in the file")
    return ScenarioFile(path, tuple(by_name.values()))


def paths_read(path: str, text: str) -> tuple[Path, list[Path]]:
    """The paths of the scenario file's topology and of the files of rows that it may name. Raises ScenarioError."""
    document, fields = _open(path, text)
    found = [node for one in document.sequence(fields["scenarios"], "`scenarios`") for node in _files_in(one)]
    return _beside(document, fields["topology"]), [_beside(document, node) for node in found]


def _files_in(node: yaml.Node) -> Iterator[yaml.Node]:
    """The values of all keys `file`, at whatever depth."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == _FILE and isinstance(value, yaml.ScalarNode) and value.value.strip():
                yield value
            yield from _files_in(value)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _files_in(one)


def _open(path: str, text: str) -> tuple[Document, dict[str, yaml.Node]]:
    document = Document(path, text)
    return document, document.fields(document.root, "the file", ("topology", "scenarios"), ("variables", "functions"))


def _functions(document: Document, node: yaml.Node | None) -> Iterator[str]:
    """The modules from which the topology may call functions: one, or a list."""
    nodes = () if node is None else [node] if isinstance(node, yaml.ScalarNode) else document.sequence(node, "modules")
    for one in nodes:
        name = document.text(one, "a module")
        if not MODULE.fullmatch(name):
            raise document.error(one, f"`{name}` is not the name of a module", "as in `functions: [scoring.rules]`")
        yield name


def _beside(document: Document, node: yaml.Node) -> Path:
    """The path that `node` holds, relative to the file's folder."""
    return Path(os.path.normpath(os.path.join(os.path.dirname(document.path), document.text(node, "a path"))))


class _Topology:
    """The topology of a file, compiled once for each set of variables."""

    def __init__(self, document: Document, node: yaml.Node) -> None:
        self._document, self._node = document, node
        self.path = _beside(document, node)
        self._plans: dict[tuple[tuple[str, str], ...], Plan] = {}
        try:
            self._text = read_text(str(self.path))
        except MissingFileError:
            raise document.error(
                node, f"there is no file {self.path}", "a topology's path starts at the scenario file's folder"
            ) from None
        except FileError as error:
            raise document.error(node, error.message, error.help) from None

    def plan(self, variables: Mapping[str, str]) -> Plan:
        """The plan with these variables. Raises RefusedTopology."""
        key = tuple(sorted(variables.items()))
        if key not in self._plans:
            try:
                self._plans[key] = compile_topology(self._text, path=str(self.path), variables=dict(variables))
            except TopologyError as error:
                raise RefusedTopology(self._document, self._node, str(self.path), error) from None
        return self._plans[key]


def _variables(document: Document, node: yaml.Node | None) -> dict[str, str]:
    if node is None:
        return {}
    return {
        name: str(document.scalar(value, f"the variable `{name}` is a single value").value)
        for name, (_, value) in document.mapping(node, "`variables`").items()
    }


def _scenario(document: Document, node: yaml.Node, topology: _Topology, shared: Mapping[str, str]) -> Scenario:
    fields = document.fields(node, "a scenario", ("name", "steps"), ("variables", "partitions", "now"))
    variables = {**shared, **_variables(document, fields.get("variables"))}
    partitions = document.integer(fields["partitions"], "`partitions`") if "partitions" in fields else 1
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise document.error(fields["partitions"], f"`partitions` is a number from 1 to {MOST_PARTITIONS}")
    reader = _Steps(document, topology.plan(variables), variables)
    steps = document.sequence(fields["steps"], "`steps`")
    if not steps:
        raise document.error(fields["steps"], "a scenario without steps says nothing")
    return Scenario(
        document.path,
        Position(*document.place(node)),
        document.text(fields["name"], "`name`"),
        topology.path,
        variables,
        partitions,
        read_time(document, fields["now"], "`now`") if "now" in fields else None,
        tuple(reader.step(one, number) for number, one in enumerate(steps, start=1)),
    )


class _Steps:
    """Reads the steps of scenarios against one plan."""

    def __init__(self, document: Document, plan: Plan, variables: Mapping[str, str]) -> None:
        self._document, self._variables = document, variables
        self._nodes = {n.name: n for n in plan.nodes if n.part_of is None}
        self._sources = {node.name: node for node in plan.sources}
        self._records_clock = plan.clock == "records"
        self._expectations = Expectations(document, plan)

    def step(self, node: yaml.Node, number: int) -> Step:
        document = self._document
        entries = document.mapping(node, "a step")
        inputs = [name for name in entries if name not in _BESIDE]
        if len(inputs) != 1:
            if inputs:
                told = f"; the second here is `{inputs[1]}`"
                place: yaml.Node = entries[inputs[1]][0]
            else:
                told, place = "; there is no source here", node
            raise document.error(
                place, f"a step takes one source{told}", "each step has a source's name, `pipe`, `delete` or `drain`"
            )
        key, value = entries[inputs[0]]
        time_node = entries["timestamp"][1] if "timestamp" in entries else None
        time = None if time_node is None else read_time(document, time_node, "`timestamp`")
        action = self._action(key, value, time)
        if isinstance(action, Drain | Quiet) and time_node is not None:
            raise document.error(time_node, f"a {key.value} has no timestamp")
        return Step(
            Position(*document.place(node)),
            number,
            action,
            self._expectations.records(entries["expect"][1]) if "expect" in entries else (),
            self._expectations.answers(entries["stores"][1]) if "stores" in entries else (),
            self._expectations.counts(entries["metrics"][1]) if "metrics" in entries else (),
        )

    # ------------------------------------------------------------------------------------------------------- input

    def _action(self, key: yaml.ScalarNode, value: yaml.Node, time: int | None) -> Pipe | Read | Delete | Drain | Quiet:
        document, word = self._document, key.value
        if word == "drain":
            if not isinstance(value, yaml.ScalarNode) or value.value != "true":
                raise document.error(value, "`drain` is `true`")
            return Drain()
        if word == "quiet" and isinstance(value, yaml.ScalarNode):
            if self._records_clock:
                raise document.error(
                    key, "with the clock of records only records move it", "use the clock of the input"
                )
            return Quiet(read_time(document, value, "`quiet`"))
        if word in _VERBS:
            entries = document.mapping(value, f"`{word}`")
            if len(entries) != 1:
                raise document.error(value, f"`{word}` holds one source's name")
            ((key, value),) = entries.values()
        source = self._sources.get(key.value)
        if source is None:
            self._refuse_source(key, (*_VERBS, *_BESIDE) if word == key.value else ())
            raise AssertionError
        if word == "delete":
            return self._delete(key, value, source, time)
        if (file := self._file(value, source)) is not None:
            return self._read(file, source, time)
        rows = self._rows(value, source, source.source.columns, "a row of")
        if time is None:
            self._check_timed(key, source.name, source.source, rows)
        return Pipe(source.name, rows, time)

    def _file(self, node: yaml.Node, source: Node) -> yaml.Node | None:
        """The path of a file of rows, if a step has one; a column of that name comes first."""
        if not isinstance(node, yaml.MappingNode) or any(c.name == _FILE for c in source.source.columns):
            return None
        entries = self._document.mapping(node, f"a row of `{source.name}`")
        if _FILE not in entries:
            return None
        for name, (key, _) in entries.items():
            if name != _FILE:
                raise self._document.error(key, "a file has all that there is of its rows", f"remove `{name}`")
        return entries[_FILE][1]

    def _read(self, node: yaml.Node, source: Node, time: int | None) -> Read:
        """The rows of a file. Those that cannot be used are dropped, and reported, as they are fed."""
        path = str(_beside(self._document, node))
        try:
            bound(path)
            return Read(file_rows(source, path, self._variables, time))
        except VscRuntimeError as error:
            raise self._document.error(node, error.message, error.help) from None
        except FileError as error:
            raise self._document.error(node, error.message, error.help) from None
        except FileNotFoundError:
            help = "the path of a file of rows starts at the scenario file's folder"
            raise self._document.error(node, f"there is no file {path}", help) from None
        except OSError as error:
            raise self._document.error(node, f"{path} cannot be read: {error.strerror}", "name a single file") from None

    def _check_timed(
        self, key: yaml.ScalarNode, name: str, source: Source, rows: tuple[Mapping[str, Any], ...]
    ) -> None:
        """Refuses rows without an event time."""
        if source.timestamp is None:
            message = f"`{name}` has no `timestamp` clause: its rows have no time"
        else:
            column = timestamp_column(source)
            if column is None or all(column in row for row in rows):
                return
            message = f"a row of `{name}` lacks `{column}`, which is its time"
        raise self._document.error(key, message, "put `timestamp:` beside it")

    def _delete(self, key: yaml.ScalarNode, value: yaml.Node, source: Node, time: int | None) -> Delete:
        if time is None:
            raise self._document.error(key, "a delete needs its time", "put `timestamp:` beside it")
        keys = self._rows(value, source, source.schema.key, "a key of")
        for found in keys:
            missing = [c.name for c in source.schema.key if found.get(c.name) is None]
            if missing:
                raise self._document.error(value, f"the key of `{source.name}` lacks `{missing[0]}`")
        return Delete(source.name, keys, time)

    def _refuse_source(self, key: yaml.ScalarNode, words: tuple[str, ...]) -> None:
        if key.value in self._nodes:
            raise self._document.error(
                key, f"`{key.value}` is not a source: it is computed", f"the sources are {', '.join(self._sources)}"
            )
        raise self._document.unknown(key, "source", key.value, (*self._sources, *words))

    def _rows(
        self, node: yaml.Node, source: Node, columns: tuple[Column, ...], what: str
    ) -> tuple[Mapping[str, Any], ...]:
        rows = node.value if isinstance(node, yaml.SequenceNode) else [node]
        return tuple(read_columns(self._document, row, columns, f"{what} `{source.name}`", ROW) for row in rows)
