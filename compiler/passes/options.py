"""Lists of options, ``( name = literal, ... )``: known names, each once, with values of the right type.

A variable passes as a value: in a connector it is checked at the start of a run, elsewhere it has been resolved or
reported before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.suggest import likely, misspelt, nearest, renamed
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.record import record

__all__ = ["CLAUSE", "LONGEST", "OptionCodes", "lacking", "read_options", "to_add", "too_long"]

LONGEST = 9_000_000_000_000_000
"""The longest duration in milliseconds that event time can hold (285 thousand years)."""


_DURATION = re.compile(r"\d+ [a-z]+(?: \d+ [a-z]+)*")
_COLUMNS = re.compile(r"[A-Za-z_]\w*(?:, *[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"\d+")
_UNQUOTED = {
    "true or false": re.compile("true|false"),
    "whole number": _NUMBER,
    "whole number or 'any'": _NUMBER,
    "string": re.compile("(?!)"),
    "columns": re.compile("(?!)"),
}
"""What a value looks like that only has quotes too many, by the type of its option."""


_ELSEWHERE = {
    **dict.fromkeys(("location", "dir", "directory", "folder", "file", "uri"), "path"),
    **dict.fromkeys(("brokers", "servers", "bootstrap", "hosts"), "bootstrap_servers"),
    **dict.fromkeys(("kafka_topic", "subscribe", "stream"), "topic"),
    **dict.fromkeys(("value_format", "type"), "format"),
    **dict.fromkeys(("dbtable", "table_name", "relation"), "table"),
    **dict.fromkeys(("group_id", "consumer_group"), "group"),
    **dict.fromkeys(("slide", "hop", "every", "step"), "advance"),
    **dict.fromkeys(("timeout", "inactivity", "inactivity_gap"), "gap"),
    "partitioned_by": "partition_by",
}
"""What other systems call options."""


@record
class OptionCodes:
    """The diagnostic codes of one family of options: unknown name, wrong value, given twice.

    `variables`: a text may hold ``${name}``, which the run resolves. `spark`: there may be options of Spark's, in
    quotes.
    """

    unknown: str
    value: str
    twice: str
    variables: bool = False
    spark: bool = False


CLAUSE = OptionCodes(unknown="VSC124", value="VSC125", twice="VSC126")
"""The codes of options that are not a connector's."""


def read_options(
    options: tuple[syntax.Option, ...], specs: Mapping[str, OptionSpec], owner: str, codes: OptionCodes
) -> tuple[dict[str, syntax.Option], list[Finding]]:
    """The valid options by name, and what is wrong with the others. `owner` is what they belong to."""
    right: dict[str, syntax.Option] = {}
    seen: dict[str, syntax.Option] = {}
    findings: list[Finding] = []
    for option in options:
        name = option.name.text
        if (earlier := seen.get(name)) is not None:
            findings.append(
                Finding(codes.twice, option.span, f"`{name}` is given twice", (Label(earlier.span, "first here"),),
                        "remove one of them")
            )  # fmt: skip
            continue
        seen[name] = option
        spec = specs.get(name)
        if spec is None or option.quoted:
            findings.append(_unknown(option, specs, owner, codes))
        elif (wrong := _wrong_value(option, spec, codes)) is not None:
            findings.append(wrong)
        else:
            right[name] = option
    return right, findings


def to_add(name: str, spec: OptionSpec) -> str:
    """The help for a missing option: only the user knows its value."""
    if spec.choices:
        known = ", ".join(f"'{choice}'" for choice in spec.choices)
        return f"add the option `{name}`; it is one of {known}"
    return f"add the option `{name}`, such as `{name} = {spec.example}`"


def lacking(required: Iterable[str], options: Iterable[syntax.Option], known: Iterable[str]) -> list[str]:
    """The `required` options that `options` lack. One that could stand under an unknown name is not among them."""
    names, required, known = [option.name.text for option in options], tuple(required), set(known)
    unknown = [name for name in names if name not in known]
    meant = {nearest(name, required) for name in unknown}
    return [] if None in meant else [name for name in required if name not in names and name not in meant]


def too_long(duration: syntax.Duration | syntax.Variable, code: str) -> Finding | None:
    """A finding if a duration is longer than event time can hold."""
    if isinstance(duration, syntax.Variable) or abs(duration.milliseconds) <= LONGEST:
        return None
    return Finding(code, duration.span, "this duration is longer than event time can hold", (), "write a shorter one")


def _unknown(option: syntax.Option, specs: Mapping[str, OptionSpec], owner: str, codes: OptionCodes) -> Finding:
    name = option.name.text
    near = likely(name, specs, _ELSEWHERE)
    known = ", ".join(f"`{spec}`" for spec in specs)
    action = f"write `{near}`" if near is not None else f"use one of {known}" if known else "remove it"
    if near is None and codes.spark:
        action += f", or write `'{name}' = ...` if it is an option of Spark"
    fix = None if option.quoted else renamed(option.name.span, name, specs)
    return Finding(codes.unknown, option.name.span, f"{owner} has no option `{name}`", (), action, fix)


def _wrong_value(option: syntax.Option, spec: OptionSpec, codes: OptionCodes) -> Finding | None:
    code = codes.value
    value, name = option.value, option.name.text
    if spec.type == "columns" or isinstance(value, syntax.ColumnNames):
        is_right = spec.type == "columns" and isinstance(value, syntax.ColumnNames)
        return None if is_right else _not_a(option, spec, code)
    if isinstance(value, syntax.Variable):
        return None
    if isinstance(value, syntax.CalendarLength):
        if spec.type == "duration or weeks or months":
            return None
        if not spec.type.startswith("duration"):
            return _not_a(option, spec, code)
        message = f"`{name}` has no calendar: only `tumbling` windows have weeks, months and years"
        return Finding(code, value.span, message, (), "write a number of `days`")
    if isinstance(value, syntax.Duration):
        return too_long(value, code) if spec.type.startswith("duration") else _not_a(option, spec, code)
    literal = value.value
    if spec.type == "duration or none" and literal in (None, "none"):
        return None
    if spec.type == "string" and isinstance(literal, str):
        if not spec.choices or literal in spec.choices or (codes.variables and "${" in literal):
            return None
        near = nearest(literal, spec.choices)
        known = ", ".join(f"'{choice}'" for choice in spec.choices)
        action = f"write '{near}'" if near is not None else f"use one of {known}"
        sure = misspelt(literal, spec.choices)
        fix = None if sure is None else Fix(value.span, f"'{sure}'")
        return Finding(code, value.span, f"`{name}` cannot be '{literal}'; it is one of {known}", (), action, fix)
    if spec.type.startswith("whole number") and type(literal) is int:
        return None
    if spec.type == "whole number or 'any'" and literal == "any":
        return None
    if spec.type == "true or false" and type(literal) is bool:
        return None
    if spec.type == "string" and isinstance(literal, str):
        return None
    return _not_a(option, spec, code)


def _not_a(option: syntax.Option, spec: OptionSpec, code: str) -> Finding:
    article = "" if spec.type == "true or false" else "a "
    match spec.type:
        case "duration" | "duration or weeks or months":
            what = "a duration, a number with its unit"
        case "duration or none":
            what = "a duration, a number with its unit, or `none`"
        case "columns":
            what = "a list of columns in parentheses"
        case other:
            what = f"{article}{other}"
    value = option.value.value if isinstance(option.value, syntax.Literal) else None
    if isinstance(value, str) and spec.type == "columns" and _COLUMNS.fullmatch(value):
        help, fix = f"write `({value})`, without quotes", Fix(option.value.span, f"({value})")
    elif isinstance(value, str) and spec.type.startswith("duration") and (duration := iso_duration(value)) is not None:
        help, fix = f"write `{duration}`, without quotes", Fix(option.value.span, duration)
    elif isinstance(value, str) and _UNQUOTED.get(spec.type, _DURATION).fullmatch(value):
        help, fix = f"write `{value}`, without quotes", Fix(option.value.span, value)
    else:
        help, fix = f"write one, such as `{option.name.text} = {spec.example}`", None
    return Finding(code, option.value.span, f"`{option.name.text}` is {what}", (), help, fix)
