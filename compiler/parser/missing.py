"""What is missing: the rest of a statement, a bracket, a comma."""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.wording import HARD_WORDS, code
from vsc.compiler.parser.lexer import Tokens
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import closing as closing_of
from vsc.compiler.parser.surroundings import in_columns, name_index, open_bracket, say, wrong
from vsc.compiler.parser.types import is_type_name
from vsc.compiler.parser.wording import one_of
from vsc.compiler.source import Span
from vsc.plan.functions import FUNCTIONS

__all__ = ["bracket", "broken_off", "comma", "incomplete", "starts_statement"]

_CLOSING = {"(": ")", "[": "]"}
_COMPLETE = "complete it, and end it with `;`"


def starts_statement(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` is the first on its line and clearly begins a statement."""
    start = tokens.starts[index]
    if tokens.text[tokens.text.rfind("\n", 0, start) + 1 : start].strip():
        return False
    words = [tokens.word(i) for i in range(index, min(index + 3, len(tokens.kinds)))]
    words += [""] * (3 - len(words))
    if words[0] in ("stream", "table"):
        return words[2] in ("=", "(") and not (words[2] == "(" and is_type_name(words[1]))
    return (
        words[:2] == ["global", "table"]
        or (words[0] == "sink" and words[2] in ("to", "of"))
        or (words[0] == "let" and words[2] == "=")
        or (words[0] == "function" and words[2] == "(")
        or (words[0] == "include" and words[1].startswith("'"))
        or (words[0] == "topology" and words[2] in (";", "("))
    )


def broken_off(tokens: Tokens, first: int, index: int) -> tuple[int, Explanation] | None:
    """Explains an unexpected token just after the beginning of a new statement; None if it is elsewhere.

    The statement at `first` is then incomplete. The words that begin the next one were read as names, since most words
    can be names. Returns the first of them as well.
    """
    for start in range(index - 1, max(first, index - 4), -1):
        if starts_statement(tokens, start):
            if start - 1 in tokens.damaged:
                return start, (None, None)
            end = tokens.ends[start - 1]
            message = "the statement is not complete"
            return start, (Finding("VSC005", Span(end, end), message, (), _COMPLETE), None)
    return None


def incomplete(place: WrongPlace) -> Explanation | None:
    """The text ends, or another statement begins, where a part of this one is missing."""
    if place.index == place.first or not (place.name == "$END" or starts_statement(place.tokens, place.index)):
        return None
    end = place.tokens.ends[place.index - 1]
    message = f"the statement is not complete: {one_of(place.expected, place.tables)}"
    return wrong(place, message, _COMPLETE, Span(end, end))


def bracket(place: WrongPlace) -> Explanation | None:
    """A bracket that is not closed before the statement ends or goes on, or one that closes nothing."""
    opened = open_bracket(place)
    if place.word in _CLOSING.values() and opened is None and place.index > place.first:
        return say(place, "VSC023", f"this {code(place.word)} closes nothing", "remove it", new="")
    if opened is None:
        return None
    closing = _CLOSING[place.word_at(opened)]
    if place.tables.names[place.tables.signs[closing]] not in place.expected:
        return None
    ends = place.name == "SEMICOLON" and (_starts_next(place) or "COMMA" not in place.expected)
    goes_on = (in_columns(place) or not {"OR", "CASE"} & set(place.expected)) and _clause_follows(place)
    alias = _alias(place, opened)
    if not ends and not goes_on and alias is None:
        return None
    before, last = place.word_at(opened - 1), place.index if alias is None else alias
    end = place.tokens.ends[last - 1]
    owner = f" of {code(before)}" if before.isidentifier() and before not in HARD_WORDS else ""
    message = f"the {code(place.word_at(opened))}{owner} is not closed"
    help = f"write {code(closing)} before {code(place.word_at(last))}"
    fix = Fix(Span(end, end), closing)
    finding = Finding("VSC023", place.tokens.span(opened), message, (), help, fix)
    return finding, None if alias is not None else Repair(place.tables.signs[closing], consumes=False)


def _alias(place: WrongPlace, opened: int) -> int | None:
    """The `as` of the column whose call is not closed, here or before its name: ``round(price, 2 as y;``."""
    outer = opened
    while place.word_at(outer - 1) == "(":
        outer -= 1
    if place.word_at(opened) != "(" or place.word_at(closing_of(place, outer)) == ")":
        return None
    if place.name == "AS" and "AS" not in place.expected:
        return place.index
    named = place.word_at(opened - 1) not in ("struct", "cast", "try_cast")
    return place.index - 2 if named and place.name == "SEMICOLON" and place.word_at(place.index - 2) == "as" else None


def _starts_next(place: WrongPlace) -> bool:
    """Whether the text ends after the place, or a new statement begins there."""
    following = place.index + 1
    return place.tokens.kinds[following] == place.tables.end or starts_statement(place.tokens, following)


def _clause_follows(place: WrongPlace) -> bool:
    """Whether a clause of a source begins here: ``from NAME (``, ``key``, ..."""
    if place.word == "from":
        return place.word_at(place.index + 2) == "("
    if place.word == "delete":
        return place.word_at(place.index + 1) == "when"
    following = place.word_at(place.index + 1)
    if place.word in ("select", "emit"):
        return following != "=" and not (in_columns(place) and is_type_name(following))
    return place.word in ("key", "timestamp", "materialize") and following != "=" and not is_type_name(following)


def _is_argument(place: WrongPlace) -> bool:
    """Whether an argument of a call begins here, after another one: ``contains(k 'a')``."""
    opened = open_bracket(place)
    if opened is None or "OR" not in place.expected or place.word in place.tables.words:
        return False
    owner = place.word_at(opened - 1)
    before = place.word_at(place.index - 1).lower()
    if before in ("both", "leading", "trailing", "from", "for", "all", "distinct", "lambda"):
        return False  # a special form of SQL or Python
    return (
        owner in FUNCTIONS and owner != "struct" and (place.is_word() or place.name in ("STRING", "INTEGER", "DECIMAL"))
    )


def comma(place: WrongPlace) -> Explanation | None:
    """Two columns or two options without a comma between them."""
    following = place.word_at(place.index + 1)
    if place.name == "SEMICOLON" and {"COMMA", "RPAR"} <= set(place.expected):
        help = "write `,` in its place: `;` ends the statement"
        finding = place.finding("VSC022", "the parts of a list are separated by commas", help, new=",")
        return finding, Repair(place.tables.number["COMMA"], consumes=True)
    if not {"COMMA", "RPAR"} <= set(place.expected) or not (
        place.is_word() or place.name in ("STRING", "INTEGER", "DECIMAL")
    ):
        return None
    if in_columns(place) and place.is_word() and is_type_name(following):
        what = "columns"
    elif _is_argument(place):
        what = "arguments"
    elif following == "=" and "OR" not in place.expected and open_bracket(place) != name_index(place) + 1:
        what = "options"
    else:
        return None
    end = place.tokens.ends[place.index - 1]
    help = f"write `,` before {code(place.word)}"
    fix = Fix(Span(end, end), ",")
    finding = Finding("VSC022", place.span, f"a comma is missing between two {what}", (), help, fix)
    return finding, Repair(place.tables.number["COMMA"], consumes=False)
