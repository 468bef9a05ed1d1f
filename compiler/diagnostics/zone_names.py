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
    near = nearest(name, known) or _city(name, known)
    action = f"write '{near}'" if near is not None else "write an IANA name, such as 'Europe/Berlin' or 'UTC'"
    meant = misspelt(name, known)
    fix = None if meant is None else Fix(span, f"'{meant}'")
    return Finding(code, span, f"there is no time zone '{name}'", (), action, fix)


def _city(name: str, known: set[str]) -> str | None:
    """The zone of a city that was named without its region."""
    wanted = name.replace(" ", "_").lower()
    return min((zone for zone in known if zone.rpartition("/")[2].lower() == wanted), default=None)
