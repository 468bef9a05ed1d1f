"""Values of a connector's options that are known to be wrong, whatever there is outside: before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.zone_names import zone_finding
from vsc.plan.connectors.facts import VARIABLE, Role, Values
from vsc.plan.offsets import offsets_help, offsets_problem
from vsc.plan.settings import problems

__all__ = ["wrong_values"]

_TEXT_FORMATS = ("json", "csv")
_TEMPLATE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_PROVIDED = re.compile(r"\$\{[^}]*:[^}]*\}")


def wrong_values(
    clause: syntax.ConnectorClause, role: Role, options: Mapping[str, syntax.Option], own: Values, spark: Values
) -> Iterator[Finding]:
    """What is wrong with the valid options of a connector; `own` and `spark` are the values of vsc's and of Spark's."""
    yield from _out_of_bounds(options)
    yield from _offsets(options)
    yield from _zone(options)
    yield from _unfinished(clause)
    yield from _impossible(clause, role, own, spark)


def _impossible(clause: syntax.ConnectorClause, role: Role, own: Values, spark: Values) -> Iterator[Finding]:
    """What the options alone, without a look at files or servers, show to be wrong."""
    places = {(option.name.text, option.quoted): option for option in clause.options}
    for problem in problems(clause.kind.text, role, own, spark):
        option = places[problem.option, problem.quoted]
        code, span = ("VSC505", option.value.span) if problem.of_value else ("VSC503", option.name.span)
        yield Finding(code, span, problem.message, (), problem.help)


def _unfinished(clause: syntax.ConnectorClause) -> Iterator[Finding]:
    """``${`` that begins no variable, and ``{{ x }}``. A quoted option may have ``{{ x }}`` for another system, and
    ``${provider:path:key}``, which is Kafka's."""
    for option in clause.options:
        text = option.value.value if isinstance(option.value, syntax.Literal) else None
        if not isinstance(text, str):
            continue
        if not option.quoted and (template := _TEMPLATE.search(text)) is not None:
            yield Finding(
                "VSC505", option.value.span, f"`{template[0]}` is not a variable here", (),
                f"write `${{{template[1]}}}`, and run with `--var {template[1]}=...`",
            )  # fmt: skip
        rest = VARIABLE.sub("", text)
        if "${" in rest and not (option.quoted and _PROVIDED.search(rest)):
            yield Finding(
                "VSC505", option.value.span, f"`{option.name.text}` has a `${{` that begins no variable", (),
                "write `${name}`, with the closing `}`",
            )  # fmt: skip


def _zone(options: Mapping[str, syntax.Option]) -> list[Finding]:
    written = options.get("time_zone")
    if written is None:
        return []
    form = _text(options.get("format"))
    if form not in (None, *_TEXT_FORMATS):
        message = f"`time_zone` is for times in text (json, csv), not for {form}"
        return [Finding("VSC512", written.span, message, (), "remove it")]
    name = _text(written)
    wrong = None if name is None else zone_finding("VSC511", name, written.value.span)
    return [] if wrong is None else [wrong]


def _out_of_bounds(options: Mapping[str, syntax.Option]) -> list[Finding]:
    ahead = options.get("max_ahead")
    if ahead is not None and isinstance(ahead.value, syntax.Duration) and ahead.value.milliseconds < 0:
        return [
            Finding(
                "VSC505",
                ahead.value.span,
                "`max_ahead` cannot be negative",
                (),
                "write a duration that is not, or `max_ahead = none`",
            )
        ]
    rows = options.get("rows_per_second")
    if rows is None or not isinstance(rows.value, syntax.Literal) or not isinstance(rows.value.value, int):
        return []
    if rows.value.value > 0:
        return []
    return [Finding("VSC505", rows.value.span, "`rows_per_second` must be at least 1", (), "write a larger number")]


def _offsets(options: Mapping[str, syntax.Option]) -> list[Finding]:
    written = options.get("starting_offsets")
    value, topic = _text(written), _text(options.get("topic"))
    problem = None if value is None else offsets_problem(value, topic)
    if written is None or problem is None:
        return []
    return [Finding("VSC505", written.value.span, problem, (), offsets_help(topic))]


def _text(option: syntax.Option | None) -> str | None:
    """The text of an option; None if it is missing or depends on a variable."""
    value = None if option is None else option.value
    found = value.value if isinstance(value, syntax.Literal) else None
    return found if isinstance(found, str) and not VARIABLE.search(found) else None
