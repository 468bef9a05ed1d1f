"""What differs between what is expected and what is seen, as lines of text.

Guarantees: of a record that was partly expected, only that part is shown. An expected record that is not met is shown
with its line in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from vsc.scenario.model import Expected
from vsc.scenario.player import fields_of, is_met
from vsc.scenario.values import Partial, asked, is_expected
from vsc.scenario.written import fields_written, written
from vsc.testing import Record, VersionedRecord

__all__ = ["BOLD", "GREEN", "RED", "answer_difference", "in_color", "painted", "record_difference"]

RED, GREEN, BOLD = "\033[31m", "\033[32m", "\033[1m"
_PLAIN = "\033[0m"


def in_color(value: str, code: str, color: bool) -> str:
    """The text in a colour of the terminal, if there are any."""
    return f"{code}{value}{_PLAIN}" if color else value


def painted(lines: Iterable[str], color: bool) -> Iterator[str]:
    """What is expected and not seen in red, what is seen and not expected in green."""
    codes = {"-": RED, "+": GREEN}
    for line in lines:
        mark = line.lstrip()[:1]
        yield in_color(line, codes[mark], color) if line.startswith(f"  {mark} ") and mark in codes else line


def record_difference(expected: Sequence[Expected], seen: Sequence[Record]) -> Iterator[str]:
    """The records of both sides in one order; for a matching pair, the columns that differ."""
    places = _places(expected, seen)
    for kind, a, b, c, d in SequenceMatcher(None, range(len(expected)), places, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (f"  = {'':<8} {fields_written(one.fields)}" for one in expected[a:b])
            continue
        for one, other in _paired(expected[a:b], seen[c:d]):
            if one is not None:
                yield _expected(one)
            if other is not None:
                yield from _seen(fields_of(other) if one is None else asked(one.fields, fields_of(other)))
            if one is not None and other is not None:
                yield from _columns(one.fields, fields_of(other))


def answer_difference(expected: Expected | None, seen: VersionedRecord | None) -> Iterator[str]:
    """What a store was expected to answer, and what it answers."""
    yield f"  - {'expected':<8} null" if expected is None else _expected(expected)
    if seen is None:
        yield f"  + {'seen':<8} null"
    else:
        yield from _seen(fields_of(seen) if expected is None else asked(expected.fields, fields_of(seen)))


def _places(expected: Sequence[Expected], seen: Sequence[Record]) -> list[int]:
    """For each seen record the place of an expected one that it meets, if possible its own, each used once; or -1."""
    found = [n if n < len(expected) and is_met(expected[n], record) else -1 for n, record in enumerate(seen)]
    free = [n for n in range(len(expected)) if n not in set(found)]
    for number, record in enumerate(seen):
        if found[number] < 0 and (place := next((n for n in free if is_met(expected[n], record)), None)) is not None:
            found[number] = place
            free.remove(place)
    return found


def _paired(expected: Sequence[Expected], seen: Sequence[Record]) -> Iterator[tuple[Expected | None, Record | None]]:
    """Each expected record with the next seen record of its key. Records without a partner keep their places."""
    at = 0
    for one in expected:
        key = one.fields.get("key", Partial())
        found = next((i for i in range(at, len(seen)) if is_expected(key, seen[i].key)), None)
        if found is None:
            yield one, None
            continue
        yield from ((None, other) for other in seen[at:found])
        yield one, seen[found]
        at = found + 1
    yield from ((None, other) for other in seen[at:])


def _columns(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    value, found = expected.get("value"), seen["value"]
    if value is not None and found is not None:
        yield from _named({name: (one, found[name]) for name, one in value.items()})
    if "timestamp" in expected:
        yield from _named({"timestamp": (expected["timestamp"], seen["timestamp"])})


def _named(both: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    for name, (one, other) in both.items():
        if not is_expected(one, other):
            yield f"      {name}: {written(one)} expected, {written(asked(one, other))} seen"


def _expected(one: Expected) -> str:
    return f"  - {'expected':<8} {fields_written(one.fields)}  # line {one.position.line}"


def _seen(fields: Mapping[str, Any]) -> Iterator[str]:
    yield f"  + {'seen':<8} {fields_written(fields)}"
