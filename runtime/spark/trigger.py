"""When a query reads: the words and durations of ``--trigger`` and ``--max-idle``."""

from __future__ import annotations

import re
from typing import Any

from vsc.runtime.errors import ConfigurationError

__all__ = ["ends", "idle_ms", "spark_trigger"]

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,10})\s*(ms|millisecond|s|second|m|minute|h|hour|d|day)s?\Z")


def spark_trigger(text: str) -> dict[str, Any]:
    """The arguments for Spark's ``trigger``. ConfigurationError if the text is not a trigger."""
    if text == "available-now":
        return {"availableNow": True}
    if text == "once":
        return {"once": True}
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(
            f"{text!r} is not a trigger", "give available-now, once, or a duration such as '10 seconds' or '500 ms'"
        )
    return {"processingTime": f"{found} milliseconds"}


def ends(trigger: str) -> bool:
    """Whether a query with this trigger stops when it has read what there is."""
    return trigger in ("available-now", "once")


def idle_ms(text: str) -> int:
    """`max_idle` in ms. ConfigurationError if the text is not a duration."""
    found = _milliseconds(text)
    if found is None:
        raise ConfigurationError(
            f"--max-idle: {text!r} is not a valid duration", "give one such as '10 seconds' or '500 ms'"
        )
    return found


def _milliseconds(text: str) -> int | None:
    """A duration in ms; None if the text is not one. Ten digits at most: Spark counts in 64 bits."""
    match = _DURATION.match(text.strip())
    if match is None:
        return None
    unit = match.group(2)
    return int(match.group(1)) * (_UNITS["ms"] if unit in ("ms", "millisecond") else _UNITS[unit[0]])
