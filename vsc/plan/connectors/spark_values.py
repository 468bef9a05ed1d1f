"""Texts of Spark's options, as Spark reads them: flags, numbers, times, sizes, ages. What is wrong with one, and what
to write instead; None if nothing is.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

from vsc.plan.connectors.facts import Wrong

__all__ = ["wrong_age", "wrong_count", "wrong_flag", "wrong_number", "wrong_size", "wrong_time"]

_INT, _LONG = 2**31 - 1, 2**63 - 1
"""The largest whole numbers that Spark takes."""
_OF_INT = (
    "maxfilespertrigger", "numpartitions", "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch",
)  # fmt: skip
"""Numbers of things that have to be ints, in lower case."""
_TIME = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?)?)?"
    r"(?:\s*[A-Za-z+-].*)?)?)?)?\s*"
)
_SIZE = re.compile(r"\s*(\d+) *(?:b|[kmgtp]b?)?\s*", re.IGNORECASE)
_AGE = re.compile(r"\s*-?\d+ *(?:us|ms|s|min|m|h|d)?\s*", re.IGNORECASE)


def wrong_flag(name: str, value: str) -> Wrong:
    """What is wrong with the value of an option of Spark's that is true or false."""
    if value.lower() in ("true", "false"):
        return None
    return f"'{name}' is true or false, not '{value}'", "write 'true' or 'false'"


def wrong_count(name: str, value: str, example: int) -> Wrong:
    """What is wrong with the value of an option of Spark's that is a number of things."""
    most = _INT if name.lower() in _OF_INT else _LONG
    number = _number(value)
    if 0 < number <= most:
        return None
    what = f"of at most {most:,}" if number > 0 else "of at least 1"
    return f"'{name}' is a whole number {what}, not '{value}'", f"write one, such as '{example}'"


def wrong_number(name: str, value: str, what: str, example: int) -> Wrong:
    """What is wrong with a whole number of 0 or more: `what` it is, with an `example`."""
    if 0 <= _number(value) <= _LONG:
        return None
    return f"'{name}' is {what}, not '{value}'", f"write one, such as '{example}'"


def wrong_time(name: str, value: str) -> Wrong:
    """What is wrong with a date, or with a date and a time of the day."""
    match = _TIME.fullmatch(value)
    if match is not None:
        year, month, day, hour, minute, second = (None if part is None else int(part) for part in match.groups())
        with suppress(ValueError):
            datetime(year or 0, _or(month, 1), _or(day, 1), hour or 0, minute or 0, second or 0)
            return None
    return f"'{name}' is a date or a time, not '{value}'", "write one, such as '2026-05-04T10:00:00Z'"


def wrong_size(name: str, value: str) -> Wrong:
    """What is wrong with a number of bytes, at least one, which may have a unit."""
    match = _SIZE.fullmatch(value)
    if match is not None and _number(match[1]) > 0:
        return None
    return f"'{name}' is a number of bytes, not '{value}'", "write one, such as '134217728' or '128m'"


def wrong_age(name: str, value: str) -> Wrong:
    """What is wrong with a span of time, with its unit."""
    if _AGE.fullmatch(value):
        return None
    return f"'{name}' is a span of time, not '{value}'", "write one, such as '7d' (us, ms, s, m, h, d)"


def _number(text: str) -> int:
    """The whole number that a text of digits is, one that is too large for Spark if it has too many; else -1."""
    digits = text.lstrip("0")[:20]
    return -1 if not text.isdecimal() else int(digits or "0")


def _or(part: int | None, other: int) -> int:
    return other if part is None else part
