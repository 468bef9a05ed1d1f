"""Explains a token that is not allowed at its place, and says how to continue reading.

Most such tokens are SQL habits or typing errors. Each of these gets a sentence that shows the right form, and if
possible a repair, so that the rest of the statement can still be checked. For all others the finding says, in the
language's own words, what was expected and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.compiler.diagnostics.wording import code, string
from vsc.compiler.parser.habits import sql_clause
from vsc.compiler.parser.machine import Failure, Machine
from vsc.compiler.parser.missing import bracket, comma, incomplete, starts_statement
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import open_bracket
from vsc.compiler.parser.units import duration_mistake
from vsc.compiler.parser.wording import form_of, found, one_of
from vsc.compiler.parser.wrong_expressions import wrong_expression
from vsc.compiler.parser.wrong_operations import OTHER_JOINS, form_at, wrong_operation
from vsc.compiler.parser.wrong_options import wrong_options
from vsc.compiler.parser.wrong_sources import wrong_source
from vsc.compiler.parser.wrong_statements import wrong_statement
from vsc.compiler.source import Span

__all__ = ["explain"]

_COMPARISONS = ("EQUAL", "LESSTHAN", "MORETHAN", "IS", "IN", "BETWEEN", "LIKE", "NOT")
_COMPARISON_SIGNS = frozenset(["=", "<>", "!=", "<", "<=", ">", ">="])
_PATTERNS = "write `regexp_like(text, 'regex')`"
_OTHER_OPERATORS = {
    "ilike": "compare in lower case: `lower(x) like 'a%'`",
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "similar", "glob", "matches"), _PATTERNS),
    "isnull": "write `x is null`",
    "notnull": "write `x is not null`",
    "div": "write `floor(x / y)`, or `cast(x / y as bigint)`",
    "mod": "write `x % y`",
    "xor": "write `a <> b`",
}
"""Operators of SQL's dialects. Some are similar to one of the language that means something else."""
_COLUMN = re.compile(r"[\w.`]+")


def explain(machine: Machine, failure: Failure, first: int) -> Explanation:
    """The finding for a token that is not allowed here, and the repair with which to continue.

    The finding is None if the token was already reported. The repair is None if the statement cannot be read further.
    `first` is the first token of the statement.
    """
    place = WrongPlace(machine, failure, first)
    told = place.tokens.told
    if place.word in told:
        return None, Repair(place.tables.name, consumes=True) if "NAME" in place.expected else None
    if place.damaged() or (place.index - 1 > first and place.word_at(place.index - 1) in told):
        return None, None
    for mistake in _MISTAKES:
        explanation = mistake(place)
        if explanation is not None:
            return explanation
    return _unexpected(place)


def _upper_case(place: WrongPlace) -> Explanation | None:
    """A keyword that is not in lower case, here or just before (where it was read as a name)."""
    lower = place.word.lower()
    keyword = place.tables.words.get(lower)
    if keyword is not None and lower != place.word and place.tables.names[keyword] in place.expected:
        finding = place.finding("VSC007", f"keywords are written in lower case: `{place.word}`", f"write `{lower}`",
                                new=lower)  # fmt: skip
        return finding, Repair(keyword, consumes=True)
    before = place.word_at(place.index - 1)
    keyword = place.tables.words.get(before.lower())
    if keyword in place.tables.reserved and before != before.lower():
        span = place.tokens.span(place.index - 1)
        return place.finding(
            "VSC007",
            f"keywords are written in lower case: `{before}`",
            f"write `{before.lower()}`",
            span,
            before.lower(),
        ), None
    return None


def _chained_comparison(place: WrongPlace) -> Explanation | None:
    if place.name not in _COMPARISONS and place.word not in _COMPARISON_SIGNS:
        return None
    if "OR" not in place.expected or "EQUAL" in place.expected:
        return None
    help = "write `a < b and b < c`, or put one of the comparisons in parentheses"
    return place.finding("VSC019", "comparisons do not chain", help), None


def _missing_semicolon(place: WrongPlace) -> Explanation | None:
    if "SEMICOLON" not in place.expected or place.index == place.first:
        return None
    if place.name != "$END" and not starts_statement(place.tokens, place.index):
        return None
    end = place.tokens.ends[place.index - 1]
    finding = place.finding("VSC006", "the `;` at the end of the statement is missing", "add `;`", Span(end, end), ";")
    return finding, Repair(place.tables.number["SEMICOLON"], consumes=False)


def _unquoted_value(place: WrongPlace) -> Explanation | None:
    if place.before != "EQUAL" or not place.is_word() or "STRING" not in place.expected or "NAME" in place.expected:
        return None
    text = place.word.strip("`")
    if place.word_at(place.index - 2) == "partition_by":
        message, new = "columns stand in parentheses", f"({place.word})"
        return place.finding("VSC005", message, f"write {code(new)}", new=new), None
    near = nearest(text, ("true", "false", "null"))
    new = near if near and text.lower() == near else string(text)
    sure = None if text.lower() in ("yes", "no", "on", "off") else new
    place.tokens.damaged.add(place.index)
    message = "the value of an option is a literal: a string goes in quotation marks"
    finding = place.finding("VSC005", message, f"write `{new}`", new=sure)
    return finding, Repair(place.tables.number["STRING"], consumes=True)


def _reserved_name(place: WrongPlace) -> Explanation | None:
    if place.terminal not in place.tables.reserved or "NAME" not in place.expected:
        return None
    if "LPAR" in place.expected and place.word_at(place.index + 1) not in (",", ")", ";", ".", "as"):
        return None  # where an expression is expected; a part of it is more likely missing
    message = f"`{place.word}` is a reserved word"
    place.tokens.told.add(place.word)
    finding = place.finding("VSC017", message, f"to use it as a name, put it in backticks: `` `{place.word}` ``")
    return finding, Repair(place.tables.name, consumes=True)


def _misspelled(place: WrongPlace) -> Explanation | None:
    shortest = 4 if place.terminal in place.tables.reserved else 3  # `end` is not a misspelled `and`
    if not place.is_word() or len(place.word) < shortest or place.word.startswith("`"):
        return None
    if "OR" in place.expected and (help := _OTHER_OPERATORS.get(place.word.lower())) is not None:
        return place.finding("VSC010", f"there is no operator `{place.word}`", help), None
    words = {place.tables.texts[place.tables.number[name]]: name for name in place.expected
             if name in place.tables.number and name.lower() in place.tables.words}  # fmt: skip
    near = nearest(place.word, words)
    if near is None or ("AS" in place.expected and len(near) < 4):  # more likely a new name whose `as` is missing
        return None
    message, help = f"unknown word `{place.word}`", f"did you mean `{near}`?"
    finding = place.finding("VSC005", message, help, new=misspelt(place.word, words))
    return finding, Repair(place.tables.number[words[near]], consumes=True)


def _window(place: WrongPlace) -> Explanation | None:
    """`emit` without a window, or a window right after `group by`, with no expression to group by."""
    if "WINDOW" not in place.expected or "AS" not in place.expected:
        return None
    if place.word == "emit":
        help = "write the window in front of it, as in `window tumbling (size = 1 hour) emit final`, or remove it"
        return place.finding("VSC005", "`emit` needs a window", help), None
    if place.word_at(place.index - 1) == "window" and place.word_at(place.index + 1) == "(":
        span, help = place.tokens.span(place.index - 1), "write it in front, as in `group by account window ...`"
        return place.finding("VSC005", "`group by` needs an expression", help, span), None
    return None


def _missing_as(place: WrongPlace) -> Explanation | None:
    if "AS" not in place.expected or not place.is_word() or place.word in place.tables.words:
        return None
    several = "COMMA" in place.expected and open_bracket(place) is None
    if not place.machine.reads([place.tables.number["AS"]], place.index, 2):
        following = place.word_at(place.index + 1)
        if several and (following.isidentifier() or following == ".") and "OR" in place.expected:
            return place.finding(
                "VSC022", "a comma is missing between two columns", f"write `,` before `{place.word}`"
            ), None
        return None
    alias = place.tables.number["AS"]
    place.machine.take(alias, place.index, inserted=True)
    source = place.machine.last(2)
    written = place.tokens.text[source.start : source.end]
    help = f"write {code(f'{written} as {place.word}')}"
    if len(written) > 60 or "\n" in written:
        help = f"write {code(f'as {place.word}')}"
    rival = None
    if several and _COLUMN.fullmatch(written):
        help += f" for another name, or {code(f'{written}, {place.word}')} for two columns"
        rival = f", {place.word}"
    fix = Fix(place.span, f"as {place.word}", rival)
    what = "`as`" if rival is None else "`as` or a comma"
    finding = Finding("VSC009", place.span, f"{what} is missing before `{place.word}`", (), help, fix)
    return finding, Repair(None, consumes=False)


def _other_dialect(place: WrongPlace) -> Explanation | None:
    """Forms of SQL and other dialects that this language writes differently."""
    fact = None
    if "JOIN" in place.expected and place.word.lower() in OTHER_JOINS:
        fact, help = f"there is no `{place.word} join`", OTHER_JOINS[place.word.lower()]
    elif place.word.lower() == "select" and "FILTER" in place.expected:
        help = "write `map INPUT select ...`"
    elif place.word.lower() == "from" and {"COMMA", "SEMICOLON"} <= set(place.expected):
        fact = "the input of an operation does not follow `from`"
        help = "write the input before `select`, as in `map INPUT select ...`"
    elif place.name == "WHERE" and {"SEMICOLON", "SELECT"} & set(place.expected):
        fact = "only a `filter` has a `where`"
        help = "filter in a separate statement, as in `stream NAME = filter INPUT where ...;`"
    elif _as_of(place):
        fact = "a join does not say as of which time"
        help = "leave it out: a join with a versioned table finds the row that was valid at the record's own time"
    elif place.expected == ["EQUAL"]:
        help = "write `=`" if place.before != "STRING" else "an option has a name, as in `path = '...'`"
    elif place.word == "outer" and place.word_at(place.index - 1) == "left":
        fact = "there is no `left outer join`"
        help = "write `left join`"
    elif place.word == ":" and place.word_at(place.index + 1) == ":":
        help = "write `cast(... as TYPE)`"
    elif "COLON" in place.expected and place.is_word():
        return _member(place)
    elif place.name == "AS" and "EQUAL" in place.expected and "OR" not in place.expected:
        help = "write `=`"
    elif place.name in ("RPAR", "COMMA") and "AS" in place.expected and "COMMA" not in place.expected:
        fact = "a `cast` needs a type"
        help = "write `cast(... as TYPE)`"
    elif place.name == "DURATION" and place.word_at(place.index - 1) == "interval":
        fact, help = "a duration is written without `interval`", f"write `{place.word}`"
    elif place.name == "SEMICOLON" and place.expected == ["LPAR"]:
        fact = f"the options of `{place.word_at(place.index - 1)}` are missing"
        help = f"write `{place.word_at(place.index - 1)} ()`"
    elif place.word == "=" and place.before == "NOT":
        fact, help = "a comparison has no `not`", "write `<>`"
    else:
        return None
    return _unexpected(place, help, _edit(place), fact)


def _twice(place: WrongPlace) -> Explanation | None:
    """A word or a sign that stands twice."""
    same = place.word == place.word_at(place.index - 1) and place.index - 1 > place.first
    return _second(place, place.index) if same and place.word not in (",", ")") else None


def _name_twice(place: WrongPlace) -> Explanation | None:
    """``price price``, or ``join a with with b``, where the second one was read as a name."""
    one, two, three = (place.word_at(place.index - back) for back in (0, 1, 2))
    if two == three and two.isidentifier():
        return _second(place, place.index - 1)
    is_name = place.terminal in place.tables.reserved and place.word_at(place.index + 1) in ("as", ",", ";", ")")
    if one != two or is_name or one in ("and", "or", "not") or three == "merge":
        return None
    at_time_zone = one == "at" and place.word_at(place.index + 1).lower() == "time"
    return _twice(place) if one.replace("_", "a").isalnum() and not at_time_zone else None


def _second(place: WrongPlace, index: int) -> Explanation:
    span, word = place.tokens.span(index), place.word_at(index)
    fix = Fix(Span(place.tokens.ends[index - 1], span.end), "")
    return Finding("VSC005", span, f"{code(word)} stands twice", (), "remove one of them", fix), None


def _typed_literal(place: WrongPlace) -> Explanation | None:
    """``date '2026-01-01'``. Behind the items of a map, `timestamp` begins a clause, which then ends too late."""
    clause = place.name in ("AS", "COMMA") and place.before == "STRING"
    index = place.index - clause
    kind, literal = place.word_at(index - 1).lower(), place.word_at(index)
    if (kind != "timestamp" and (clause or kind != "date")) or not re.match("'[0-9]", literal):
        return None
    fact = f"there are no literals that begin with `{kind}`"
    return Finding("VSC005", place.tokens.span(index), fact, (), f"write `cast({literal} as {kind})`"), None


def _member(place: WrongPlace) -> Explanation:
    """A name or a type inside ``<...>`` after a name: ``struct<a int>``, ``map<string int>``."""
    before, opened = place.word_at(place.index - 1), place.index - 1
    while opened > place.first and place.word_at(opened) != "<":
        opened -= 1
    if place.word_at(opened - 1).lower() == "map":
        fix = Fix(Span(place.span.start - 1, place.span.start - 1), ",")
        return Finding("VSC022", place.span, "a comma is missing between the types of a map", (),
                       f"write `map<{before}, {place.word}>`", fix), None  # fmt: skip
    return _unexpected(
        place, f"write `{before}: {place.word}`", _edit(place), "a `:` stands between a member and its type"
    )


def _edit(place: WrongPlace) -> Fix | None:
    """What certainly has to change at a form of another dialect."""
    starts, end = place.tokens.starts, place.tokens.ends[place.index - 1]
    word, before, following = place.word.lower(), place.word_at(place.index - 1), place.word_at(place.index + 1).lower()
    joins = "JOIN" in place.expected
    if (joins and (word, following) in (("inner", "join"), ("full", "outer"))) or (before, word) == ("left", "outer"):
        return Fix(Span(place.span.start, starts[place.index + 1]), "")
    if joins and (word, following) == ("full", "join"):
        return Fix(place.span, "outer")
    if place.name == "DURATION" and before == "interval":
        return Fix(Span(starts[place.index - 1], place.span.start), "")
    if place.name == "SEMICOLON" and place.expected == ["LPAR"]:
        return Fix(Span(end, end), " ()")
    if "COLON" in place.expected and place.is_word():
        return Fix(Span(end, end), ":")
    if place.name == "AS" and "EQUAL" in place.expected and "OR" not in place.expected:
        return Fix(place.span, "=")
    return None


def _as_of(place: WrongPlace) -> bool:
    """Whether this is ``join ... as of TIME`` or SQL's ``for system_time as of TIME``."""
    if place.word.lower() == "for":
        return place.word_at(place.index + 1).lower() == "system_time"
    return "GRACE" in place.expected and [place.word_at(place.index - i) for i in (2, 1)] == ["as", "of"]


def _unexpected(
    place: WrongPlace, help: str | None = None, fix: Fix | None = None, fact: str | None = None
) -> Explanation:
    """The finding for a token that belongs elsewhere; `fact` says why, if that is known."""
    if place.index == place.first and "TOPOLOGY" in place.expected:
        expected = "a statement begins with `topology`, `stream`, `table`, `global table` or `sink`"
    else:
        expected = one_of(place.expected, place.tables)
    if help is None and place.terminal in place.tables.reserved and "NAME" in place.expected:
        help = f"as a name, `{place.word}` needs backticks"
    if help is None:
        help = _form(place)
    message = fact or f"{expected}, found {found(place.name, place.word)}"
    return Finding("VSC005", place.span, message, (), help, fix), None


def _form(place: WrongPlace) -> str:
    """The form of the statement, as a last resort."""
    form = form_at(place)
    if form is not None:
        return f"the form is `{form}`"
    head = place.word_at(place.first)
    if head in ("sink", "topology"):
        return f"the form is `{form_of(head)}`"
    if head in ("stream", "table", "global") and place.index > place.first:
        return "the form is `KIND NAME (COLUMN TYPE, ...) from CONNECTOR (...) key COLUMN`, or `KIND NAME = OPERATION`"
    return "remove it, or begin with one of them; `;` ends a statement"


_MISTAKES: tuple[Callable[[WrongPlace], Explanation | None], ...] = (
    _upper_case,
    _chained_comparison,
    _missing_semicolon,
    incomplete,
    _name_twice,
    wrong_statement,
    bracket,
    _typed_literal,
    comma,
    wrong_source,
    wrong_options,
    sql_clause,
    _window,
    wrong_operation,
    wrong_expression,
    duration_mistake,
    _unquoted_value,
    _other_dialect,
    _reserved_name,
    _misspelled,
    _missing_as,
    _twice,
)
