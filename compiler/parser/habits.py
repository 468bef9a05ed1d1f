"""SQL clauses that this language writes differently. The help for each shows the statement to write.

The statement is built from the user's own words, so that it can be pasted. Parts that cannot be derived are ``...``.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.parser.surroundings import closing, input_of, opening, text
from vsc.plan.functions import AGGREGATES

__all__ = ["SORTING", "sql_clause"]

_CLAUSE_ENDS = frozenset(("select", "materialize", "window", "order", "limit", ";"))
_NULLS_DO_NOT_COUNT = ("count", "sum", "avg", "min", "max")
_ONE_OF_EACH = "aggregate: `first`, `last`, `min_by` and `max_by` keep a value of one row of each key"
SORTING = "remove it: a stream never ends, so it cannot be sorted; an aggregate can keep the `min_by` or `max_by`"


def sql_clause(place: WrongPlace) -> Explanation | None:
    """Explains a clause that only SQL has, or an expression as the key of a source."""
    word, following = place.word.lower(), place.word_at(place.index + 1).lower()
    called = place.word_at(place.index - 1) == ")" and following == "("
    if place.index == place.first:
        return None
    if word == "having":
        return _refused(place, "there is no `having`", _having(place))
    if word == "over" and called:
        return _refused(place, "there are no window functions", _over(place))
    if word == "over" and following == "(":
        return _refused(
            place, "there is no `over`", "write the window after the groups: `window tumbling (size = 1 hour)`"
        )
    if word == "filter" and called and place.word_at(place.index + 2).lower() == "where":
        return _refused(place, "an aggregate does not take a `filter`", _filter(place))
    if word == "qualify":
        return _refused(place, "there is no `qualify`", _ONE_OF_EACH)
    if (word == "order" and following == "by") or (word == "limit" and following.isdigit()):
        return _refused(place, f"there is no `{'order by' if word == 'order' else word}`", SORTING)
    if place.word_at(place.index - 1).lower() == "distinct" and place.word_at(place.index - 2).lower() == "select":
        return _refused(place, "there is no `select distinct`", "group by the columns: `aggregate INPUT group by ...`")
    if word == "(" and _in_key(place):
        return _refused(place, "the key of a source is made of its columns, not of expressions", _rekey(place))
    return None


def _refused(place: WrongPlace, message: str, help: str) -> Explanation:
    return place.finding("VSC010", message, help), None


def _having(place: WrongPlace) -> str:
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


def _over(place: WrongPlace) -> str:
    """The aggregate, joined back to its input; for functions that number rows, aggregates that keep one row per key."""
    start = opening(place, place.index - 1) - 1
    call, end = text(place, start, place.index - 1), closing(place, place.index + 1)
    inside = [place.word_at(index).lower() for index in range(place.index + 2, end)]
    if place.word_at(start).lower() not in AGGREGATES or inside[:2] != ["partition", "by"] or "order" in inside:
        return f"{_ONE_OF_EACH}; add `window ...`"
    keys = text(place, place.index + 4, end - 1)
    alias = place.word_at(end + 2) if place.word_at(end + 1) == "as" else "value"
    source = input_of(place)
    table = _called(alias, "_table")
    aggregate = f"table {table} = aggregate {source} group by {keys} select {call} as {alias};"
    return f"aggregate and join: {code(aggregate)}, then {code(f'join {source} with {table} on {keys} select ...')}"


def _filter(place: WrongPlace) -> str:
    """An aggregate of a ``case`` if the function ignores nulls, else a filter on the input."""
    start = opening(place, place.index - 1) - 1
    name, argument = place.word_at(start), text(place, start + 2, place.index - 2)
    condition = text(place, place.index + 3, closing(place, place.index + 1) - 1)
    if name.lower() not in _NULLS_DO_NOT_COUNT:
        return f"aggregate what is left of the input: {code(f'filter {input_of(place)} where {condition}')}"
    value = "1" if argument == "*" else argument
    return f"write {code(f'{name}(case when {condition} then {value} end)')}"


def _in_key(place: WrongPlace) -> bool:
    """Whether this place follows a column of a source's ``key`` clause."""
    index = place.index - 1
    if "TIMESTAMP" not in place.expected or not place.word_at(index).isidentifier():
        return False
    while place.word_at(index - 1) == ",":
        index -= 2
    return place.word_at(index - 1) == "key"


def _rekey(place: WrongPlace) -> str:
    kind, name = place.word_at(place.first), place.word_at(place.first + 1)
    call = text(place, place.index - 1, closing(place, place.index))
    if kind == "stream":
        rekey = f"stream {_called(name, '_by')} = rekey {name} by {call} as k;"
        return f"remove it, and compute the key after the source: {code(rekey)}"
    rekey = f"stream keyed = rekey rows by {call} as k;"
    return f"declare a stream `rows` without a key, then {code(rekey)} and `table NAME = to_table keyed;`"


def _called(written: str, suffix: str) -> str:
    """The name of a new node: a name, as it is written, with a suffix."""
    return named(written.strip("`").replace("``", "`") + suffix)
