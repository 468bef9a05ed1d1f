"""Durations as ISO 8601 writes them, with what to write here."""

from __future__ import annotations

import re

__all__ = ["iso_duration"]

_ISO = re.compile(r"P(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?", re.IGNORECASE)


def iso_duration(text: str) -> str | None:
    """A duration in the form of ISO 8601 (``PT5M``) as the language writes it; None if it is none."""
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    parts = ((weeks * 7 + days, "day"), (hours, "hour"), (minutes, "minute"), (seconds, "second"))
    return " ".join(f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number) or "0 ms"
