"""Random expressions of a wanted type over given columns: for random topologies, and to compare what evaluates them.

Guarantees: a text that compiles, to an expression of exactly that type. It may fail on a row (an overflow, a division
by zero, a cast), but seldom. Not for names: how a column is written in its place is the caller's to know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

__all__ = ["ORDERED", "TYPES", "Scope", "expression"]

TYPES = ("bigint", "string", "boolean", "decimal(9,2)", "double", "timestamp", "array<string>")
"""The types that expressions are made of, and that can be asked for."""

ORDERED = TYPES[:-1]
"""Those whose values are compared."""

LETTERS = ("a", "b", "ab", "", "a|", "A", "it''s", "%", "ß")


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may use, as they are written, with their types; `event_time`: and the time;
    `lambdas`: and functions that take one, so many inside of each other."""

    columns: Sequence[tuple[str, str]]
    event_time: bool = True
    lambdas: int = 0

    def of(self, wanted: str) -> list[str]:
        """The columns of a type."""
        return [text for text, type_ in self.columns if type_ == wanted]


def expression(rng: random.Random, scope: Scope, wanted: str, depth: int = 2) -> str:
    """An expression of type `wanted`, at most `depth` operations deep."""
    columns = scope.of(wanted)
    if depth <= 0 or (columns and rng.random() < 0.35):
        if rng.random() < 0.1:
            return _literal(rng, wanted)
        return rng.choice(columns) if columns else _converted(rng, scope, wanted)

    def some(type_: str) -> str:
        return expression(rng, scope, type_, depth - 1)

    general = (_case, _if, _coalesce)
    lambdas = _OF_LAMBDAS.get(wanted, ()) if scope.lambdas else ()
    make = rng.choice((*general, *_MAKERS[wanted], *_MAKERS[wanted], *lambdas))
    return make(rng, scope, some, wanted)


Some = Callable[[str], str]
Maker = Callable[[random.Random, Scope, Some, str], str]


def _literal(rng: random.Random, wanted: str) -> str:
    number = rng.randint(-2, 6)
    match wanted:
        case "bigint":
            return f"cast({number} as bigint)"
        case "string":
            return f"'{rng.choice(LETTERS)}'"
        case "boolean":
            return rng.choice(("true", "false", "cast(null as boolean)"))
        case "double":
            return rng.choice(("0.5e0", "-2e0", "1e10", "0e0"))
        case "timestamp":
            return f"timestamp_millis({rng.randint(0, 100)})"
        case "array<string>":
            return rng.choice(("array('x')", "array('a', 'b')", "split('a,,b', ',')"))
        case _:
            return f"cast({number}.25 as decimal(9,2))"


def _converted(rng: random.Random, scope: Scope, wanted: str) -> str:
    """One made of a column of another type: a literal only where there is none that serves."""
    numbers, texts = scope.of("bigint"), scope.of("string")
    forms = {
        "string": "cast({n} as string)", "boolean": "({n} > 1)", "decimal(9,2)": "try_cast({n} as decimal(9,2))",
        "double": "cast({n} as double)", "timestamp": "timestamp_millis(abs({n} % 1000))",
        "array<string>": "array({s})",
        "bigint": "cast(length({s}) as bigint)",
    }  # fmt: skip
    form = forms[wanted]
    if ("{n}" in form and not numbers) or ("{s}" in form and not texts):
        return _literal(rng, wanted)
    return form.format(n=rng.choice(numbers or [""]), s=rng.choice(texts or [""]))


def _case(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    return f"case when {some('boolean')} then {some(wanted)} else {some(wanted)} end"


def _if(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    return f"if({some('boolean')}, {some(wanted)}, {some(wanted)})"


def _coalesce(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    return f"coalesce({some(wanted)}, {some(wanted)})"


def _number(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    form = rng.choice((
        "{0} + {1}", "{0} - {1}", "{0} * 2", "{0} % 3", "abs({0})", "- {0}", "greatest({0}, {1})", "nullif({0}, {1})",
        "cast(length({s}) as bigint)", "cast(size({a}) as bigint)", "unix_millis({t})", "try_cast({s} as bigint)",
        "cast(hour({t}) as bigint)", "cast(floor({g}) as bigint)",
        "(struct({0} as x, {s} as y)).x",
    ))  # fmt: skip
    if rng.random() < 0.05:
        form = "{0} % {1}"  # fails where the second is zero
    return "(" + _filled(form, some, wanted) + ")"


def _text(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    form = rng.choice((
        "{0} || {1}", "upper({0})", "lower({0})", "trim({0})", "substring({0}, 1, 2)", "replace({0}, 'a', 'b')",
        "cast({n} as string)", "nullif({0}, {1})", "least({0}, {1})", "cast({b} as string)", "cast({d} as string)",
        "element_at({a}, 1)", "md5({0})", "concat({0}, '-', {1})",
        "to_json(struct({n} as `a b`, {0} as c))",
    ))  # fmt: skip
    return "(" + _filled(form, some, wanted) + ")"


def _truth(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    type_ = rng.choice(ORDERED)
    operator = rng.choice(("=", "<>", "<", "<=", ">", ">="))
    form = rng.choice((
        f"{some(type_)} {operator} {some(type_)}", f"{some(type_)} {operator} {some(type_)}",
        f"{some(type_)} is null", f"{some(type_)} is not null", "{b} and {0}", "{b} or {0}", "not {0}",
        "{n} in (1, 2, 3)", "{n} between 0 and {1n}", "{s} like '%a%'", "starts_with({s}, 'a')", "contains({s}, 'b')",
    ))  # fmt: skip
    if "{" not in form:
        return f"({form})"
    return "(" + _filled(form, some, wanted) + ")"


def _decimal(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    form = rng.choice(("{0} + {1}", "{0} - {1}", "{0} * 2", "{n}", "round({0}, 1)", "- {0}", "abs({0})", "{0} / 4"))
    return f"try_cast({_filled(form, some, wanted)} as decimal(9,2))"


def _double(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    form = rng.choice((
        "{0} + {1}", "{0} * {1}", "- {0}", "abs({0})", "cast({n} as double)", "cast({d} as double)",
        "try_divide({0}, {1})", "{n} / 2", "greatest({0}, {1})",
    ))  # fmt: skip
    return "(" + _filled(form, some, wanted) + ")"


def _time(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    forms = ["{0} + 7 ms", "{0} - 1 hour", "timestamp_millis(abs({n} % 1000))", "date_trunc('hour', {0})"]
    forms += ["event_time()"] * scope.event_time
    return "(" + _filled(rng.choice(forms), some, wanted) + ")"


def _array(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    return _filled(rng.choice(("array({s}, {1s})", "split({s}, 'a')", "concat({0}, {1})", "array({s})")), some, wanted)


def _lambda(rng: random.Random, scope: Scope, some: Some, wanted: str) -> str:
    """A call with a lambda over texts; its element may have the name of a column, which it hides then."""
    function = rng.choice(("transform", "filter") if wanted == "array<string>" else ("exists", "forall"))
    element = rng.choice(("e", "l1", f"e{scope.lambdas}"))
    seen = [(text, type_) for text, type_ in scope.columns if text != element] + [(element, "string")]
    parameters = element
    if wanted == "array<string>" and rng.random() < 0.5:
        parameters = f"({element}, i{scope.lambdas})"
        seen.append((f"cast(i{scope.lambdas} as bigint)", "bigint"))
    inner = replace(scope, columns=seen, lambdas=scope.lambdas - 1)
    body = expression(rng, inner, "string" if function == "transform" else "boolean", 2)
    return f"{function}({some('array<string>')}, {parameters} -> {body})"


_OF_LAMBDAS: dict[str, tuple[Maker, ...]] = {"array<string>": (_lambda, _lambda), "boolean": (_lambda,)}

_MAKERS: dict[str, tuple[Maker, ...]] = {
    "bigint": (_number,), "string": (_text,), "boolean": (_truth,), "decimal(9,2)": (_decimal,), "double": (_double,),
    "timestamp": (_time,), "array<string>": (_array,),
}  # fmt: skip

_LETTER_TYPES = dict(zip("nsbdgta", TYPES, strict=True))


def _filled(form: str, some: Some, wanted: str) -> str:
    """`form` with expressions in its gaps: `{0}` and `{1}` of type `wanted`, `{n}`, `{1n}` of the letter's."""
    for gap in ("0", "1"):
        form = form.replace("{" + gap + "}", some(wanted)) if "{" + gap + "}" in form else form
    for letter, type_ in _LETTER_TYPES.items():
        for gap in (letter, "1" + letter):
            form = form.replace("{" + gap + "}", some(type_)) if "{" + gap + "}" in form else form
    return form
