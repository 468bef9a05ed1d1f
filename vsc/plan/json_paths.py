"""Paths into a text in JSON, as ``get_json_object`` takes them: ``$.orders[0].id``, ``$['a name']``."""

from __future__ import annotations

import re

__all__ = ["parse_json_path"]

_STEP = re.compile(r"\.([^.\[*]+)|\['([^'?]+)'\]|\[([0-9]+)\]")


def parse_json_path(path: str) -> tuple[str | int, ...]:
    """The names of members and the places in arrays, from 0, that lead to the value.

    Raises ValueError for what is not such a path; there are no wildcards.
    """
    if not path.startswith("$"):
        raise ValueError("a path begins with `$`")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ValueError(f"`{path[at:]}` is not a step of a path")
        member, quoted, place = found.groups()
        steps.append(int(place) if place else member or quoted)
        at = found.end()
    return tuple(steps)
