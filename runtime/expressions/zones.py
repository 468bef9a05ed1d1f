"""What clocks show in a time zone, and when: for every timestamp that fits Spark's type, one by one and in columns.

All times are microseconds: timestamps since 1970-01-01 UTC, local times since 1970-01-01 of the same clock. Guarantees:
Java's rules, as Spark follows them. A local time that clocks skip is as much later as they are put forward; one that
they show twice is the earlier one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from vsc.plan.zones import fixed_offset, is_region
from vsc.runtime.expressions.failure import fail, short

__all__ = ["Micros", "Zone", "zone_named"]

Micros = npt.NDArray[np.int64]

_HOUR = 3_600_000_000
_ERA = 146_097 * 24 * _HOUR
"""400 years, after which calendar and weekdays repeat themselves, and with them the rules of zones."""
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime(2, 1, 1) - _EPOCH) // _MICROSECOND
_LAST = (datetime(9999, 1, 1) - _EPOCH) // _MICROSECOND - 1


class Zone:
    """A time zone."""

    __slots__ = ("_info",)

    def __init__(self, info: tzinfo) -> None:
        self._info = info

    def ahead(self, micros: int) -> int:
        """By how much clocks are ahead of UTC then."""
        there = _in_python(micros).replace(tzinfo=UTC).astimezone(self._info)
        return (there.utcoffset() or timedelta()) // _MICROSECOND

    def ahead_at(self, local: int) -> int:
        """What to subtract from a local time for its timestamp."""
        return (_in_python(local).replace(tzinfo=self._info).utcoffset() or timedelta()) // _MICROSECOND

    def first_shown(self, local: int) -> int:
        """The timestamp at which clocks first show this local time or, if they skip it, a later one."""
        before = self.ahead_at(local)
        after = self.ahead(local - before)
        if before == after:
            return local - before
        begins = range(local - after, local - before + 1)  # the change is in it, and no other one
        return begins[bisect_left(begins, True, key=lambda micros: self.ahead(micros) == after)]

    def all_ahead(self, micros: Micros) -> Micros:
        """`ahead` of each."""
        return _by_hour(self.ahead, micros)

    def all_ahead_at(self, local: Micros) -> Micros:
        """`ahead_at` of each."""
        return _by_hour(self.ahead_at, local)


@lru_cache(maxsize=1000)
def zone_named(name: str) -> Zone:
    """The zone of that name. Fails if there is none."""
    ahead = fixed_offset(name)
    if ahead is not None:
        return Zone(timezone(timedelta(seconds=ahead)))
    try:
        if is_region(name):
            return Zone(ZoneInfo(name))
    except (KeyError, ValueError, OSError):
        pass
    fail("INVALID_TIMEZONE", f"there is no time zone '{short(name)}'")


def _in_python(micros: int) -> datetime:
    """The time, moved by as many times 400 years as Python needs."""
    if micros < _FIRST:
        micros = _FIRST + (micros - _FIRST) % _ERA
    elif micros > _LAST:
        micros = _LAST - (_LAST - micros) % _ERA
    return _EPOCH + timedelta(microseconds=micros)


def _by_hour(ahead: Callable[[int], int], times: Micros) -> Micros:
    """`ahead` of each time, asked for each hour only: what it says changes at most once within one."""
    hours, place = np.unique(times // _HOUR, return_inverse=True)
    first = np.array([ahead(hour * _HOUR) for hour in hours.tolist()], dtype=np.int64)
    last = np.array([ahead(hour * _HOUR + _HOUR - 1) for hour in hours.tolist()], dtype=np.int64)
    found = first[place]
    for i in np.flatnonzero(found != last[place]).tolist():
        found[i] = ahead(int(times[i]))
    return found
