"""Dates and timestamps as numbers: their parts, their text, and how text is read, in the ISO calendar.

Dates are days, timestamps microseconds since 1970-01-01. Unlike Python's own classes this works for every year that
fits Spark's types. Guarantees: what Spark 4.x reads and writes with a session time zone of UTC. Not read, unlike in
Spark: a time without a date, which would mean the day of the query.

Of date patterns (``dd.MM.yyyy HH:mm``, as in ``to_timestamp(text, pattern)``) it knows the letters that
`vsc.plan.functions.parse_pattern` knows; parts that a pattern does not name are those of 1970-01-01 00:00:00 UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from vsc.plan.functions import PatternPart, parse_pattern
from vsc.runtime.expressions.failure import ExpressionFailure
from vsc.runtime.expressions.zones import Zone, zone_named

__all__ = [
    "DAY",
    "EDGES",
    "HOUR",
    "MINUTE",
    "SECOND",
    "civil",
    "date_text",
    "parse_date",
    "parse_timestamp",
    "pattern_reader",
    "pattern_writer",
    "timestamp_text",
    "truncated",
    "truncated_in",
]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_STEPS = {"microsecond": 1, "millisecond": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
EDGES = "".join(map(chr, (*range(0x21), 0x7F)))
"""What Spark strips from both ends of a text that it reads: white space and control characters."""

_DATE = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_DATE_ONLY = re.compile(_DATE + r"(?P<rest>[ T].*)?\Z", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    _DATE + r"(?P<time>[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(?P<zone>.*))?)?)?\Z", re.DOTALL | re.ASCII
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_OF = {name[:3].upper(): number for number, name in enumerate(_MONTHS, start=1)}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_CENTURY = 2000
"""In which a year of two digits lies."""
_HALVES = ("AM", "PM")
_OFFSETS = {
    "X": r"Z|[+-]\d\d(?:\d\d)?", "XX": r"Z|[+-]\d{4}", "XXX": r"Z|[+-]\d\d:\d\d",
    "x": r"\+00|(?!\+00)[+-]\d\d(?:\d\d)?", "xx": r"[+-]\d{4}", "xxx": r"[+-]\d\d:\d\d", "Z": r"[+-]\d{4}",
}  # fmt: skip
"""How offsets are written, by the letters of the pattern. Java takes ``+00`` for a whole ``x``."""
_DIGITS = {1: r"\d{1,19}", 2: r"\d{2}"}
_YEAR_1 = date(1970, 1, 1).toordinal() - 1
"""The days from 0001-01-01 to 1970-01-01."""
_ERA = 146_097
"""The days of 400 years, after which the calendar repeats itself."""


def _days_of(year: int, month: int, day: int) -> int:
    """The days from 1970-01-01 to a date of the proleptic Gregorian calendar. Raises ValueError for an invalid date."""
    era, year = divmod(year - 1, 400)
    return era * _ERA + date(year + 1, month, day).toordinal() - 1 - _YEAR_1


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a date."""
    era, days = divmod(days + _YEAR_1, _ERA)
    found = date.fromordinal(days + 1)
    return era * 400 + found.year, found.month, found.day


def date_text(days: int) -> str:
    """The date as ``yyyy-MM-dd``."""
    year, month, day = civil(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def timestamp_text(micros: int) -> str:
    """The timestamp as ``yyyy-MM-dd HH:mm:ss`` and as many digits of its second's fraction as it has."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, SECOND)
    text = f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def truncated(unit: str, micros: Any) -> Any:
    """The start of the `unit` (as in `vsc.plan.functions.TRUNCATION_UNITS`) that the timestamp lies in.

    Of an array of timestamps, if the unit is not longer than a week.
    """
    if unit in _STEPS:
        return micros - micros % _STEPS[unit]
    days = micros // DAY
    if unit == "week":
        return (days - (days + 3) % 7) * DAY
    year, month, _ = civil(days)
    first = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return _days_of(year, first, 1) * DAY


def parse_date(text: str) -> int | None:
    """The date that `text` means to Spark's cast: ``y-m-d``, ``y-m`` or ``y``; a time after it is ignored."""
    match = _DATE_ONLY.match(text.strip(EDGES))
    if match is None or (match["rest"] is not None and match[3] is None):
        return None
    days = _days(*match.group(1, 2, 3))
    return days if days is not None and -(2**31) <= days < 2**31 else None


def parse_timestamp(text: str) -> int | None:
    """The timestamp that `text` means to Spark's cast: a date, then a time with an optional zone."""
    match = _TIMESTAMP.match(text.strip(EDGES))
    if match is None or (match["time"] is not None and match[3] is None):
        return None
    return _instant(match.group(1, 2, 3), match.group(5, 6, 7, 8), (match["zone"] or "").strip(EDGES))


@lru_cache(maxsize=1000)
def pattern_reader(pattern: str) -> Callable[[str], int | None]:
    """The function that reads a text by `pattern` as microseconds since the epoch, None if it does not fit."""
    parts = parse_pattern(pattern)
    followers = [*(part.letter for part in parts[1:]), ""]
    written = (_regex(part, next not in ("", "X", "x", "Z")) for part, next in zip(parts, followers, strict=True))
    regex = re.compile("".join(written), re.ASCII | re.IGNORECASE)
    century = _CENTURY if any(part.text == "yy" for part in parts if part.letter) else 0

    def read(text: str) -> int | None:
        match = regex.fullmatch(text)
        if match is None:
            return None
        fields = match.groupdict()
        hour, month, year = fields.get("H"), fields.get("M"), fields.get("y")
        if "h" in fields:
            if not 1 <= int(fields["h"]) <= 12:
                return None
            hour = str(int(fields["h"]) % 12 + 12 * _HALVES.index(fields["a"].upper()))
        month = str(_MONTH_OF[month[:3].upper()]) if month and month.isalpha() else month
        year = str(century + int(year)) if century and year else year
        day, time = (year, month, fields.get("d")), (hour, *map(fields.get, "msS"))
        return _instant(day, time, (fields.get("X") or "").upper())

    return read


def truncated_in(zone: Zone, unit: str, micros: int) -> int:
    """The start of the `unit` by the clocks of a zone. Where they show it twice, it is the first time of a day that
    begins a week or longer, and of less the one that is as far from UTC as the timestamp, as in Spark."""
    ahead = zone.ahead(micros)
    start: int = truncated(unit, micros + ahead)
    if unit not in _STEPS:
        return zone.first_shown(start)
    return start - (ahead if zone.ahead(start - ahead) == ahead else zone.ahead_at(start))


@lru_cache(maxsize=1000)
def pattern_writer(pattern: str) -> Callable[[int, int], str]:
    """The function that writes what clocks show by `pattern`, and how far they are ahead of UTC, both in
    microseconds."""
    parts = parse_pattern(pattern, writes=True)

    def write(local: int, ahead: int) -> str:
        days, rest = divmod(local, DAY)
        year, month, day = civil(days)
        hour, minute, second = rest // HOUR, rest // MINUTE % 60, rest // SECOND % 60
        numbers = {"M": month, "d": day, "H": hour, "h": (hour + 11) % 12 + 1, "m": minute, "s": second}

        def written(part: PatternPart) -> str:
            match part.letter:
                case "":
                    return part.text
                case "y" if part.text == "yy":
                    return f"{abs(year) % 100:02d}"
                case "y":
                    return f"{'+' * (year > 9999)}{'-' * (year < 0)}{abs(year):04d}"
                case "M" if len(part.text) >= 3:
                    return _name(_MONTHS[month - 1], part)
                case "E":
                    return _name(_WEEKDAYS[(days + 3) % 7], part)
                case "D":
                    return str(days - _days_of(year, 1, 1) + 1).zfill(len(part.text))
                case "Q":
                    return _quarter((month - 1) // 3, part)
                case "a":
                    return _HALVES[hour // 12]
                case "S":
                    return f"{rest % SECOND:06d}".ljust(9, "0")[: len(part.text)]
                case "X" | "x" | "Z":
                    return _offset(ahead, part.text)
                case letter:
                    return str(numbers[letter]).zfill(len(part.text))

        return "".join(map(written, parts))

    return write


def _name(name: str, part: PatternPart) -> str:
    """A name, short for up to three letters of the pattern."""
    return name if len(part.text) > 3 else name[:3]


def _quarter(place: int, part: PatternPart) -> str:
    match len(part.text):
        case 4:
            return _QUARTERS[place]
        case 3:
            return f"Q{place + 1}"
        case width:
            return str(place + 1).zfill(width)


def _offset(ahead: int, letters: str) -> str:
    """``+02:00`` for ``XXX`` and ``xxx``, ``+0200`` for two letters and ``Z``, ``+02`` or ``+0530`` for one.

    Without seconds; if nothing is left, Z for ``X`` in any number.
    """
    hours, minutes = divmod(abs(ahead) // MINUTE, 60)
    if not hours and not minutes and letters[0] == "X":
        return "Z"
    sign = "-" if ahead < 0 and (hours or minutes) else "+"
    if letters in ("X", "x"):
        return f"{sign}{hours:02d}{f'{minutes:02d}' if minutes else ''}"
    return f"{sign}{hours:02d}{':' if letters in ('XXX', 'xxx') else ''}{minutes:02d}"


def _regex(part: PatternPart, adjacent: bool) -> str:
    """The regular expression of a part; `adjacent`: digits of another part come right after it."""
    match part.letter:
        case "":
            return re.escape(part.text)
        case "y":
            if part.text == "yy":
                return r"(?P<y>\d\d)"
            return r"(?P<y>\d{4})" if adjacent else r"(?P<y>\d{4}|\+\d{5,9}|-\d{4,9})"
        case "M" if len(part.text) >= 3:
            return rf"(?P<M>{'|'.join(_name(name, part) for name in _MONTHS)})"
        case "a":
            return rf"(?P<a>{'|'.join(_HALVES)})"
        case "S":
            return rf"(?P<S>\d{{1,{len(part.text)}}})"  # Spark reads up to as many digits as there are letters
        case "X" | "x" | "Z":
            return f"(?P<X>{_OFFSETS[part.letter if part.letter == 'Z' else part.text]})"
        case letter:
            return rf"(?P<{letter}>{_DIGITS[len(part.text)]})"


def _days(year: str | None, month: str | None, day: str | None) -> int | None:
    """The date with these parts; None if there is no such date."""
    try:
        return _days_of(int(year or 1970), int(month or 1), int(day or 1))
    except (ValueError, OverflowError):
        return None


def _instant(day: Sequence[str | None], time: Sequence[str | None], zone: str) -> int | None:
    """The timestamp of a year, month and day, and an hour, minute, second and fraction; None if it does not exist.

    A part that is None is the one of 1970-01-01 00:00:00 UTC.
    """
    days = _days(*day)
    hour, minute, second = (int(part or 0) for part in time[:3])
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((time[3] or "")[:6].ljust(6, "0"))
    local = days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction
    micros = _shifted(local, zone) if zone else local
    return micros if micros is not None and -(2**63) <= micros < 2**63 else None


def _shifted(local: int, zone: str) -> int | None:
    """The instant at which clocks of `zone` show `local`; None for an unknown zone."""
    try:
        return local - zone_named(zone).ahead_at(local)
    except ExpressionFailure:
        return None
