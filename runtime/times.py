"""Reads times as users give them (milliseconds since 1970, aware datetimes, ISO text in UTC unless it says otherwise),
and shows them.

The test driver, scenario files and keys of stores all read times this way. What ISO text is: `vsc.runtime.texts`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeGuard

from vsc.runtime.texts import timestamp_of

__all__ = ["LAST", "event_time", "from_iso", "microseconds", "time_text"]

LAST = 253_402_300_799_999
"""The last event time that a row may have, in ms: years end with 9999. So no window or grace leaves 64 bits."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = 2**53
"""The latest event time in ms; its negative is the earliest."""


def event_time(value: object) -> int:
    """An event time in ms; fractions of a millisecond are cut off.

    Raises ValueError for a value that is not a time, OverflowError for a time too far from 1970.
    """
    found = value if _is_int(value) else microseconds(value) // 1000
    if not -_LARGEST <= found <= _LARGEST:
        raise OverflowError("too far from 1970")
    return found


def microseconds(value: object) -> int:
    """A timestamp in microseconds since 1970. Raises ValueError if it is not one, or does not fit into 64 bits."""
    if _is_int(value) and -(2**63) <= value * 1000 < 2**63:
        return value * 1000
    if isinstance(value, str):
        return timestamp_of(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - _EPOCH) // _MICROSECOND
    raise ValueError("neither milliseconds, nor an aware datetime, nor ISO text")


def from_iso(text: str) -> datetime:
    """The aware datetime that ISO text stands for. Raises ValueError for other text."""
    return _EPOCH + timestamp_of(text) * _MICROSECOND


def time_text(ms: int) -> str:
    """A time in ms as text, in UTC; as a number if Python has no such year."""
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    except OverflowError:
        return f"{ms} ms"


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
