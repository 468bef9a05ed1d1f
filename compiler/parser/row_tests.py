"""Tests that rows of mistakes name: ``?in_columns``. They ask what the words around a place do not tell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise, takewhile

from vsc.compiler.diagnostics.suggest import misspelt
from vsc.compiler.diagnostics.wording import HARD_WORDS
from vsc.compiler.parser import rebuilt
from vsc.compiler.parser.place import WrongPlace
from vsc.compiler.parser.row_holes import (
    bracketed,
    clauses_before,
    later_clause,
    name_with_signs,
    optional_clauses,
    own_option,
)
from vsc.compiler.parser.surroundings import (
    body,
    in_columns,
    name_index,
    open_bracket,
    operation,
    phrase,
)
from vsc.compiler.parser.types import is_type_name
from vsc.grammar.forms import clauses_of

__all__ = ["TESTS"]

_ENDS_OF_IN = ("and", "or", "materialize", "select", "then")


def _is_misspelt(place: WrongPlace) -> bool:
    """Whether the word is a misspelt keyword of those that are allowed here."""
    words = [word for word, terminal in place.tables.words.items() if place.tables.names[terminal] in place.expected]
    return place.is_word() and len(place.word) > 3 and misspelt(place.word, words) is not None


def _later(place: WrongPlace, word: str) -> bool:
    """Whether the statement has the word behind the place."""
    behind = takewhile(lambda each: each not in ("", ";"), map(place.word_at, count(place.index)))
    return word in map(str.lower, behind)


def _before_select(place: WrongPlace) -> bool:
    words = [clause.word for clause in clauses_of(place.word_at(operation(place) or place.first))]
    return place.word.lower() in words[: words.index("select")]


def _glued(place: WrongPlace) -> bool:
    """Whether no blank stands in front of the place."""
    return place.tokens.ends[place.index - 1] == place.span.start


def _told(place: WrongPlace) -> bool:
    """Whether an earlier option of the list lacks its ``=`` as well: that is one mistake."""
    words = [place.word_at(index) for index in range((open_bracket(place) or 0) + 1, place.index - 1)]
    return ":" in words or words.count("=") < words.count(",")


def _lonely_column(place: WrongPlace) -> bool:
    """Whether the word is a column of the source that nothing asks for."""
    words = [place.word_at(index) for index in range(place.first, place.index)]
    columns = [one for one, following in pairwise(words[2:]) if is_type_name(following)]
    one, two = place.word_at(place.index - 1), place.word_at(place.index - 2)
    return place.is_word() and place.word in columns and one != two


def _primary_key_before(place: WrongPlace) -> bool:
    opened = open_bracket(place) or place.first
    return phrase(place, 2, opened - place.index - 2) == ("primary", "key")


def _bare(place: WrongPlace) -> bool:
    """Whether the place is in parentheses that no call has."""
    opened = open_bracket(place)
    owner = "" if opened is None else place.word_at(opened - 1)
    return opened is not None and (owner in HARD_WORDS or not owner.isidentifier())


def _in_number(place: WrongPlace) -> bool:
    """Whether the comma at the place is inside a number: ``1,000``, ``1,5``."""
    starts, ends = place.tokens.starts, place.tokens.ends
    joined = _glued(place) and ends[place.index] == starts[place.index + 1]
    return joined and place.word_at(place.index + 1).isdigit()


def _owner_is(place: WrongPlace, sign: str) -> bool:
    opened = open_bracket(place)
    return opened is not None and place.word_at(opened) == sign


def _in_map(place: WrongPlace) -> bool:
    opened = place.index - 1
    while opened > place.first and place.word_at(opened) != "<":
        opened -= 1
    return place.word_at(opened - 1).lower() == "map"


def _behind(place: WrongPlace, count: int) -> bool:
    return place.index == place.first + count


TESTS: dict[str, Callable[[WrongPlace], bool]] = {
    "first": lambda place: place.index == place.first,
    "at_1": lambda place: _behind(place, 1),
    "at_2": lambda place: _behind(place, 2),
    "at_name": lambda place: place.index == name_index(place),
    "near": lambda place: place.index <= place.first + 6,
    "behind_name": lambda place: place.index > name_index(place),
    "in_columns": in_columns,
    "columns": lambda place: in_columns(place) or open_bracket(place) is not None,
    "opens": lambda place: open_bracket(place) == place.index - 1,
    "glued": _glued,
    "misspelt": _is_misspelt,
    "several_inside": lambda place: "," in bracketed(place, place.index)[1:-1],
    "second_clause": lambda place: (
        place.word.lower() in optional_clauses(place) and place.word.lower() in clauses_before(place)
    ),
    "late_clause": lambda place: bool(later_clause(place)),
    "clause_before_select": _before_select,
    "told": _told,
    "own_option": lambda place: bool(own_option(place)),
    "in_key": rebuilt.in_key,
    "primary_key_before": _primary_key_before,
    "lonely_column": _lonely_column,
    "has_from": lambda place: "from" in [place.word_at(index) for index in range(place.first, place.index)],
    "signs_in_name": lambda place: name_with_signs(place)[0] > name_index(place),
    "declares_if": lambda place: place.word_at(name_index(place)).lower() == "if",
    "part_of_time": lambda place: bool(rebuilt.part_of_time(place)),
    "first_distinct": lambda place: place.word_at((open_bracket(place) or 0) + 1).lower() == "distinct",
    "alone_in": lambda place: body(place, place.index, *_ENDS_OF_IN) == place.word,
    "thousands": lambda place: _in_number(place) and len(place.word_at(place.index + 1)) == 3,
    "decimal_comma": lambda place: (
        _in_number(place) and (place.before == "DECIMAL" or len(place.word_at(place.index + 1)) != 3)
    ),
    "in_square": lambda place: _owner_is(place, "["),
    "in_bare": _bare,
    "in_map": _in_map,
    "operand": lambda place: place.is_word() or place.name in ("STRING", "INTEGER", "DECIMAL", "STAR"),
    "from_later": lambda place: _later(place, "from"),
    "joins_later": lambda place: _later(place, "join"),
    "reads_as": lambda place: place.machine.reads([place.tables.number["AS"]], place.index, 2),
}
