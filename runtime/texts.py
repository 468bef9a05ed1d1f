"""What a text means as a date, a timestamp or a decimal: one rule for all readers of data, scenarios and the driver.

A date is ``2026-01-05``. A timestamp is a date, or a date and a time (``2026-01-05T08:15``, ``2026-01-05 08:15:00.5``)
with or without an offset (``Z``, ``+02:00``, `` UTC``). Years go from 1 to 9999. A decimal has all digits of its text.
Nothing else is one: no bare time, no run of digits, no comma. Digits beyond the microsecond are cut off.

Whole columns: `vsc.runtime.text_columns`. Expressions have rules of their own (`vsc.runtime.expressions.calendar`):
those of Spark's casts.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from zoneinfo import ZoneInfo

from vsc.plan.types import DecimalType

__all__ = ["date_of", "decimal_of", "exact_decimal", "micros_of", "seconds_of", "timestamp_of", "zone_of"]

_EDGES = "".join(map(chr, (*range(0x21), 0x7F)))
"""What may stand at both ends of a text: white space and control characters."""
_DATE = r"\d{4}-\d\d-\d\d"
_OFFSET = r"Z|[+-]\d\d(?::?\d\d)?| ?[A-Za-z][A-Za-z0-9_+/-]*| [+-]\d\d(?::?\d\d)?"
_TIMESTAMP = re.compile(rf"({_DATE})(?:[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?({_OFFSET})?)?", re.ASCII)
_MIDNIGHT = re.compile(rf"({_DATE})(?:[ T]00:00(?::00(?:\.0*)?)?Z?)?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d++\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = 60_000_000
_SECOND = 1_000_000
_MOST_OFFSET = 18 * 60 * _MINUTE
_FIRST = (datetime.min - _EPOCH) // _MICROSECOND
_LAST = (datetime.max - _EPOCH) // _MICROSECOND
_EXACT = Context(prec=100)


def date_of(text: str) -> int:
    """The days since 1970 of a date; a midnight behind it is left out. Raises ValueError."""
    match = _MIDNIGHT.fullmatch(text.strip(_EDGES))
    if match is None:
        raise ValueError(text)
    return date.fromisoformat(match[1]).toordinal() - _EPOCH_DAY


def timestamp_of(text: str, zone: tzinfo = UTC) -> int:
    """The microseconds since 1970 of a timestamp; without an offset it is one of `zone`. Raises ValueError."""
    match = _TIMESTAMP.fullmatch(text.strip(_EDGES))
    if match is None:
        raise ValueError(text)
    day, clock, fraction, offset = match.groups()
    local = datetime.fromisoformat(day if clock is None else f"{day}T{clock}")
    micros = (local - _EPOCH) // _MICROSECOND + int((fraction or "")[:6].ljust(6, "0"))
    return micros_of(micros - _ahead(local, offset, zone))


def seconds_of(count: int) -> int:
    """The microseconds since 1970 of a number of seconds. Raises ValueError outside of the years 1 to 9999."""
    return micros_of(count * _SECOND)


def decimal_of(text: str, type: DecimalType) -> Decimal:
    """The number of a text, with the scale of `type`. Raises ValueError if it is none, or does not fit exactly."""
    text = text.strip(_EDGES)
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    return exact_decimal(Decimal(text), type)


def exact_decimal(number: Decimal, type: DecimalType) -> Decimal:
    """The number with the scale of `type`. Raises ValueError if a digit would be lost."""
    try:
        exact = number.quantize(Decimal(1).scaleb(-type.scale), context=_EXACT)
    except InvalidOperation:
        raise ValueError(str(number)) from None
    if exact != number or exact.copy_abs() >= Decimal(10) ** (type.precision - type.scale):
        raise ValueError(str(number))
    return exact if exact else abs(exact)


@lru_cache(maxsize=1000)
def zone_of(name: str) -> tzinfo:
    """The time zone of that name. Raises ValueError if there is none."""
    if name in ("UTC", "Z", "GMT", "UT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, KeyError, ValueError):
        raise ValueError(name) from None


def _ahead(local: datetime, offset: str | None, zone: tzinfo) -> int:
    """How many microseconds the clocks that show `local` are ahead of UTC."""
    written = (offset or "").strip()
    if not written[:1] or written[0] not in "+-":
        ahead = local.replace(tzinfo=zone_of(written) if written else zone).utcoffset()
        return 0 if ahead is None else ahead // _MICROSECOND
    digits = written[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    ahead_by = (hours * 60 + minutes) * _MINUTE
    if minutes > 59 or ahead_by > _MOST_OFFSET:
        raise ValueError(written)
    return ahead_by if written[0] == "+" else -ahead_by


def micros_of(micros: int) -> int:
    """The number of microseconds, if it lies in the years 1 to 9999. Else it raises ValueError."""
    if not _FIRST <= micros <= _LAST:
        raise ValueError(str(micros))
    return micros
