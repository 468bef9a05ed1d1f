"""Explains mistakes in durations and guesses the intended unit of time. The lexer is what reads durations."""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.suggest import nearest
from vsc.compiler.parser.lexer import UNITS
from vsc.compiler.parser.place import Explanation, Place

__all__ = ["duration_mistake"]

_HABITS = {
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("sec", "secs"), "seconds"),
    **dict.fromkeys(("min", "mins"), "minutes"),
    **dict.fromkeys(("hr", "hrs"), "hours"),
}
"""Abbreviations from other languages."""
_DAYS = {"week": 7, "weeks": 7, "w": 7}


def duration_mistake(place: Place) -> Explanation | None:
    """A number that should be a duration but has no unit, a wrong unit, a fraction, a minus sign or quotes."""
    index = place.index
    word = place.before == "INTEGER" and place.is_word() and place.word not in place.tables.words
    if word and (_nearest(place.word) is not None or "AS" not in place.expected):
        return _wrong_unit(place, index), None
    if place.before in ("DECIMAL", "DOUBLE") and place.word in UNITS:
        return _fraction(place, index - 1), None
    if "DURATION" not in place.expected and place.before != "DURATION":
        return None
    following = place.word_at(index + 1)
    if place.name == "INTEGER":
        if following[:1].isalpha() and following not in place.tables.words:
            return _wrong_unit(place, index + 1), None
        help = f"write the unit as well, as in `{place.word} minutes`"
        return place.finding("VSC004", f"`{place.word}` lacks a unit of time", help), None
    if place.name in ("DECIMAL", "DOUBLE") and following in UNITS:
        return _fraction(place, index), None
    if place.name == "STRING" and place.word.strip("'")[:1].isdigit():
        written = place.word.strip("'")
        return place.finding("VSC004", "a duration is not a string", f"write `{written}`, without quotes"), None
    if place.name == "MINUS" and "INTEGER" not in place.expected:
        return place.finding("VSC004", "a duration cannot be negative here", "remove the `-`"), None
    return None


def _wrong_unit(place: Place, index: int) -> Finding:
    written = place.tokens.word(index)
    help = _unit_help(written, place.word_at(index - 1))
    return place.finding("VSC004", f"`{written}` is not a unit of time", help, place.tokens.span(index))


def _fraction(place: Place, index: int) -> Finding:
    span = place.tokens.span(index).to(place.tokens.span(index + 1))
    help = "use a smaller unit as well, as in `1 hour 30 minutes`"
    return place.finding("VSC004", "a duration is made of whole numbers", help, span)


def _nearest(word: str) -> str | None:
    """The unit of time that a word most likely means; None if no unit is similar."""
    plural = [unit for unit in UNITS if unit.endswith("s") and unit != "s"]
    return _HABITS.get(word.lower()) or nearest(word, plural) or nearest(word, UNITS)


def _unit_help(word: str, number: str) -> str:
    """What to write in place of `word`, which follows the integer `number` but is not a unit of time."""
    if word.lower() in _DAYS and number.isdigit():
        return f"write `{int(number) * _DAYS[word.lower()]} days`"
    near = _nearest(word)
    if near is None:
        return "units are `ms`, `seconds`, `minutes`, `hours` and `days`"
    if number == "1" and near != "ms":
        near = near.removesuffix("s")
    return f"did you mean `{near}`?"
