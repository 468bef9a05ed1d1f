"""Finds the known name nearest to an unknown one: what the user most likely, or certainly, meant to write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from vsc.compiler.diagnostics.model import Fix
from vsc.compiler.diagnostics.wording import named
from vsc.compiler.source import Span

__all__ = ["distance", "likely", "misspelt", "nearest", "renamed"]

_LONGEST = 100  # letters; nobody mistypes a longer name, and comparing takes time quadratic in the length


def likely(name: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str | None:
    """The name in `known` that `name` most likely misspells, else what it is called here as `elsewhere` says."""
    other = elsewhere.get(name.lower())
    return nearest(name, known) or (other if other in known else None)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name in `known` that `name` most likely misspells; None if no name is near enough.

    A misspelling is a missing, extra, wrong or swapped letter, at most one for every three letters of the longer name
    (but always one), or a difference in case. Of equally near names, the alphabetically first is taken.
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


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The name in `known` that `name` certainly misspells: by one letter, or by case; None if that is not certain.

    It is not if another known name is as near, if the names differ in a digit, or if so short a name has another
    letter: ``q1`` and ``q2``, or ``ip`` and ``id``, are different things.
    """
    if len(name) > _LONGEST:
        return None
    near = [(distance(name.lower(), one.lower()), one) for one in known if abs(len(one) - len(name)) < 2]
    least = min(near, default=(2, ""))[0]
    best = [one for steps, one in near if steps == least <= 1]
    if len(best) != 1:
        return None
    [found] = best
    same_digits = [*filter(str.isdigit, name)] == [*filter(str.isdigit, found)]
    same_letters = sorted(name.lower()) == sorted(found.lower())
    return found if same_digits and (same_letters or len(name) > 3 or len(name) != len(found)) else None


def renamed(span: Span, name: str, known: Iterable[str]) -> Fix | None:
    """The fix for `name`, which stands at `span`, if it certainly misspells a name in `known`."""
    found = misspelt(name, known)
    return None if found is None else Fix(span, named(found))


def distance(a: str, b: str) -> int:
    """How many letters must be inserted, deleted, changed or swapped with the next one to turn `a` into `b`."""
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
