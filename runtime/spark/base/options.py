"""Connector options as a run sees them: variables resolved, values by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from vsc.plan.connectors.facts import MODE, VARIABLE
from vsc.plan.nodes import Connector, Node, Plan, Sink, Source
from vsc.plan.settings import problems
from vsc.runtime.errors import ConfigurationError, VscRuntimeError

__all__ = ["Options", "refuse", "resolve_plan", "resolved_where"]

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one resolved connector. `place` is its name in messages, such as ``source 'x' (line 2)``.

    `of_command`: they were given on the command line, not in a topology.
    """

    place: str
    connector: Connector
    of_command: bool = False

    @classmethod
    def of_source(cls, node: Node) -> Options:
        """The options of a source."""
        return cls(f"source '{node.name}' (line {node.line})", node.source.connector)

    @classmethod
    def of_sink(cls, sink: Sink) -> Options:
        """The options of a sink."""
        return cls(f"the sink of '{sink.owner}' (line {sink.line})", sink.connector)

    @property
    def spark(self) -> dict[str, str]:
        """Spark's own options, as text."""
        return {name: _text(value) for name, value in self.connector.spark_options}

    def spark_word(self, name: str) -> str | None:
        """Spark's own option of that name, in whatever case, in lower case; None if it is not given."""
        return next((value.lower() for given, value in self.spark.items() if given.lower() == name.lower()), None)

    def text(self, name: str) -> str:
        """The value of a required option."""
        found = self.get(name)
        if found is None:
            raise ConfigurationError(f"{self.place} has no option {name!r}", f"add {name} = '...'")
        return _text(found)

    def get(self, name: str) -> Scalar | None:
        """The value of an option, or None."""
        return dict(self.connector.options).get(name)

    def flag(self, name: str) -> bool:
        """A boolean option, false if it is not there; variables make it text."""
        found = self.get(name)
        if found is None:
            return False
        if _text(found) not in ("true", "false"):
            raise ConfigurationError(f"{self.place}: {name} is true or false, not {found!r}")
        return _text(found) == "true"

    def called(self, name: str) -> str:
        """An option as it is written where it was given, for messages."""
        return f"`--{name.replace('_', '-')}`" if self.of_command else f"`{name}`"

    def is_upsert(self) -> bool:
        """Whether a sink of a stream replaces rows by key (`mode`)."""
        found = self.get("mode")
        if found is None:
            return False
        if found not in MODE.choices:
            raise ConfigurationError(f"{self.place}: mode is {' or '.join(MODE.choices)}, not {found!r}")
        return found == "upsert"


def refuse(options: Options, role: Literal["source", "sink"], error: type[VscRuntimeError]) -> None:
    """Raises an `error` for the first option that cannot be as it is, whatever there is outside."""
    connector = options.connector
    for problem in problems(connector.kind, role, dict(connector.options), dict(connector.spark_options)):
        raise error(f"{options.place}: {problem.message}", problem.help)


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def resolve_plan(plan: Plan, variables: Mapping[str, str]) -> Plan:
    """The plan with every ``${name}`` of its connectors replaced, from `variables`, else the environment.

    ConfigurationError names what is missing and where it stands. The resolved plan may hold secrets: it is never
    stored.
    """

    def of(node: Node) -> Node:
        if not isinstance(node.operation, Source):
            return node
        connector = _connector(Options.of_source(node), variables)
        return replace(node, operation=replace(node.operation, connector=connector))

    nodes = tuple(map(of, plan.nodes))  # before the sinks: what is missing is named in the order of the text
    sinks = tuple(replace(sink, connector=_connector(Options.of_sink(sink), variables)) for sink in plan.sinks)
    return replace(plan, nodes=nodes, sinks=sinks)


def resolved_where(asked: Callable[[str], bool], node: Node, variables: Mapping[str, str]) -> Options:
    """The options of a source, with the variables of those that are `asked` for; the others are left as they are.

    Raises what `resolve_plan` does.
    """
    options = Options.of_source(node)
    return replace(options, connector=_connector(options, variables, asked))


def _connector(
    options: Options, variables: Mapping[str, str], asked: Callable[[str], bool] = lambda name: True
) -> Connector:
    connector, place = options.connector, options.place

    def resolved(pair: tuple[str, Scalar]) -> tuple[str, Scalar]:
        name, value = pair
        if not isinstance(value, str) or not asked(name):
            return pair
        return name, VARIABLE.sub(lambda match: _value(match.group(1), variables, f"{place}, option {name!r}"), value)

    return replace(
        connector,
        options=tuple(map(resolved, connector.options)),
        spark_options=tuple(map(resolved, connector.spark_options)),
    )


def _value(name: str, variables: Mapping[str, str], place: str) -> str:
    found = variables.get(name, os.environ.get(name))
    if found is None:
        raise ConfigurationError(
            f"the variable ${{{name}}} has no value ({place})", f"give it with --var {name}=VALUE or in the environment"
        )
    return found
