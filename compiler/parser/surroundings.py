"""What stands around a place: brackets, the statement's parts, text as it is written."""

from __future__ import annotations

from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.source import Span

__all__ = [
    "before_comma",
    "body",
    "bracket_end",
    "closing",
    "declared",
    "in_columns",
    "input_of",
    "name_index",
    "open_bracket",
    "opening",
    "operation",
    "phrase",
    "say",
    "text",
    "wrong",
]

_OPEN, _CLOSE = ("(", "["), (")", "]")


def say(
    place: WrongPlace, code: str, message: str, help: str | None, span: Span | None = None, new: str | None = None
) -> Explanation:
    """A finding after which the statement is not read further."""
    return place.finding(code, message, help, span, new), None


def wrong(place: WrongPlace, message: str, help: str, span: Span | None = None, new: str | None = None) -> Explanation:
    """`say` for what is not expected at its place."""
    return say(place, "VSC005", message, help, span, new)


def phrase(place: WrongPlace, count: int, start: int = 0) -> tuple[str, ...]:
    """The next `count` words in lower case, from the place plus `start` on."""
    return tuple(place.word_at(place.index + start + n).lower() for n in range(count))


def closing(place: WrongPlace, index: int) -> int:
    """The token that closes the parenthesis at `index`; the statement's last token if nothing closes it."""
    depth = 0
    while (word := place.word_at(index)) and word != ";":
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return index
        index += 1
    return index - 1


def opening(place: WrongPlace, index: int) -> int:
    """The token that opens the parenthesis closed at `index`."""
    depth = 0
    while index > place.first:
        word = place.word_at(index)
        depth += (word == ")") - (word == "(")
        if depth == 0:
            break
        index -= 1
    return index


def open_bracket(place: WrongPlace) -> int | None:
    """The innermost bracket that is open at the place."""
    depth = 0
    for index in range(place.index - 1, place.first, -1):
        word = place.word_at(index)
        depth += (word in _CLOSE) - (word in _OPEN)
        if depth < 0:
            return index
    return None


def bracket_end(place: WrongPlace) -> int:
    """The next ``]`` of the statement, or its last token."""
    last = place.index
    while place.word_at(last) not in ("]", ";", ""):
        last += 1
    return last


def text(place: WrongPlace, first: int, last: int) -> str:
    """The text from one token to another, on one line."""
    if last < first:
        return ""
    return " ".join(place.tokens.text[place.tokens.starts[first] : place.tokens.ends[last]].split())


def body(place: WrongPlace, first: int, *ends: str) -> str:
    """The text from a token up to one of the words `ends` outside of brackets, or to the end of the statement."""
    depth, index = 0, first
    while (word := place.word_at(index)) and word != ";":
        depth += (word in _OPEN) - (word in _CLOSE)
        if depth < 0 or (depth == 0 and index > first and word.lower() in ends):
            break
        index += 1
    return text(place, first, index - 1)


def before_comma(place: WrongPlace) -> str:
    """The text between the open bracket and the comma at the place."""
    return text(place, (open_bracket(place) or place.first) + 1, place.index - 1)


def name_index(place: WrongPlace) -> int:
    """Where the name that the statement declares stands, or the node that a sink writes."""
    return place.first + (2 if place.word_at(place.first).lower() == "global" else 1)


def declared(place: WrongPlace) -> str:
    """The name that the statement declares, or the node that a sink writes."""
    return place.word_at(name_index(place))


def in_columns(place: WrongPlace) -> bool:
    """Whether the place is in the list of a source's columns, outside of a type."""
    is_source = place.word_at(place.first).lower() in ("stream", "table", "global")
    return is_source and open_bracket(place) == name_index(place) + 1 != place.index


def operation(place: WrongPlace) -> int | None:
    """Where the statement's operation stands, after the ``=``; None for a source or a sink."""
    index = name_index(place) + 1
    return index + 1 if place.word_at(index) == "=" and place.index > index else None


def input_of(place: WrongPlace) -> str:
    """The name of the statement's first input, which follows the operation."""
    for index in range(place.first, place.index):
        if place.word_at(index) == "=":
            return place.word_at(index + 2)
    return "INPUT"
