"""Time zones by their IANA names, such as ``Europe/Berlin``.

The names are those of the machine's time zone database. On a machine without one, every name passes here; a run then
asks Java, which has its own database, or Python's package `tzdata`.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.plan.zones import is_region

__all__ = ["zone_problem"]


def zone_problem(name: str) -> tuple[str, str, str | None] | None:
    """What is wrong with `name` as a time zone, what to write, and the name that is certainly meant, if there is one;
    None if it is a time zone, or this machine cannot tell."""
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
    return f"there is no time zone '{name}'", action, misspelt(name, known)


def _city(name: str, known: set[str]) -> str | None:
    """The zone of a city that was named without its region."""
    wanted = name.replace(" ", "_").lower()
    return min((zone for zone in known if zone.rpartition("/")[2].lower() == wanted), default=None)
