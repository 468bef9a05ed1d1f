"""Dates and timestamps as numbers: their parts, their text, and how text is read, in UTC and the ISO calendar.

Dates are days, timestamps microseconds since 1970-01-01. Unlike Python's own classes this works for every year that
fits Spark's types. Guarantees: what Spark 4.x reads and writes with a session time zone of UTC. Not read, unlike in
Spark: a time without a date, which would mean the day of the query.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

__all__ = [
    "DAY",
    "EDGES",
    "civil",
    "date_text",
    "days_of",
    "parse_date",
    "parse_timestamp",
    "parse_zone",
    "timestamp_text",
    "truncate",
]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EDGES = "".join(map(chr, (*range(0x21), 0x7F)))
"""What Spark strips from both ends of a text that it reads: white space and control characters."""

_DATE = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_DATE_ONLY = re.compile(_DATE + r"(?P<rest>[ T].*)?\Z", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    _DATE + r"(?P<time>[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(?P<zone>.*))?)?)?\Z", re.DOTALL | re.ASCII
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = {"microsecond": 1, "millisecond": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


def days_of(year: int, month: int, day: int) -> int:
    """The days from 1970-01-01 to a date of the proleptic Gregorian calendar. Raises ValueError for an invalid date."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS_IN_MONTH[month - 1] + (leap and month == 2):
        raise ValueError("no such date")
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a date."""
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    return year + era * 400 + (month >= 10), month + 3 if month < 10 else month - 9, day


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


def truncate(unit: str, micros: int) -> int:
    """The start of the `unit` (as in `vsc.plan.functions.TRUNCATION_UNITS`) that the timestamp lies in."""
    step = _STEPS.get(unit)
    if step is not None:
        return micros - micros % step
    days = micros // DAY
    if unit == "week":
        return (days - (days + 3) % 7) * DAY
    year, month, _ = civil(days)
    first = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return days_of(year, first, 1) * DAY


def parse_date(text: str) -> int | None:
    """The date that `text` means to Spark's cast: ``y-m-d``, ``y-m`` or ``y``; a time after it is ignored."""
    match = _DATE_ONLY.match(text.strip(EDGES))
    if match is None or (match["rest"] is not None and match[3] is None):
        return None
    return _days(match)


def parse_timestamp(text: str) -> int | None:
    """The timestamp that `text` means to Spark's cast: a date, then a time with an optional zone."""
    match = _TIMESTAMP.match(text.strip(EDGES))
    if match is None or (match["time"] is not None and match[3] is None):
        return None
    days = _days(match)
    hour, minute, second = (int(match[i] or 0) for i in (5, 6, 7))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match[8] or "")[:6].ljust(6, "0"))
    micros = days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction
    if match["zone"]:
        return _shifted(micros, match["zone"].strip(EDGES))
    return micros if -(2**63) <= micros < 2**63 else None


def _days(match: re.Match[str]) -> int | None:
    try:
        days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None
    return days if -(2**31) <= days < 2**31 else None


def _shifted(local: int, zone: str) -> int | None:
    """The instant at which clocks of `zone` show `local`; None for an unknown zone."""
    offset = parse_zone(zone)
    if offset is not None:
        return local - offset
    try:
        info = ZoneInfo(zone)
        there = (_EPOCH + timedelta(microseconds=local)).replace(tzinfo=info)
        return (there.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OSError, OverflowError, KeyError):
        return None


def parse_zone(zone: str) -> int | None:
    """The offset of ``Z`` or ``+hh:mm`` from UTC in microseconds; None if it is neither."""
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.match(zone)
    if match is None:
        return None
    hours, minutes, seconds = (int(match[i] or 0) for i in (2, 3, 4))
    micros = hours * HOUR + minutes * MINUTE + seconds * SECOND
    if minutes > 59 or seconds > 59 or micros > 18 * HOUR:
        return None
    return -micros if match[1] == "-" else micros
