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
from vsc.compiler.parser.machine import Failure, Machine
from vsc.compiler.parser.missing import bracket, comma, incomplete, starts_statement
from vsc.compiler.parser.mistake_rows import explanation, row_for
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import open_bracket, operation, wrong
from vsc.compiler.parser.units import duration_mistake
from vsc.compiler.parser.wording import form_of, found, one_of
from vsc.compiler.source import Span
from vsc.grammar.forms import clauses_of, operations

__all__ = ["MISTAKES", "explain"]

_COMPARISONS = ("EQUAL", "LESSTHAN", "MORETHAN", "IS", "IN", "BETWEEN", "LIKE", "NOT")
_COMPARISON_SIGNS = frozenset(["=", "<>", "!=", "<", "<=", ">", ">="])
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
    for mistake in MISTAKES:
        if isinstance(mistake, str):
            row = row_for(mistake, place)
            said = None if row is None else explanation(row, place)
        else:
            said = mistake(place)
        if said is not None:
            return said
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
    words = {place.tables.texts[place.tables.number[name]]: name for name in place.expected
             if name in place.tables.number and name.lower() in place.tables.words}  # fmt: skip
    near = nearest(place.word, words)
    if near is None or ("AS" in place.expected and len(near) < 4):  # more likely a new name whose `as` is missing
        return None
    message, help = f"unknown word `{place.word}`", f"did you mean `{near}`?"
    finding = place.finding("VSC005", message, help, new=misspelt(place.word, words))
    return finding, Repair(place.tables.number[words[near]], consumes=True)


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


def _unexpected(place: WrongPlace) -> Explanation:
    """The finding for a token that belongs elsewhere, where nothing more is known."""
    if place.index == place.first and "TOPOLOGY" in place.expected:
        expected = "a statement begins with `topology`, `stream`, `table`, `global table` or `sink`"
    else:
        expected = one_of(place.expected, place.tables)
    is_reserved = place.terminal in place.tables.reserved and "NAME" in place.expected
    help = f"as a name, `{place.word}` needs backticks" if is_reserved else _form(place)
    return wrong(place, f"{expected}, found {found(place.name, place.word)}", help)


def _form(place: WrongPlace) -> str:
    """The form of the clause that ends too early, or of the statement, as a last resort."""
    at, head = operation(place), place.word_at(place.first).lower()
    word = head if at is None else place.word_at(at).lower()
    if at is not None and (clause := _unfinished_clause(place, at)) is not None:
        return f"the form is `{clause}`"
    if word in operations() or word in ("sink", "topology"):
        return f"the form is `{form_of(word)}`"
    if head in ("stream", "table", "global") and place.index > place.first:
        return "the form is `KIND NAME (COLUMN TYPE, ...) from CONNECTOR (...) key COLUMN`, or `KIND NAME = OPERATION`"
    return "remove it, or begin with one of them; `;` ends a statement"


def _unfinished_clause(place: WrongPlace, at: int) -> str | None:
    """The form of the clause in which the place is, if neither another clause nor the end can follow here."""
    clauses = clauses_of(place.word_at(at).lower())
    order = [clause.word for clause in clauses]
    begun = next((word for index in range(place.index - 1, at, -1) if (word := place.word_at(index)) in order), None)
    if begun is None:
        return None
    number = order.index(begun)
    behind = {"SEMICOLON", *(word.upper() for word in order[number + 1 :])}
    return None if behind & set(place.expected) else clauses[number].form


MISTAKES: tuple[Callable[[WrongPlace], Explanation | None] | str, ...] = (
    _upper_case,
    _chained_comparison,
    _missing_semicolon,
    incomplete,
    _name_twice,
    "statements",
    bracket,
    "literals",
    comma,
    "sources",
    "options",
    "sql",
    "operations",
    "expressions",
    duration_mistake,
    _unquoted_value,
    "dialects",
    _reserved_name,
    _misspelled,
    _missing_as,
    _twice,
)
"""Who is asked, in this order: families of rows, and functions."""
