"""Reads timestamps by a date pattern (``dd.MM.yyyy HH:mm``), as Spark's ``to_timestamp(text, pattern)`` does.

Only the letters that `vsc.plan.functions.parse_pattern` knows; parts that a pattern does not name are those of
1970-01-01 00:00:00 UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from vsc.plan.functions import PatternPart, parse_pattern
from vsc.runtime.expressions.calendar import DAY, HOUR, MINUTE, SECOND, days_of, parse_zone

__all__ = ["pattern_reader"]

_DIGITS = {1: r"\d{1,19}", 2: r"\d{2}"}


def pattern_reader(pattern: str) -> Callable[[str], int | None]:
    """The function that reads a text by `pattern` as microseconds since the epoch, None if it does not fit."""
    parts = parse_pattern(pattern)
    regex = re.compile("".join(_regex(part, _follows(parts, i)) for i, part in enumerate(parts)), re.ASCII | re.I)

    def read(text: str) -> int | None:
        match = regex.fullmatch(text)
        return None if match is None else _instant(match.groupdict())

    return read


def _follows(parts: tuple[PatternPart, ...], i: int) -> bool:
    """Whether digits of another field come right after part `i`."""
    return i + 1 < len(parts) and parts[i + 1].letter not in ("", "X")


def _regex(part: PatternPart, adjacent: bool) -> str:
    match part.letter:
        case "":
            return re.escape(part.text)
        case "y":
            return r"(?P<y>\d{4})" if adjacent else r"(?P<y>\d{4}|\+\d{5,9}|-\d{4,9})"
        case "S":
            return rf"(?P<S>\d{{1,{len(part.text)}}})"  # Spark reads up to as many digits as there are letters
        case "X":
            return r"(?P<X>Z|[+-]\d\d:\d\d)" if len(part.text) == 3 else r"(?P<X>Z|[+-]\d\d(?:\d\d)?)"
        case letter:
            return rf"(?P<{letter}>{_DIGITS[len(part.text)]})"


def _instant(fields: dict[str, str | None]) -> int | None:
    def number(letter: str, default: int) -> int:
        text = fields.get(letter)
        return default if text is None else int(text)

    hour, minute, second = number("H", 0), number("m", 0), number("s", 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    try:
        days = days_of(number("y", 1970), number("M", 1), number("d", 1))
    except ValueError:
        return None
    fraction = int((fields.get("S") or "")[:6].ljust(6, "0"))
    zone = parse_zone((fields.get("X") or "Z").upper())
    if zone is None:
        return None
    micros = days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction - zone
    return micros if -(2**63) <= micros < 2**63 else None
