"""How messages and listings put values into words."""

from __future__ import annotations

import re
from itertools import pairwise

from vsc.plan import Explode, ExplodeChanges, StreamStreamJoin, Window, WithinAggregate

__all__ = [
    "MONDAY", "WEEK", "article", "bytes_text", "counted", "cut", "duration", "exploded", "rounded_duration",
    "window", "within",
]  # fmt: skip

WEEK = 7 * 86_400_000
MONDAY = 4 * 86_400_000
"""The first Monday after 1970-01-01: weeks begin there. In ms, like a week."""
_LONG = re.compile(r"(?<!\S)(\S{80})\S{120,}?(['\"`)\]},:;]*)(?!\S)")
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))


def article(type: object) -> str:
    """A type with its article: ``a bigint``, ``an int``."""
    text = str(type)
    return f"{'an' if text[0] in 'aeio' else 'a'} {text}"


def bytes_text(n: int) -> str:
    """``34.9 KiB``, ``64 MiB``."""
    size, units = float(n), ["GiB", "MiB", "KiB", "B"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop()
    return f"{f'{size:.1f}'.removesuffix('.0')} {units[-1]}"


def counted(n: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``, ``2 batches``, ``2 entries``."""
    if n != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else noun + ("es" if noun.endswith("tch") else "s")
    return f"{n:,} {noun}"


def cut(message: str) -> str:
    """A message in which names and values of more than 200 characters are cut, but for what closes them."""
    return _LONG.sub(r"\1...\2", message)


def duration(milliseconds: int) -> str:
    """A duration as the language writes it: ``1 hour 30 minutes``, ``500 ms``."""
    rest, parts = milliseconds, []
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    if rest or not parts:
        parts.append(f"{rest} ms")
    return " ".join(parts)


def rounded_duration(milliseconds: int) -> str:
    """A duration as `duration` writes it, rounded up to two units at most."""
    for (_, length), (_, smaller) in pairwise((*_UNITS, ("ms", 1))):
        if milliseconds >= length:
            return duration(-(-milliseconds // smaller) * smaller)
    return duration(milliseconds)


def window(found: Window) -> str:
    """A window as the language writes it: ``tumbling (size = 1 hour, grace = 10 minutes)``."""
    measure = {"sliding": "difference", "session": "gap"}.get(found.kind, "size")
    options = [f"{measure} = {_size(found)}"]
    if found.kind == "hopping":
        options.append(f"advance = {duration(found.advance)}")
    if found.offset and not _is_weekly(found):
        options.append(f"offset = {duration(found.offset)}")
    if found.zone:
        options.append(f"zone = '{found.zone}'")
    if found.grace:
        options.append(f"grace = {duration(found.grace)}")
    return f"{found.kind} ({', '.join(options)})"


def _size(found: Window) -> str:
    count, unit = (found.months, "month") if found.months else (found.size // WEEK, "week")
    if found.months or _is_weekly(found):
        return f"{count} {unit}{'s' if count > 1 else ''}"
    return duration(found.size)


def _is_weekly(found: Window) -> bool:
    """Whether its windows begin on Mondays, as those that are written in weeks."""
    return found.kind == "tumbling" and found.size % WEEK == 0 and found.offset == MONDAY


def exploded(operation: Explode | ExplodeChanges) -> str:
    """The columns of an element, as the language writes them: ``item``, ``(position, item)``."""
    name = operation.item.name
    return name if operation.position is None else f"({operation.position}, {name})"


def within(join: StreamStreamJoin | WithinAggregate) -> str:
    """How far apart records meet, as the language writes it: ``within (before = 1 minute, after = 1 hour)``."""
    if join.before == join.after:
        return f"within {duration(join.before)}"
    return f"within (before = {duration(join.before)}, after = {duration(join.after)})"
