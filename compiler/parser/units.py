"""Explains mistakes in durations and guesses the intended unit of time. The lexer is what reads durations."""

from __future__ import annotations

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.compiler.parser.lexer import UNITS
from vsc.compiler.parser.numbers import SPELLINGS
from vsc.compiler.parser.place import Explanation, WrongPlace

__all__ = ["duration_mistake"]

_DAYS = {"week": 7, "weeks": 7, "w": 7}
_LONG = ("milliseconds", "seconds", "minutes", "hours", "days")
_TOO_FINE = "the smallest unit is the millisecond, `ms`"
_NOT_FIXED = "its length is not fixed: write a number of `days`"
_NONE = {
    **dict.fromkeys(("us", "micro", "micros", "microsecond", "microseconds"), _TOO_FINE),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), _TOO_FINE),
    **dict.fromkeys(("month", "months", "mon", "mons", "quarter", "quarters"), _NOT_FIXED),
    **dict.fromkeys(("year", "years", "y", "yr", "yrs"), _NOT_FIXED),
}
"""Units of other languages that this one does not have. They are similar to some that it has."""


def duration_mistake(place: WrongPlace) -> Explanation | None:
    """A number that should be a duration but has no unit, a wrong unit, a fraction, a minus sign or quotes."""
    index = place.index
    word = place.before == "INTEGER" and place.is_word() and place.word not in place.tables.words
    known = place.word.lower() in {*_NONE, *_DAYS} or _nearest(place.word) is not None
    if word and (known or "AS" not in place.expected):
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
    text = place.word.strip("'")
    if place.name == "STRING" and (text[:1].isdigit() or iso_duration(text)):
        written = iso_duration(text) or text
        help = f"write `{written}`, without quotes"
        return place.finding("VSC004", "a duration is not a string", help, new=_sure_duration(written)), None
    if place.name == "MINUS" and "INTEGER" not in place.expected:
        return place.finding("VSC004", "a duration cannot be negative here", "remove the `-`"), None
    return None


def _wrong_unit(place: WrongPlace, index: int) -> Finding:
    written, number, span = place.tokens.word(index), place.word_at(index - 1), place.tokens.span(index)
    message = f"`{written}` is not a unit of time"
    if written.lower() in _DAYS and number.isdigit():
        days = f"{int(number) * _DAYS[written.lower()]} days"
        fix = Fix(place.tokens.span(index - 1).to(span), days)
        return Finding("VSC004", span, message, (), f"write `{days}`", fix)
    if written.lower() in _NONE:
        return Finding("VSC004", span, message, (), _NONE[written.lower()])
    near = _nearest(written)
    if near is None:
        return Finding("VSC004", span, message, (), "units are `ms`, `seconds`, `minutes`, `hours` and `days`")
    if number == "1" and near != "ms":
        near = near.removesuffix("s")
    sure = written.lower() in SPELLINGS or misspelt(written, _LONG) is not None
    return Finding("VSC004", span, message, (), f"did you mean `{near}`?", Fix(span, near) if sure else None)


def _fraction(place: WrongPlace, index: int) -> Finding:
    span = place.tokens.span(index).to(place.tokens.span(index + 1))
    help = "use a smaller unit as well, as in `1 hour 30 minutes`"
    return place.finding("VSC004", "a duration is made of whole numbers", help, span)


def _sure_duration(text: str) -> str | None:
    """`text` if it is a duration."""
    words = text.split()
    pairs = len(words) % 2 == 0 and zip(words[::2], words[1::2], strict=True)
    return text if pairs and all(number.isdigit() and unit in UNITS for number, unit in pairs) else None


def _nearest(word: str) -> str | None:
    """The unit of time that a word most likely means; None if no unit is similar."""
    if word.lower() in _NONE:
        return None
    plural = [unit for unit in UNITS if unit.endswith("s") and unit != "s"]
    return SPELLINGS.get(word.lower()) or nearest(word, plural) or nearest(word, UNITS)
