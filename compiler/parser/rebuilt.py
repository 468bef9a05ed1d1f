"""Statements rebuilt from the user's own words, so that what a finding says to write can be pasted.

Rows of mistakes have them as holes. Parts that cannot be derived are ``...``.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions.elsewhere import instead_of, over_a_window
from vsc.compiler.parser.place import WrongPlace
from vsc.compiler.parser.surroundings import body, closing, input_of, open_bracket, opening, text
from vsc.grammar.forms import operations
from vsc.plan.functions import AGGREGATES

__all__ = [
    "as_function", "filtered_call", "groups", "having", "in_key", "operation_before_input", "over",
    "part_of_time", "rekey",
]  # fmt: skip

_ONE_OF_EACH = "aggregate: `first`, `last`, `min_by` and `max_by` keep a value of one row of each key"
_CLAUSE_ENDS = frozenset(("select", "materialize", "window", "order", "limit", ";"))
_NULLS_DO_NOT_COUNT = ("count", "sum", "avg", "min", "max")
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second", "dow", "epoch")


def having(place: WrongPlace) -> str:
    """A filter on the aggregate's table. Aggregate calls in its condition become the columns of their results."""
    condition, index, missing = [], place.index + 1, ""
    while (word := place.word_at(index)) and word.lower() not in _CLAUSE_ENDS:
        if word.lower() in AGGREGATES and place.word_at(index + 1) == "(":
            end = closing(place, index + 1)
            call, index = text(place, index, end), end
            word = _column_of(place, call)
            if not word:
                word, missing = "value", f"select {code(f'{call} as value')}, and "
        condition.append(word)
        index += 1
    written = " ".join(condition)
    name = place.word_at(place.first + 1)
    statement = f"table {_called(name, '_having')} = filter {name} where {written};"
    return f"{missing}filter the table in a separate statement: {code(statement)}"


def _column_of(place: WrongPlace, call: str) -> str:
    """The alias under which the statement selects `call`; empty if it does not select it."""
    for index in range(place.first, len(place.tokens.kinds)):
        word = place.word_at(index)
        if word == ";":
            break
        if index != place.index and word.lower() in AGGREGATES and place.word_at(index + 1) == "(":
            end = closing(place, index + 1)
            if text(place, index, end) == call and place.word_at(end + 1) == "as":
                return place.word_at(end + 2)
    return ""


def over(place: WrongPlace) -> str:
    """The aggregate, joined back to its input; with an order, what came before each record. Functions that only make
    sense over a window have words of their own.

    The place is the bracket behind `over`.
    """
    start = opening(place, place.index - 2) - 1
    name, call, end = place.word_at(start).lower(), text(place, start, place.index - 2), closing(place, place.index)
    inside = [place.word_at(index).lower() for index in range(place.index + 1, end)]
    if name not in AGGREGATES:
        return over_a_window(name) or f"{_ONE_OF_EACH}; add `window ...`"
    alias = place.word_at(end + 2) if place.word_at(end + 1) == "as" else "value"
    source = input_of(place)
    if "order" in inside:
        argument = text(place, start + 2, place.index - 3)
        what = f"r.{argument}" if argument.isidentifier() else argument if argument == "*" else "..."
        join = f"join {source} as l with {source} as r within (before = 7 days) select {name}({what}) as {alias}"
        return f"join the stream with itself, to aggregate what came before each record of its key: {code(join)}"
    if inside[:2] != ["partition", "by"]:
        return f"{_ONE_OF_EACH}; add `window ...`"
    keys = text(place, place.index + 3, end - 1)
    table = _called(alias, "_table")
    aggregate = f"table {table} = aggregate {source} group by {keys} select {call} as {alias};"
    return f"aggregate and join: {code(aggregate)}, then {code(f'join {source} with {table} on {keys} select ...')}"


def filtered_call(place: WrongPlace) -> str:
    """An aggregate of a ``case`` if the function ignores nulls, else a filter on the input."""
    start = opening(place, place.index - 1) - 1
    name, argument = place.word_at(start), text(place, start + 2, place.index - 2)
    condition = text(place, place.index + 3, closing(place, place.index + 1) - 1)
    if name.lower() not in _NULLS_DO_NOT_COUNT:
        return f"aggregate what is left of the input: {code(f'filter {input_of(place)} where {condition}')}"
    value = "1" if argument == "*" else argument
    return f"write {code(f'{name}(case when {condition} then {value} end)')}"


def in_key(place: WrongPlace) -> bool:
    """Whether this place follows a column of a source's ``key`` clause."""
    index = place.index - 1
    if "TIMESTAMP" not in place.expected or not place.word_at(index).isidentifier():
        return False
    while place.word_at(index - 1) == ",":
        index -= 2
    return place.word_at(index - 1) == "key"


def rekey(place: WrongPlace) -> str:
    """A source whose key is an expression: the key, computed after it."""
    kind, name = place.word_at(place.first).lower(), place.word_at(place.first + 1)
    call = text(place, place.index - 1, closing(place, place.index))
    if kind == "stream":
        rekey = f"stream {_called(name, '_by')} = rekey {name} by {call} as k;"
        return f"remove it, and compute the key after the source: {code(rekey)}"
    rekey = f"stream keyed = rekey rows by {call} as k;"
    return f"declare a stream `rows` without a key, then {code(rekey)} and `table NAME = to_table keyed;`"


def _called(written: str, suffix: str) -> str:
    """The name of a new node: a name, as it is written, with a suffix."""
    return named(written.strip("`").replace("``", "`") + suffix)


def groups(place: WrongPlace) -> str:
    """What follows ``group by`` later in the statement."""
    index = place.index
    while (found := place.word_at(index)) and found != ";":
        if found.lower() == "group" and place.word_at(index + 1).lower() == "by":
            return body(place, index + 2, "select", "window", "having", "order", "emit", "limit")
        index += 1
    return "COLUMN"


def operation_before_input(place: WrongPlace) -> str:
    """``s union t``, ``s where n > 1``: the operation in front of its input."""
    source, word = place.word, place.word_at(place.index + 1).lower()
    known = {"union": f"merge {source}, ...", "where": f"filter {source} where ...",
             "select": f"map {source} select ...", "group": f"aggregate {source} group by ... select ..."}  # fmt: skip
    if word == "filter":
        return known["where"]
    if word == "map":
        return known["select"]
    if word in known:
        return known[word]
    if operations().get(word, "join") != "join":
        return f"{word} {source} ..."
    left = "left " if word == "left" else "outer " if word in ("outer", "full") else ""
    return f"{left}join {source} with ..."


def as_function(place: WrongPlace) -> str:
    """``k.upper()`` as a call: ``upper(k)``."""
    name, value = place.word_at(place.index - 1), place.word_at(place.index - 3)
    value = value if value.isidentifier() else "..."
    arguments = text(place, place.index + 1, closing(place, place.index) - 1)
    function = instead_of(name)[1] or name
    return f"{function}({value}, {arguments})" if arguments else f"{function}({value})"


def part_of_time(place: WrongPlace) -> str:
    """``extract(year from at)`` as a call; empty if no function gives that part."""
    opened = open_bracket(place) or place.first
    part = place.word_at(opened + 1).lower()
    first = place.index + (place.word.lower() == "from")
    rest = text(place, first, closing(place, opened) - 1)
    whole = {"epoch": f"unix_seconds({rest})", "dow": f"dayofweek({rest})"}
    return whole.get(part, f"{part}({rest})") if part in _PARTS else ""
