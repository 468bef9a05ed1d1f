"""A node that is written as an SQL query, in the user's own words as operations: one for each clause.

What stands in no operation, such as several tables in ``from``, is ``...``.
"""

from __future__ import annotations

import re
from itertools import pairwise

from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.place import WrongPlace
from vsc.compiler.parser.surroundings import closing, declared, text
from vsc.plan.functions import AGGREGATES

__all__ = ["as_operations"]

_CLAUSES = ("select", "from", "where", "group", "having", "window", "emit", "order", "limit", "union", "materialize")


def as_operations(place: WrongPlace, index: int) -> str:
    """What to write in place of the query whose ``select`` is at `index`: a `filter` ahead for ``where``, an
    `aggregate` for ``group by`` or a call that needs one, else a `map`; a `filter` behind for ``having``."""
    clauses = _clauses(place, index)
    source, names = _source(place, clauses)
    name, kind = declared(place), place.word_at(place.first).lower()
    if index == place.first:  # a query that declares nothing
        name, kind = "NAME", _kind(place, source) or "stream"
    items = _items(place, *clauses.get("select", (index, index)))
    shown = ", ".join(_item(place, *item) for item in items) or "..."
    grouped = "group" in clauses or any(_aggregates(place, *item) for item in items)
    groups = _text(place, clauses, "group", 2) or "..."
    if not grouped and shown.lower().startswith("distinct "):
        grouped, groups, shown = True, shown[len("distinct ") :], "count(*) as n"
    having, calls = _having(place, clauses, items)
    shown = ", ".join((shown, *calls))
    found: list[str] = []
    if where := _text(place, clauses, "where", 1):
        if shown == "*":
            return code(f"{kind} {name} = filter {source} where {where};")
        found.append(f"{_kind(place, source) or kind} {_suffixed(name, 'where')} = filter {source} where {where};")
        source = _suffixed(name, "where")
    if grouped:
        window = _text(place, clauses, "window", 0)
        clause = f"group by {groups} {window}".rstrip()
        found.append(f"table {name} = aggregate {source} {clause} select {shown};")
    else:
        found.append(f"{kind} {name} = map {source} select {shown};")
    if having:
        found.append(f"table {_suffixed(name, 'having')} = filter {name} where {having};")
    return ", then ".join(code(_unqualified(one, names)) for one in found) + _left_out(clauses)


def _left_out(clauses: dict[str, tuple[int, int]]) -> str:
    """What is said of clauses that no node has."""
    missing = " and no ".join(clause for clause in ("order", "limit") if clause in clauses)
    return f"; nodes have no {missing}: `collect_top` keeps the first rows of each group" if missing else ""


def _source(place: WrongPlace, clauses: dict[str, tuple[int, int]]) -> tuple[str, tuple[str, ...]]:
    """The table of ``from``, ``...`` for several, and the names by which the query calls it."""
    first, last = clauses.get("from", (0, -1))
    words = [place.word_at(at) for at in range(first + 1, last + 1)]
    if len(words) == 3 and words[1].lower() == "as":
        del words[1]
    return (words[0], tuple(words)) if len(words) in (1, 2) and all(map(_is_name, words)) else ("...", ())


def _is_name(word: str) -> bool:
    return word.strip("`").isidentifier()


def _unqualified(written: str, names: tuple[str, ...]) -> str:
    """A text without these names in front of columns; texts in quotes stay as they are."""
    before = "|".join(map(re.escape, names)) or "(?!)"
    return re.sub(rf"('[^']*')|(?<![\w.`])(?:{before})\.", lambda found: found[1] or "", written)


def _clauses(place: WrongPlace, index: int) -> dict[str, tuple[int, int]]:
    """By the first word of each clause, its first and its last token."""
    found: dict[str, tuple[int, int]] = {}
    at = start = index
    while (word := place.word_at(at).lower()) and word != ";":
        if at > index and word in _CLAUSES and word not in found:
            found[place.word_at(start).lower()] = start, at - 1
            start = at
        at = closing(place, at) if word == "(" else at
        at += 1
    found[place.word_at(start).lower()] = start, at - 1
    return found


def _text(place: WrongPlace, clauses: dict[str, tuple[int, int]], name: str, skipped: int) -> str:
    """The text of a clause without its first words; empty if there is no such clause."""
    if name not in clauses:
        return ""
    first, last = clauses[name]
    return text(place, first + skipped, last)


def _items(place: WrongPlace, first: int, last: int) -> list[tuple[int, int]]:
    """The first and the last token of each item of a ``select``."""
    found, start, at = [], first + 1, first + 1
    while at <= last:
        if place.word_at(at) == ",":
            found.append((start, at - 1))
            start = at + 1
        at = closing(place, at) if place.word_at(at) in ("(", "[") else at
        at += 1
    return [*found, (start, last)] if start <= last else found


def _aggregates(place: WrongPlace, first: int, last: int) -> bool:
    words = [place.word_at(at) for at in range(first, last + 2)]
    return any(word.lower() in AGGREGATES and after == "(" for word, after in pairwise(words))


def _item(place: WrongPlace, first: int, last: int) -> str:
    """An item, with a name if it is a call that has none."""
    written = _lowered(place, first, text(place, first, last))
    name = _column(place, first, last)
    return f"{written} as {name}" if name and place.word_at(last) == ")" else written


def _lowered(place: WrongPlace, first: int, written: str) -> str:
    """A text that may begin with a call: functions are written in lower case."""
    word = place.word_at(first) if place.word_at(first + 1) == "(" else ""
    return word.lower() + written[len(word) :]


def _column(place: WrongPlace, first: int, last: int) -> str:
    """The column that an item makes: its name, or one made of its function and its first argument."""
    if place.word_at(last - 1).lower() == "as" or (first < last and place.word_at(last).isidentifier()):
        return place.word_at(last)
    if place.word_at(first + 1) != "(":
        return place.word_at(last) if first == last else ""
    argument = place.word_at(first + (4 if place.word_at(first + 3) == "." else 2))
    function = place.word_at(first).lower()
    return f"{function}_{argument}" if argument.isidentifier() else "n"


def _having(
    place: WrongPlace, clauses: dict[str, tuple[int, int]], items: list[tuple[int, int]]
) -> tuple[str, list[str]]:
    """A ``having`` with columns in place of its calls, and the calls that the query does not select."""
    condition, missing = _text(place, clauses, "having", 1), list[str]()
    for first, last in items:
        call = text(place, first, closing(place, first + 1)) if place.word_at(first + 1) == "(" else ""
        if call and (name := _column(place, first, last)):
            condition = condition.replace(call, name)
    first, last = clauses.get("having", (0, -1))
    for at in range(first, last):
        call = text(place, at, closing(place, at + 1)) if _aggregates(place, at, at) else ""
        if call and call in condition:
            name = _column(place, at, closing(place, at + 1))
            condition = condition.replace(call, name)
            missing.append(f"{_lowered(place, at, call)} as {name}")
    return condition, missing


def _kind(place: WrongPlace, source: str) -> str:
    """The kind of a node that the file declares ahead; empty if it does not."""
    for index in range(place.first - 1):
        if place.tokens.word(index) in ("stream", "table") and place.tokens.word(index + 1) == source:
            return place.tokens.word(index)
    return ""


def _suffixed(name: str, suffix: str) -> str:
    return named(f"{name.strip('`')}_{suffix}")
