"""Time zones by their IANA names, such as ``Europe/Berlin``.

The names are those of the machine's time zone database. On a machine without one, every name passes here; a run then
asks Java, which has its own database, or Python's package `tzdata`.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.compiler.source import Span
from vsc.plan.zones import is_region

__all__ = ["zone_finding"]

_LONGEST_ABBREVIATION = 4


def zone_finding(code: str, name: str, span: Span) -> Finding | None:
    """What is wrong with the text at `span` as a time zone; None if it is one, or this machine cannot tell."""
    from zoneinfo import ZoneInfo, available_timezones  # not loaded by a `vsc check` of a topology without zones

    try:
        ZoneInfo(name)
        if is_region(name):
            return None
    except (KeyError, ValueError, OSError):
        pass
    known = available_timezones()
    if not known:
        return None
    near = _nearest(name, known)
    action = f"write '{near}'" if near is not None else "write an IANA name, such as 'Europe/Berlin' or 'UTC'"
    meant = misspelt(name, known) if near is not None else None
    fix = None if meant is None else Fix(span, f"'{meant}'")
    return Finding(code, span, f"there is no time zone '{name}'", (), action, fix)


def _nearest(name: str, known: set[str]) -> str | None:
    """The zone that `name` most likely means. Nothing is near to an abbreviation, or to a distance from UTC.

    ``PST`` is not ``EST``, and ``GMT+1`` not ``Etc/GMT+1``, which is west of Greenwich.
    """
    if len(name) <= _LONGEST_ABBREVIATION or not name.replace("/", "").replace("_", "").replace(" ", "").isalpha():
        return next((zone for zone in known if zone.lower() == name.lower()), None)
    return nearest(name, known) or _city(name, known)


def _city(name: str, known: set[str]) -> str | None:
    """The zone of a city that was named without its region."""
    wanted = name.replace(" ", "_").lower()
    return min((zone for zone in known if zone.rpartition("/")[2].lower() == wanted), default=None)
