"""Input still to be read from a source, as Spark reports it in the progress of each epoch.

A connector's own metrics (a Kafka source's offsets behind the latest) are handed on as they are; where offsets are
numbers or lists of numbers, what lies between the end of the epoch and the latest is counted. Spark tells nothing of
files that it has not listed yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vsc.plan.nodes import Plan

__all__ = ["Lags", "source_lags"]

Lags = dict[str, dict[str, float]]
"""By source, what is outstanding by unit: numbers that are 0 where all is read."""


def source_lags(plan: Plan, sources: Sequence[Mapping[str, Any]]) -> Lags:
    """The lags of a plan's sources, from the ``sources`` of Spark's progress; the first is the control source."""
    names = [node.name for node in plan.sources]
    return {name: _lag(source) for name, source in zip(names, sources[1:], strict=False)}


def _lag(source: Mapping[str, Any]) -> dict[str, float]:
    found = {name: float(value) for name, value in source.get("metrics", {}).items() if _is_number(value)}
    end, latest = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
    if latest:
        found["offsets"] = float(sum(max(0, offset - end.get(part, 0)) for part, offset in latest.items()))
    return found


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _offsets(value: Any) -> dict[str, int]:
    """Offsets by their place in the offset's JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if isinstance(value, bool) or value is None:
        return {}
    if isinstance(value, int):
        return {"": value}
    if isinstance(value, dict):
        return {f"{name}.{part}": n for name, inner in value.items() for part, n in _offsets(inner).items()}
    return {}
