"""The nearest known name to one that is not known: what a person most likely meant to write."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["distance", "nearest"]

_LONGEST = 100  # letters; nobody mistypes a longer name, and comparing takes the square of its length


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that `name` is most likely a slip of; None if none is near.

    A slip is a missing, surplus, wrong or swapped letter, one in each three letters of the longer name, or a
    difference in case only. Of equally near names the first in the alphabet is taken.
    """
    if len(name) > _LONGEST:
        return None
    best: tuple[int, str] | None = None
    for candidate in known:
        if candidate.lower() == name.lower():
            steps = 0
        else:
            limit = max(1, max(len(name), len(candidate)) // 3)
            if abs(len(name) - len(candidate)) > limit:
                continue
            steps = distance(name.lower(), candidate.lower())
            if steps > limit or steps >= max(len(name), len(candidate)):
                continue
        if best is None or (steps, candidate) < best:
            best = (steps, candidate)
    return None if best is None else best[1]


def distance(a: str, b: str) -> int:
    """How many letters have to be put in, taken out, changed or swapped with the next one to get from `a` to `b`."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        row = [i]
        for j, y in enumerate(b, start=1):
            steps = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                steps = min(steps, before[j - 2] + 1)
            row.append(steps)
        before, last = last, row
    return last[-1]
