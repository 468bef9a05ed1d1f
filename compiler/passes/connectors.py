"""Where rows come from and go to: known kinds, their options, formats that can hold the columns.

All of it is checked, whether or not this version of the runtime can run it; paths, servers and topics are not looked
at. Variables stay as written: a run fills them in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.suggest import likely, renamed
from vsc.compiler.passes.connector_values import wrong_values
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.options import OptionCodes, lacking, read_options, to_add
from vsc.compiler.passes.secrets import written_secrets
from vsc.compiler.topology import Topology
from vsc.plan import Connector, column_list
from vsc.plan.connectors import FACTS, facts_of
from vsc.plan.connectors.facts import VARIABLE, ConnectorFacts, OptionSpec, Role, Scalar
from vsc.plan.record import record

__all__ = ["Connectors", "check_connectors", "connector_kinds", "connector_options"]

_CODES = OptionCodes(unknown="VSC503", value="VSC505", twice="VSC506", variables=True)
_DAY = 86_400_000
_ELSEWHERE = {
    **dict.fromkeys(("postgres", "postgresql", "pg", "database", "db"), "jdbc"),
    **dict.fromkeys(("filesystem", "folder", "parquet", "json", "csv", "orc", "debezium", "s3", "hdfs"), "files"),
    **dict.fromkeys(("stdout", "print", "terminal"), "console"),
    **dict.fromkeys(("blackhole", "discard", "none"), "noop"),
    **dict.fromkeys(("datagen", "faker", "sequence"), "rate"),
    **dict.fromkeys(("redpanda", "confluent"), "kafka"),
    "deltalake": "delta",
}
"""What other systems call connectors."""


@record
class Connectors:
    """The connector of every source by node name, of every sink by its place among the sinks, and their variables.

    `ahead`: by source, how far ahead of the run's clock its event times may be, in ms; None: any distance.
    """

    sources: Mapping[str, Connector]
    sinks: Mapping[int, Connector]
    variables: tuple[str, ...]
    ahead: Mapping[str, int | None]


def connector_kinds(role: Role) -> tuple[str, ...]:
    """The known connectors of sources, or of sinks."""
    return tuple(kind for kind, facts in FACTS.items() if role in facts.roles)


def connector_options(name: str, role: Role, stream: bool) -> Mapping[str, OptionSpec]:
    """The options of a connector, for a stream or a table; empty for an unknown connector."""
    facts = facts_of(name)
    return {n: s for n, s in facts.options.items() if _applies(facts, n, role, stream)}


def check_connectors(topology: Topology, kinds: Kinds) -> tuple[Connectors, tuple[Finding, ...]]:
    """The valid connectors, and what is wrong with the others."""
    findings: list[Finding] = []
    sources: dict[str, Connector] = {}
    sinks: dict[int, Connector] = {}
    ahead: dict[str, int | None] = {}
    for name, declaration in topology.nodes.items():
        if isinstance(declaration, syntax.SourceDecl):
            valid = _connector(declaration.connector, "source", declaration.kind == "stream", findings)
            if valid is not None:
                sources[name], ahead[name] = valid, _max_ahead(declaration.connector)
    for index, sink in enumerate(topology.sinks):
        stream = topology.lost(sink) is not None or kinds.get(sink.name.text) == "stream"
        valid = _connector(sink.connector, "sink", stream, findings)
        if valid is not None:
            sinks[index] = valid
    every = (*sources.values(), *sinks.values())
    names = {name for connector in every for name in _variables(connector)}
    return Connectors(sources, sinks, tuple(sorted(names)), ahead), tuple(findings)


def _connector(clause: syntax.ConnectorClause, role: Role, stream: bool, findings: list[Finding]) -> Connector | None:
    name = clause.kind.text
    facts = FACTS.get(name)
    if facts is None or role not in facts.roles:
        findings.append(_wrong_kind(clause.kind, role))
        return None
    own = tuple(option for option in clause.options if not option.quoted)
    known = connector_options(name, role, stream)
    options, wrong = read_options(
        own,
        known,
        f"`{name}` as a {_target(role, stream, facts)}",
        replace(_CODES, spark=facts.takes_spark),
    )
    spark, wrong_spark = _spark_options(clause, facts)
    wrong += wrong_spark
    wrong += _missing(clause, facts, own)
    given = tuple((n, _value(o)) for n, o in options.items() if n != "max_ahead")
    wrong += [*written_secrets(clause, known)] or wrong_values(clause, role, options, dict(given), dict(spark))
    findings.extend(wrong)
    return None if wrong else Connector(name, given, spark)


def _applies(facts: ConnectorFacts, option: str, role: Role, stream: bool) -> bool:
    if option in facts.source_only:
        return role == "source"
    if option in facts.sink_only:
        return role == "sink"
    if option in facts.table_only:
        return not stream
    return option not in facts.stream_sink_only or (role == "sink" and stream)


def _target(role: Role, stream: bool, facts: ConnectorFacts) -> str:
    if role == "sink" and facts.stream_sink_only:
        return "sink of a stream" if stream else "sink of a table"
    return role


def _wrong_kind(name: syntax.Name, role: Role) -> Finding:
    usable = connector_kinds(role)
    listed = ", ".join(f"`{kind}`" for kind in usable)
    if name.text in FACTS:
        other = "written" if role == "source" else "read"
        return Finding("VSC502", name.span, f"`{name.text}` can only be {other}", (), f"use one of {listed}")
    near = likely(name.text, usable, _ELSEWHERE)
    action = f"write `{near}`" if near is not None else f"use one of {listed}"
    fix = renamed(name.span, name.text, usable)
    return Finding("VSC501", name.span, f"there is no connector `{name.text}`", (), action, fix)


def _missing(clause: syntax.ConnectorClause, facts: ConnectorFacts, own: tuple[syntax.Option, ...]) -> list[Finding]:
    kind, given = facts.kind, {option.name.text: option for option in own}
    quoted = {option.name.text.lower() for option in clause.options if option.quoted}
    meant = {own for name, own in facts.own_names.items() if name in quoted}
    wrong = [
        Finding("VSC504", clause.span, f"`{kind}` needs the option `{name}`", (), to_add(name, facts.options[name]))
        for name in lacking(facts.required, own, facts.options)
        if name not in meant
    ]
    if not facts.either or not given.keys() <= facts.options.keys() or meant & {*facts.either}:
        return wrong
    there = [name for name in facts.either if name in given]
    either = " or ".join(f"`{name}`" for name in facts.either)
    if len(there) > 1:
        label = Label(given[there[0]].span, f"`{there[0]}` is given here")
        wrong.append(Finding("VSC506", given[there[1]].span, f"`{kind}` takes {either}, not both", (label,),
                             "remove one of them"))  # fmt: skip
    elif not there:
        wrong.append(Finding("VSC504", clause.span, f"`{kind}` needs the option {either}", (), facts.either_help))
    return wrong


def _max_ahead(clause: syntax.ConnectorClause) -> int | None:
    """The bound of a source whose options are valid."""
    for option in clause.options:
        if option.name.text == "max_ahead" and not option.quoted:
            return option.value.milliseconds if isinstance(option.value, syntax.Duration) else None
    return _DAY


def _spark_options(
    clause: syntax.ConnectorClause, facts: ConnectorFacts
) -> tuple[tuple[tuple[str, Scalar], ...], list[Finding]]:
    """Spark's own options as written: each once, and only for connectors that pass them to Spark."""
    options: dict[str, syntax.Option] = {}
    findings = []
    for option in clause.options:
        if not option.quoted:
            continue
        name = option.name.text
        if not facts.takes_spark:
            findings.append(
                Finding(
                    "VSC503", option.name.span, f"`{clause.kind.text}` does not take Spark options", (), "remove it"
                )
            )
        elif (earlier := options.get(name.lower())) is not None:
            findings.append(
                Finding("VSC506", option.span, f"`{name}` is given twice", (Label(earlier.span, "first here"),),
                        "remove one of them")
            )  # fmt: skip
        elif isinstance(option.value, syntax.Literal) and option.value.value is None:
            findings.append(
                Finding("VSC505", option.value.span, f"`{name}` has no value", (), f"write `'{name}' = '...'`")
            )
        elif isinstance(option.value, syntax.ColumnNames):
            findings.append(
                Finding("VSC505", option.value.span, "an option of Spark is text", (), f"write `'{name}' = '...'`")
            )
        else:
            options[name.lower()] = option
    return tuple((option.name.text, _value(option)) for option in options.values()), findings


def _value(option: syntax.Option) -> Scalar:
    match option.value:
        case syntax.Variable(name=name):
            return "${" + name + "}"
        case syntax.ColumnNames(names=names):
            return column_list(name.text for name in names)
        case syntax.Duration(milliseconds=milliseconds):
            return milliseconds
        case syntax.Literal(value=Decimal() as value):
            return str(value)
        case syntax.Literal(value=bool() | int() | float() | str() as value):
            return value
    raise AssertionError(f"an option without a value was not refused: {option.name.text}")


def _variables(connector: Connector) -> list[str]:
    values = [value for _, value in (*connector.options, *connector.spark_options) if isinstance(value, str)]
    return [name for value in values for name in VARIABLE.findall(value)]
