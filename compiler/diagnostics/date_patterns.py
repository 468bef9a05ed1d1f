"""Patterns of dates in which minutes and months have changed places: ``dd/mm/yyyy``, ``HH:MM``."""

from __future__ import annotations

import re

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import string
from vsc.compiler.source import Span

__all__ = ["pattern_finding"]

_QUOTED = re.compile(r"'[^']*'")
_MINUTES = re.compile(r"(?<![Hhm])(?<![Hh][^A-Za-z])m+")
"""Minutes that do not follow hours."""
_MONTHS = re.compile(r"(?<=[Hh])MM|(?<=[Hh][^A-Za-z])MM")
"""Months that follow hours."""


def pattern_finding(pattern: str, span: Span) -> Finding | None:
    """VSC335 if minutes in the pattern at `span` are probably a mistake where they stand, or months are."""
    letters = {*filter(str.isalpha, _QUOTED.sub("", pattern))}
    dated = {"y", "d"} <= letters or (bool({"y", "d"} & letters) and not {"H", "h"} & letters)
    if dated and "M" not in letters and _MINUTES.search(pattern):
        meant = _MINUTES.sub(lambda found: found[0].upper(), pattern)
        message = "`m` means minutes, and the pattern has no month"
        return Finding("VSC335", span, message, (), f"write `{string(meant)}`")
    if "m" not in letters and _MONTHS.search(pattern):
        meant = _MONTHS.sub("mm", pattern)
        message = "`M` means months, and the pattern has no minute"
        return Finding("VSC335", span, message, (), f"write `{string(meant)}`")
    return None
