"""Expressions as SQL and its dialects write them."""

from __future__ import annotations

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.suggest import misspelt
from vsc.compiler.diagnostics.wording import HARD_WORDS, code
from vsc.compiler.expressions.elsewhere import instead_of
from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.parser.surroundings import body, closing, open_bracket, phrase, say, sql, text, wrong
from vsc.compiler.parser.wording import found
from vsc.compiler.parser.wrong_calls import wrong_call
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["wrong_expression"]

CALLS = frozenset((*FUNCTIONS, *AGGREGATES))
_OPERANDS = ("STRING", "INTEGER", "DECIMAL", "STAR")

_NO_ESCAPE = "`%` and `_` always are wildcards: for a text that has them use `contains`, `starts_with` or `ends_with`"
_OPERATORS = {
    "escape": ("`like` has no `escape`", _NO_ESCAPE),
    "collate": ("there are no collations", "remove it; `lower(x)` compares without case"),
    "contains": ("`contains` is a function", "write `contains(text, part)`"),
    "starts": ("there is no operator `starts with`", "write `starts_with(text, part)`"),
    "startswith": ("there is no operator `startswith`", "write `starts_with(text, part)`"),
    "ends": ("there is no operator `ends with`", "write `ends_with(text, part)`"),
    "endswith": ("there is no operator `endswith`", "write `ends_with(text, part)`"),
    "overlaps": ("there is no operator `overlaps`", "compare the ends: `a1 < b2 and b1 < a2`"),
    "then": ("`then` belongs to `case`", "write `case when CONDITION then VALUE else VALUE end`"),
    "elseif": ("there is no `elseif`", "write `when CONDITION then VALUE`"),
    "elsif": ("there is no `elsif`", "write `when CONDITION then VALUE`"),
    "elif": ("there is no `elif`", "write `when CONDITION then VALUE`"),
}
_WORDS_OF_CASE = ("elseif", "elsif", "elif")
_BETWEEN_VALUES = ("||", "/", "%", "*", "=", "<>", "<", "<=", ">", ">=")
_NULLS = ("none", "nil", "unknown", "undefined", "na", "missing")
"""What other languages call null, or the truth of a null."""


def wrong_expression(place: WrongPlace) -> Explanation | None:
    """A part of an expression that is written differently here."""
    for mistake in (_arrow, _subquery, _case, _between, wrong_call, _in_list, _is, _literal, _operator, _start):
        explanation = mistake(place)
        if explanation is not None:
            return explanation
    return None


def _arrow(place: WrongPlace) -> Explanation | None:
    if place.word != "->":
        return None
    help = (
        "a field of a struct is `s.f`, an element of a map `m['k']`; a lambda is an argument: `filter(a, x -> x > 1)`"
    )
    if phrase(place, 1, -1) == (")",) and phrase(place, 1, -3) == ("(",):
        name = code(f"{place.word_at(place.index - 2)} -> ...")
        return wrong(place, "the only parameter of a lambda has no parentheses", f"write {name}")
    return wrong(place, "only a lambda has a `->`", help)


def _subquery(place: WrongPlace) -> Explanation | None:
    if place.word.lower() != "select" or "CASE" not in place.expected or open_bracket(place) != place.index - 1:
        return None
    before = place.word_at(place.index - 2).lower()
    help = "compute it as a node of its own, and join with it"
    if before in ("in", "exists"):
        left = "left join" if place.word_at(place.index - 3).lower() == "not" else "join"
        help = f"write {code(f'{left} INPUT with TABLE on KEY select ...')}: a row stays if the table has its key"
    return say(place, "VSC025", "there are no subqueries", help)


def _case(place: WrongPlace) -> Explanation | None:
    word, before = place.word.lower(), place.word_at(place.index - 1).lower()
    if before == "case" and place.name == "AS":
        span = place.tokens.span(place.index - 1)
        help = "to use it as a name, put it in backticks: `` `case` ``"
        return say(place, "VSC017", "`case` is a reserved word", help, span, "`case`")
    if before == "if" and place.word_at(place.index - 2).lower() == "else":
        span = place.tokens.span(place.index - 2).to(place.tokens.span(place.index - 1))
        return wrong(place, "there is no `else if`", "write `when CONDITION then VALUE`", span, "when")
    expected = set(place.expected)
    if "END" in expected and "OR" in expected and place.name not in ("SEMICOLON",):
        if word in _WORDS_OF_CASE:
            return wrong(place, f"there is no {code(place.word)}", "write `when CONDITION then VALUE`", new="when")
        if place.name in ("AS", "COMMA", "RPAR", "FROM") or word in ("materialize",):
            return wrong(place, "a `case` is not closed", f"write `end` before {code(place.word)}", new=None)
    values = ("STRING", "INTEGER", "DECIMAL", "ELSE", "END", "NAME")
    if {"THEN", "OR"} <= expected and (word in (":", ",", "return") or place.name in values):
        help = "write `then`" if word in (":", ",") else f"write `then` before {code(place.word)}"
        return wrong(place, "a `then` is missing between the condition and the value", help)
    if word == "then" and "WHEN" in expected and "END" not in expected:
        return wrong(
            place,
            "a condition of a `case` follows `when`",
            "write `case when CONDITION then VALUE else VALUE end`",
        )
    if word == "end" and "WHEN" in expected and "END" not in expected:
        return wrong(place, "a `case` has at least one `when`", "write `case when CONDITION then VALUE else VALUE end`")
    if before == "if" and "AS" in expected and (place.is_word() or place.word == "!"):
        help = "write `case when CONDITION then VALUE else VALUE end`, or `if(CONDITION, VALUE, VALUE)`"
        return wrong(place, "`if` is a function", help, place.tokens.span(place.index - 1))
    return None


def _between(place: WrongPlace) -> Explanation | None:
    limits = "AND" in place.expected and "OR" not in place.expected and "PLUS" in place.expected
    in_pair = place.word == "," and phrase(place, 2, -3)[0] == "between"
    if in_pair:
        low, high = place.word_at(place.index - 1), place.word_at(place.index + 1)
        return wrong(place, "the limits of `between` are not a list", f"write {code(f'between {low} and {high}')}")
    if not limits:
        return None
    if place.word in (",", ":") or place.word.lower() in ("to", "or"):
        high = place.word_at(place.index + 1)
        help = f"write {code(f'between {place.word_at(place.index - 1)} and {high}')}"
        return wrong(
            place,
            "the limits of `between` are separated by `and`",
            help,
            new=" and" if place.word == "," else "and",
        )
    return wrong(
        place, "`between` has two limits", f"write {code(f'between {place.word_at(place.index - 1)} and LIMIT')}"
    )


def _in_list(place: WrongPlace) -> Explanation | None:
    before = place.word_at(place.index - 1).lower()
    if before == "in" and place.expected == ["LPAR"]:
        if place.word == "[":
            last = place.index
            while place.word_at(last) not in ("]", ";", ""):
                last += 1
            return wrong(
                place,
                "the values after `in` stand in parentheses",
                f"write {code(f'in ({text(place, place.index + 1, last - 1)})')}",
            )
        return _in_what(place)
    if place.word == ")" and before == "(" and place.word_at(place.index - 2).lower() == "in":
        return wrong(place, "the list of values is empty", "write at least one value, or `false` in place of the test")
    return None


def _in_what(place: WrongPlace) -> Explanation:
    """``in 1, 2``, ``in range(1, 10)``, ``in unnest(tags)``, ``in tags``."""
    fact, value = "the values after `in` stand in parentheses", place.word_at(place.index - 2)
    value = place.word_at(place.index - 3) if value.lower() == "not" else value
    word, following = place.word.lower(), place.word_at(place.index + 1)
    if word == "range" and following == "(":
        return wrong(place, fact, "write `x >= LOW and x < HIGH` for a range")
    if following == "(" and word in ("unnest", "explode", "flatten", "values"):
        array = text(place, place.index + 2, closing(place, place.index + 1) - 1)
        return wrong(place, fact, f"write {code(f'array_contains({array}, {value})')} for the elements of an array")
    values = body(place, place.index, "and", "or", "materialize", "select", "then")
    help = f"write {code(f'in ({values})')}"
    if place.is_word() and values == place.word:
        help += f", or {code(f'array_contains({values}, {value})')} if it is an array"
    return wrong(place, fact, help)


def _is(place: WrongPlace) -> Explanation | None:
    expected = set(place.expected)
    if expected not in ({"NOT", "NULL"}, {"NULL"}):
        if expected == {"BETWEEN", "IN", "LIKE"} and place.name == "NULL":
            return wrong(place, "a test for null is written with `is`", "write `is not null`")
        return None
    negated = expected == {"NULL"}
    sign = "<>" if negated else "="
    if place.word.lower() == "distinct":
        form = "a = b or (a is null and b is null)" if negated else "a <> b or (a is null) <> (b is null)"
        return wrong(place, "there is no `is distinct from`", f"write {code(form)}")
    if place.name in ("TRUE", "FALSE"):
        help = "write the condition itself" if (place.name == "TRUE") != negated else "write `not` before the condition"
        return wrong(place, "`is` only tests for null", f"{help}; a null is neither")
    if place.word.lower() in _NULLS or misspelt(place.word, ("null",)) is not None:
        return wrong(place, f"a missing value is not {code(place.word)}", "write `null`", new="null")
    if place.word.lower() == "nan":
        help = f"write `{sign} cast('NaN' as double)`: NaN is equal to itself"
        return wrong(place, "`is` only tests for null", help)
    if place.word.lower() in ("empty", "blank"):
        return wrong(
            place, "`is` only tests for null", f"write `{sign} ''`, or {code(f'size(x) {sign} 0')} for an array"
        )
    return wrong(place, "`is` only tests for null", f"write {code(f'{sign} {place.word}')}")


def _literal(place: WrongPlace) -> Explanation | None:
    """A literal in a form of SQL: ``date '...'``, ``interval '5' minute``, ``e'...'``."""
    before, word = place.word_at(place.index - 1), place.word
    kind = before.lower()
    if kind == "interval" and place.name == "STRING":
        value, unit = word.strip("'"), place.word_at(place.index + 1).lower()
        written = value if " " in value else f"{value} {unit}" if unit.isidentifier() else f"{value} minutes"
        return say(place, "VSC004", "a duration is written without `interval` and quotes", f"write {code(written)}",
                   place.tokens.span(place.index - 1).to(place.span))  # fmt: skip
    if kind == "interval" and place.name in ("DURATION", "INTEGER"):
        return None
    if word.lower() == "interval" and "DURATION" in place.expected:
        value, unit = place.word_at(place.index + 1).strip("'"), place.word_at(place.index + 2)
        written = value if " " in value else f"{value} {unit}"
        return say(place, "VSC004", "a duration is written without `interval`", f"write {code(written)}")
    if "DURATION" in place.expected and not {"NAME", "STRING"} & set(place.expected) and place.is_word():
        return _no_duration(place)
    if place.name != "STRING" or place.tokens.starts[place.index] == 0:
        return None
    if kind == "f" and place.tokens.ends[place.index - 1] == place.span.start:
        help = "join texts with `||`, as in `'a ' || name`"
        return wrong(place, "a string has no columns inside", help, place.tokens.span(place.index - 1).to(place.span))
    if kind in ("e", "n", "r", "b", "x", "u") and place.tokens.ends[place.index - 1] == place.span.start:
        help = f"write {code(word)}: a backslash is an ordinary character"
        return wrong(place, "a string has no prefix", help, place.tokens.span(place.index - 1), "")
    if place.before == "STRING":
        return wrong(
            place,
            "two strings follow each other",
            "write `||` between them, or one string; a ' inside it is ''",
        )
    return None


def _no_duration(place: WrongPlace) -> Explanation:
    """A word where a duration is expected: ``PT5M``."""
    written = iso_duration(place.word)
    if written is None:
        message = f"a duration is needed here, found {found(place.name, place.word)}"
        return say(place, "VSC004", message, "write a number and a unit, as in `5 minutes`")
    return say(place, "VSC004", "a duration is a number with its unit", f"write {code(written)}", new=written)


def _operator(place: WrongPlace) -> Explanation | None:
    """Where an operator could follow."""
    word, following = place.word.lower(), place.word_at(place.index + 1)
    if "OR" not in place.expected and "PLUS" not in place.expected:
        return None
    if phrase(place, 3) == ("at", "time", "zone") or (place.word_at(place.index - 1), *phrase(place, 2)) == (
        "at",
        "time",
        "zone",
    ):
        start = place.index if word == "at" else place.index - 1
        help = "write `from_utc_timestamp(x, 'Europe/Berlin')` for what clocks show there: a timestamp has no zone"
        span = place.tokens.span(start).to(place.tokens.span(start + 2))
        return sql(place, "there is no `at time zone`", help, span)
    if word in _OPERATORS:
        message, help = _OPERATORS[word]
        return sql(place, message, help)
    if word == ",":
        return _comma(place, following)
    if place.name == place.before == "INTEGER" and len(place.word) == 3:
        whole = place.word_at(place.index - 1) + place.word
        return say(place, "VSC003", "the digits of a number are not grouped", f"write {code(whole)}")
    if place.word == ":" and following == ":":
        value, type_ = place.word_at(place.index - 1), place.word_at(place.index + 2)
        value = value if value != ")" else "..."
        return wrong(place, "there is no `::`", "write " + code(f"cast({value} as {type_ or 'TYPE'})"))
    if place.word == ":" and open_bracket(place) is not None and place.word_at(open_bracket(place) or 0) == "[":
        return wrong(place, "an array has no slices", "write `a[i]` for one element, from 0")
    before = place.word_at(place.index - 1)
    if before == "lambda" and place.is_word():
        return _python_lambda(place)
    if place.word == ":":
        whole = "(...)" if before in (")", "]") else before
        return wrong(place, "the field of a struct follows a `.`", f"write {code(f'{whole}.{following}')}")
    if place.word == "(" and place.word_at(place.index - 2) == "." and place.before == "NAME":
        return _method(place)
    if word == "if" and "AS" in place.expected:
        help = f"write {code(f'case when CONDITION then {before} else VALUE end')}"
        return wrong(place, "a choice is a `case`, or the function `if`", help)
    if (
        (place.name in _OPERANDS or place.is_word())
        and before in CALLS
        and place.word_at(place.index - 2) not in (".", "as")
    ):
        return None if place.name == "AS" else _without_parentheses(place, before)
    if word == "case" and place.before == "END":
        return wrong(place, "a `case` ends with `end` alone", "remove the second `case`", new="")
    if word == "within" and following.lower() == "group":
        return sql(
            place,
            "there is no `within group`",
            "write `approx_percentile(x, 0.5)` for a percentile, `collect_list(x)` for a list by event time",
        )
    return None


def _python_lambda(place: WrongPlace) -> Explanation:
    """``lambda x: x + 1``, ``lambda x, i: x + i``."""
    last = place.index
    while place.word_at(last) not in (":", ";", ""):
        last += 1
    names = text(place, place.index, last - 1)
    written = f"({names}) ->" if "," in names else f"{names} ->"
    span = place.tokens.span(place.index - 1).to(place.tokens.span(last))
    return wrong(place, "a lambda is written with `->`", f"write {code(f'{written} ...')}", span, written)


def _method(place: WrongPlace) -> Explanation:
    """``k.upper()``."""
    name, value = place.word_at(place.index - 1), place.word_at(place.index - 3)
    value = value if value.isidentifier() else "..."
    arguments = text(place, place.index + 1, closing(place, place.index) - 1)
    function = instead_of(name)[1] or name
    written = f"{function}({value}, {arguments})" if arguments else f"{function}({value})"
    span = place.tokens.span(place.index - 1)
    return wrong(place, "a function is not a method of its argument", f"write {code(written)}", span)


def _without_parentheses(place: WrongPlace, function: str) -> Explanation | None:
    """``sum n``. ``day d`` rather lacks an `as`, since many functions are called as columns are."""
    if place.word in place.tables.words or place.machine.reads([place.tables.number["AS"]], place.index, 2):
        return None
    return wrong(
        place, f"the argument of {code(function)} stands in parentheses", f"write {code(f'{function}({place.word})')}"
    )


def _comma(place: WrongPlace, following: str) -> Explanation | None:
    """A comma where an operator could follow."""
    opened = open_bracket(place)
    if opened is None and place.before in ("INTEGER", "DECIMAL") and following.isdigit() and _glued(place):
        number = place.word_at(place.index - 1)
        if place.before == "DECIMAL" or len(following) != 3:
            whole = number.replace(".", "")
            return say(place, "VSC003", "the decimals of a number follow a `.`", f"write `{whole}.{following}`")
    if place.before == "INTEGER" and following.isdigit() and len(following) == 3 and _glued(place):
        whole = place.word_at(place.index - 1) + following
        return say(place, "VSC003", "the digits of a number are not grouped", f"write {code(whole)}")
    if opened is not None and place.word_at(opened) == "[":
        return wrong(place, "an array is not written with `[`", "write `array(a, b)`, and a struct `struct(a, b)`")
    owner = "" if opened is None else place.word_at(opened - 1)
    if opened is not None and (owner in HARD_WORDS or not owner.isidentifier()):
        help = "write `struct(a, b)` or `array(a, b)`, or remove the parentheses"
        return wrong(place, "several values in parentheses are not one value", help)
    if "SEMICOLON" in place.expected and "COMMA" not in place.expected:
        return wrong(place, "conditions are not separated by commas", "write `and` or `or`")
    return None


def _glued(place: WrongPlace) -> bool:
    """Whether no blanks stand around the comma at the place."""
    starts, ends = place.tokens.starts, place.tokens.ends
    return ends[place.index - 1] == place.span.start and ends[place.index] == starts[place.index + 1]


def _start(place: WrongPlace) -> Explanation | None:
    """Where an expression is expected."""
    if (
        {"NAME", "QUOTED"} <= set(place.expected) <= {"NAME", "QUOTED", "LPAR"}
        and place.before == "AS"
        and place.word in (";", ",", ")")
    ):
        return wrong(place, "a name is missing after `as`", "write one, or remove `as`")
    if "CASE" not in place.expected:
        return None
    word, before, following = place.word, place.word_at(place.index - 1), place.word_at(place.index + 1)
    if word == "+":
        return wrong(place, "a number has no `+` in front", f"write {code(following)}", new="")
    if word == "[":
        return wrong(
            place,
            "an array is not written with `[`",
            "write `array(a, b)`; a column with odd signs goes in backticks",
        )
    if word in ("=", ">", "<") and before in ("=", ">", "<", "!", "<>"):
        both = before + word
        meant = {"<>": "<>", "><": "<>", "==": "=", "=>": ">="}.get(both, both)
        return wrong(place, "an operator is written without blanks", f"write {code(meant)}")
    if word == ":" and following.isidentifier():
        return say(
            place,
            "VSC026",
            f"{code(f':{following}')} is not a variable here",
            f"write {code(f'${{{following}}}')}, and run with {code(f'--var {following}=...')}",
        )
    if word == "%" and following == "(":
        name = place.word_at(place.index + 2)
        return say(
            place,
            "VSC026",
            f"{code(f'%({name})s')} is not a variable here",
            f"write {code(f'${{{name}}}')}, and run with {code(f'--var {name}=...')}",
        )
    if word == "where" and before in ("and", "or", "where"):
        return wrong(place, "a condition has one `where`", "remove this one", new="")
    if word == "as":
        return wrong(place, "an expression is missing before `as`", "write what the name stands for")
    if word in ("and", "or") and before in ("and", "or"):
        return wrong(
            place, f"two operators follow each other: {code(f'{before} {word}')}", "remove one of them", new=""
        )
    if (
        word in ("and", "or", "like", "in", "between", "is")
        and place.name == word.upper()
        and following not in (",", ")", ";", "as")
    ):
        return wrong(place, f"a value is missing before {code(word)}", "write an expression on both sides of it")
    if word in _BETWEEN_VALUES and following not in (",", ")", ";", "as", ""):
        return wrong(place, f"a value is missing before {code(word)}", "write an expression on both sides of it")
    if place.name == "SEMICOLON" or word in (")", ",") or (word == "select" and before in ("on", "by", ",")):
        what = f"after {code(before)}" if before else "here"
        if before == "%":
            return wrong(
                place,
                "`%` is the remainder of a division, not a percentage",
                f"write {code(f'{place.word_at(place.index - 2)} / 100.0')}",
            )
        return wrong(place, f"an expression is missing {what}", "complete it, or remove what asks for it")
    return None
