"""The zone of times that are written as text without an offset: what a source says, else UTC, whatever the session has.

Guarantees: a text with an offset means what it says, in any zone. Where a zone's clocks are put forward, a time that is
left out is taken to be as much later; where they are put back, a time that comes twice is the earlier one: as in Spark.
"""

from __future__ import annotations

from datetime import tzinfo

from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.texts import zone_of

__all__ = ["OPTION", "check_zone", "declared_zone"]

OPTION = "timeZone"
"""Spark's option for the zone."""

_TEXT = ("json", "csv")


def _zone_of(options: Options) -> str | None:
    """The zone that a source names; None: UTC."""
    zone = options.get("time_zone")
    return None if zone is None else str(zone)


def check_zone(options: Options) -> None:
    """SourceError for what is wrong with a zone; the compiler has seen what holds no variable."""
    form, zone = options.text("format"), _zone_of(options)
    if zone is not None and form not in _TEXT:
        raise SourceError(f"{options.place}: time_zone is for times in text (json, csv), not for {form}", "remove it")
    try:
        zone_of(zone or "UTC")
    except ValueError:
        help = "write an IANA name, such as 'Europe/Berlin'; a machine without time zones needs the package tzdata"
        raise SourceError(f"{options.place}: there is no time zone {zone!r}", help) from None
    if OPTION.lower() in {name.lower() for name in options.spark}:
        raise SourceError(
            f"{options.place}: the option {OPTION!r} is not passed on to Spark", "write time_zone = '...'"
        )


def declared_zone(options: Options) -> tzinfo:
    """The zone of a source that has been checked."""
    return zone_of(_zone_of(options) or "UTC")
