"""Types calls of functions that take a regular expression: a constant, which has to mean here what it means in Java."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.plan.expressions import Expr, Literal
from vsc.plan.functions import FUNCTIONS
from vsc.plan.regex import Regex, java_regex, java_replacement
from vsc.plan.types import BOOLEAN, INT, STRING, ArrayType

__all__ = ["REGEX_RULES"]


def _regex(call: CallSite) -> Regex:
    """The second argument."""
    try:
        return java_regex(call.constant(1, "the regular expression"))
    except ValueError as problem:
        raise _not_taken(call, 1, problem) from None


def _not_taken(call: CallSite, i: int, problem: ValueError) -> Refused:
    what, help = problem.args
    return call.bad_constant(i, f"`{call.name}` does not take {what}", help)


def _two_texts(call: CallSite) -> tuple[Expr, Expr]:
    return call.implied(0, STRING), call.implied(1, STRING)


def _split(call: CallSite) -> Expr:
    regex, pattern = _regex(call), call.constant(1, "the regular expression")
    if regex.ends or regex.begins:
        sign = "$" if regex.ends else "^"
        raise call.bad_constant(1, f"`split` does not take `{sign}` in its regular expression", "split at characters")
    if regex.empty and pattern:
        help = r"write `'\|'` for the character" if pattern == "|" else "repeat with `+` instead of `*`, for example"
        raise call.bad_constant(1, "`split` does not take a regular expression that matches nothing", help)
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
    if not 0 <= group <= regex.groups:
        message = f"the regular expression has {regex.groups or 'no'} group{'s' * (regex.groups != 1)}"
        help = (
            "write 0 for the whole match" if len(call) == 3 else "write `(...)` around the part, or 0 as third argument"
        )
        raise call.bad_constant(len(call) - 1, message, help)
    return call.result((*_two_texts(call), Literal(group, INT)), STRING)


def _replace(call: CallSite) -> Expr:
    regex, replacement = _regex(call), call.constant(2, "the replacement")
    if regex.ends:
        help = "write `\\z` for the end of the text"
        raise call.bad_constant(1, "`regexp_replace` does not take `$` in its regular expression", help)
    if regex.empty:
        help = "repeat with `+` instead of `*`, for example"
        raise call.bad_constant(1, "`regexp_replace` does not take a regular expression that matches nothing", help)
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
