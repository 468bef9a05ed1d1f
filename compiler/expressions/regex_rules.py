"""Types calls of functions that take a regular expression, which has to mean here what it means in Java.

A literal is looked at here; one that is computed when a record is there, which fails if it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.plan.expressions import Expr, Literal
from vsc.plan.functions import FUNCTIONS
from vsc.plan.regex import Regex, java_regex, java_replacement, replaceable, separator
from vsc.plan.types import BOOLEAN, INT, STRING, ArrayType

__all__ = ["REGEX_RULES"]


def _regex(call: CallSite) -> Regex | None:
    """The second argument; None for one that is computed."""
    pattern = call.constant_or_none(1, "the regular expression")
    try:
        return None if pattern is None else java_regex(pattern)
    except ValueError as problem:
        raise _not_taken(call, 1, problem) from None


def _not_taken(call: CallSite, i: int, problem: ValueError) -> Refused:
    what, help = problem.args
    return call.bad_constant(i, f"`{call.name}` does not take {what}", help)


def _two_texts(call: CallSite) -> tuple[Expr, Expr]:
    return call.implied(0, STRING), call.implied(1, STRING)


def _split(call: CallSite) -> Expr:
    pattern = call.constant_or_none(1, "the regular expression")
    if pattern is not None:
        try:
            separator(pattern)
        except ValueError as problem:
            raise _not_taken(call, 1, problem) from None
    limit = call.implied(2, INT) if len(call) == 3 else Literal(-1, INT)
    return call.result((*_two_texts(call), limit), ArrayType(STRING))


def _like(call: CallSite) -> Expr:
    _regex(call)
    return call.result(_two_texts(call), BOOLEAN)


def _extract(call: CallSite) -> Expr:
    regex, group = _regex(call), 1
    if len(call) == 3:
        given = call.args[2].expr
        if not isinstance(given, Literal) or not isinstance(given.value, int) or given.type not in INTEGERS:
            message = "the group of `regexp_extract` must be an integer literal"
            raise refuse("VSC225", call.args[2].span, message, f"write `{FUNCTIONS[call.name].signature}`")
        group = given.value
    if regex is not None and not 0 <= group <= regex.groups:
        message = f"the regular expression has {regex.groups or 'no'} group{'s' * (regex.groups != 1)}"
        help = (
            "write 0 for the whole match" if len(call) == 3 else "write `(...)` around the part, or 0 as third argument"
        )
        raise call.bad_constant(len(call) - 1, message, help)
    return call.result((*_two_texts(call), Literal(group, INT)), STRING)


def _replace(call: CallSite) -> Expr:
    pattern = call.constant_or_none(1, "the regular expression")
    replacement = call.constant_or_none(2, "the replacement")
    try:
        regex = None if pattern is None else replaceable(pattern)
    except ValueError as problem:
        raise _not_taken(call, 1, problem) from None
    if regex is not None and replacement is not None:
        try:
            java_replacement(replacement, regex.groups)
        except ValueError as problem:
            raise _not_taken(call, 2, problem) from None
    return call.result((*_two_texts(call), call.implied(2, STRING)), STRING)


REGEX_RULES: Mapping[str, Rule] = {
    "regexp_extract": _extract,
    "regexp_like": _like,
    "regexp_replace": _replace,
    "split": _split,
}
