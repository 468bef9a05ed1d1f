"""Names of time zones, as Spark reads them: a distance from UTC, such as ``+02:00``, or the name of a region.

Regions have their IANA names, such as ``Europe/Berlin``. Other abbreviations (``PST``, ``IST``) are nobody's: Spark
takes some, each for one of the zones that are called so.
"""

from __future__ import annotations

import re

__all__ = ["fixed_offset", "is_region"]

_ONE_DIGIT_OF_HOURS = re.compile(r"([+-])(\d):", re.ASCII)
_ONE_DIGIT_OF_MINUTES = re.compile(r"([+-]\d\d:)(\d)\Z", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?|\d\d(?::\d\d){1,2}|\d{4}|\d{6})", re.ASCII)
_NAMES = {"Z": 0, "UTC": 0, "GMT": 0, "UT": 0, "EST": -5 * 3600, "MST": -7 * 3600, "HST": -10 * 3600}
"""Names of one distance: to Java, the last three are that, whatever the time zone database says of them."""
_MOST = 18 * 3600
_OF_THE_MACHINE = ("localtime", "posixrules", "Factory")


def fixed_offset(zone: str) -> int | None:
    """How many seconds the clocks of `zone` are ahead of UTC, always; None if it is not such a zone."""
    if zone in _NAMES:
        return _NAMES[zone]
    match = _OFFSET.fullmatch(_ONE_DIGIT_OF_MINUTES.sub(r"\g<1>0\2", _ONE_DIGIT_OF_HOURS.sub(r"\g<1>0\2:", zone)))
    if match is None:
        return None
    digits = match[2].replace(":", "")
    hours, minutes, seconds = (int(two or 0) for two in (digits[:2], digits[2:4], digits[4:]))
    ahead = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or ahead > _MOST:
        return None
    return ahead if match[1] == "+" else -ahead


def is_region(zone: str) -> bool:
    """Whether `zone` may be a region's name: not a name that means this machine's zone, or one with leap seconds."""
    return zone not in _OF_THE_MACHINE and not zone.startswith(("posix/", "right/"))
