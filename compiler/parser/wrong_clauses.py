"""The clauses of each operation as SQL, Kafka Streams and other systems write them."""

from __future__ import annotations

from vsc.compiler.diagnostics.wording import code
from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.parser.surroundings import (
    body,
    closing,
    declared,
    operation,
    options_of_a_store,
    say,
    sql,
    text,
    wrong,
)
from vsc.grammar.forms import clauses_of, words_before_durations

__all__ = ["CLAUSES"]


def _filter(place: WrongPlace) -> Explanation | None:
    if place.word == "select" and "SEMICOLON" in place.expected:
        statement = f"stream NAME = map {declared(place)} {body(place, place.index)};"
        help = f"select in a separate statement: {code(statement)}"
        return wrong(place, "a `filter` has no `select`", help)
    if "WHERE" not in place.expected:
        return None
    source = place.word_at(place.index - 1)
    if place.word.lower() in ("on", "if", "when", "with", "by", "having"):
        return wrong(place, "the condition of a `filter` follows `where`", "write `where`", new="where")
    if place.word == ",":
        return wrong(place, "a `filter` has one input", "write one filter for each, or `merge` the streams first")
    if (place.is_word() and place.word.lower() != "qualify") or place.word == "(":
        condition = body(place, place.index, "materialize")
        return wrong(place, "a `where` is missing", f"write {code(f'filter {source} where {condition}')}")
    return None


def _map(place: WrongPlace) -> Explanation | None:
    if place.word_at(place.index - 1) == "all" and place.word_at(place.index - 2) == "select" and place.is_word():
        return sql(place, "`select all` is `select`", "remove `all`", place.tokens.span(place.index - 1), "")
    if place.word_at(place.index - 1).lower() == "top" and place.name == "INTEGER":
        return sql(place, "there is no `top`", "remove it: an aggregate can keep the `min_by` or `max_by` of each key")
    if "SELECT" not in place.expected:
        return None
    source = place.word_at(place.index - 1)
    if place.word.lower() in ("to", "with", "by", "into", "as", "set", "on") and place.name != "AS":
        return wrong(place, "what a `map` computes follows `select`", "write `select`", new="select")
    if place.is_word() or place.word in ("*", "(", ","):
        return wrong(place, "a `select` is missing", f"write {code(f'map {source} select ...')}")
    return None


def _join(place: WrongPlace) -> Explanation | None:
    word, before, following = place.word.lower(), place.word_at(place.index - 1), place.word_at(place.index + 1)
    if "WITH" in place.expected:
        if before in ("left", "outer") and place.word_at(place.index - 2) == "join":
            return wrong(
                place, f"{code(before)} stands before `join`", f"write {code(f'{before} join {place.word} ...')}"
            )
        if before == "with" and place.is_word():
            return wrong(place, "the left input is missing", f"write {code(f'join INPUT with {place.word} ...')}")
        if word in ("on", "using") and place.word_at(place.index + 2) == "with":
            help = f"write {code(f'join {before} with {place.word_at(place.index + 3)} on {following}')}"
            return wrong(place, "`on` comes after the table", help)
        if place.word == "," or word in ("and", "to", "join", "by"):
            other = following if following.isidentifier() else "TABLE"
            new = " with" if place.word == "," else "with"
            help = f"write {code(f'join {before} with {other}')}"
            return wrong(place, "the inputs of a join are separated by `with`", help, new=new)
        if place.is_word() and following.lower() in ("on", "select", "grace", "using"):
            return wrong(
                place,
                f"a `with` is missing before {code(place.word)}",
                f"write {code(f'join {before} with {place.word}')}",
            )
    if word == "using" and "ON" in place.expected:
        inside = following == "("
        keys = text(place, place.index + 2, closing(place, place.index + 1) - 1) if inside else following
        return sql(place, "the key of a join follows `on`", f"write {code(f'on {keys}')}")
    if before in ("on", "grace", "select") and place.word_at(place.index - 2) == "with" and place.is_word():
        span = place.tokens.span(place.index - 1)
        return wrong(place, "the right input of the join is missing", f"write `with TABLE {before} ...`", span)
    if word == "," and {"SELECT", "AS"} <= set(place.expected) and "ON" in place.expected:
        return say(place, "VSC025", _ONE_JOIN, _NEXT_JOIN)
    if word in ("join", "with", "left", "outer", "inner") and "SELECT" in place.expected:
        if (word, following.lower()) == ("with", "grace"):
            return wrong(place, "`grace` stands without `with`", "write `grace`", new="")
        return say(place, "VSC025", _ONE_JOIN, _NEXT_JOIN)
    if (wrong_order := _join_order(place)) is not None:
        return wrong_order
    if before in ("strictly", "drop", "older") or (word in ("before", "older") and "SELECT" in place.expected):
        return _without_value(place, word, before)
    if word in _AGES and "SELECT" in place.expected:
        length = place.word_at(place.index + (2 if following in ("age", "=") else 1))
        return sql(place, "how old a row may be follows `max_age`", f"write {code(f'max_age {length}')}")
    if word == "," and place.word_at(place.index - 2) == "within":
        help = f"write {code(f'within (before = {before}, after = {following})')}"
        return wrong(place, "`within` takes one duration, or two by their names", help)
    if (word == "at" and "SELECT" in place.expected) or (before.lower() == "at" and place.name == "DURATION"):
        return None
    return _duration_clause(place)


def _without_value(place: WrongPlace, word: str, before: str) -> Explanation | None:
    """Half of ``strictly before`` or of ``drop older_than_retention``, or other words for them."""
    if "BEFORE" in place.expected or word == "before":
        return wrong(place, "earlier rows only is `strictly before`", "write `strictly before`")
    if "OLDER_THAN_RETENTION" in place.expected or word == "older":
        message = "a `left join` can drop the records that are older than the table's history"
        return wrong(place, message, "write `drop older_than_retention`")
    return None


_ONE_JOIN = "a statement has one join"
_NEXT_JOIN = "end it with a `select`, and join its node with the next input"
_AGES = ("age", "max", "maxage", "max_lookback", "max_staleness", "tolerance", "ttl")
"""Other words for how old a row may be that a join finds."""


def _join_order(place: WrongPlace) -> Explanation | None:
    """A clause of a join behind one that comes after it."""
    clauses = {clause.word: code(clause.words) for clause in clauses_of("join") if clause.optional}
    word, order = place.word.lower(), list(clauses)
    if "SELECT" not in place.expected or word not in clauses:
        return None
    words = [place.word_at(index) for index in range(operation(place) or place.first, place.index)]
    if word in words:
        return say(place, "VSC011", f"a second {code(word)} in one join", "keep one of them")
    later = next((one for one in order[order.index(word) + 1 :] if one in words), None)
    if later is None:
        return None
    first, second = clauses[word], clauses[later]
    return wrong(place, f"{first} comes before {second}", f"write {first}, then {second}")


def _duration_clause(place: WrongPlace) -> Explanation | None:
    """After ``grace``, ``within`` or ``max_age``, where a duration is expected."""
    clause, word = place.word_at(place.index - 1), place.word
    if "DURATION" not in place.expected or "NAME" in place.expected or clause not in words_before_durations():
        return None
    following = place.word_at(place.index + 1)
    if word in (";", "select", ","):
        return wrong(
            place, f"a duration is missing after {code(clause)}", f"write one, as in {code(f'{clause} 5 minutes')}"
        )
    if word == "=":
        return wrong(
            place, f"{code(clause)} is a clause, not an option", f"write {code(f'{clause} {following}')}", new=""
        )
    if word == "(":
        inside = text(place, place.index + 1, closing(place, place.index) - 1)
        return wrong(
            place, f"{code(clause)} takes a duration without parentheses", f"write {code(f'{clause} {inside}')}"
        )
    if word.lower() in ("period", "of", "by"):
        return wrong(
            place, f"the duration follows {code(clause)} directly", f"write {code(f'{clause} {following}')}", new=""
        )
    return None


def _aggregate(place: WrongPlace) -> Explanation | None:
    word, before, following = place.word.lower(), place.word_at(place.index - 1).lower(), place.word_at(place.index + 1)
    if before == "by" and word in ("select", "window") and "CASE" in place.expected:
        return wrong(place, "`group by` needs an expression", "write one, as in `group by account`")
    if before == "window" and place.name in ("DURATION", "INTEGER"):
        return wrong(place, "a window has a kind", f"write {code(f'window tumbling (size = {place.word})')}")
    if "GROUP" in place.expected:
        source = place.word_at(place.index - 1)
        if word == "select":
            keys = _later(place, "group")
            return wrong(
                place,
                "the groups come before `select`",
                f"write {code(f'aggregate {source} group by {keys} select ...')}",
            )
        if word in ("by", "on", "per", "key", "over", "partition"):
            key = following if word != "partition" else place.word_at(place.index + 2)
            return wrong(place, "what an aggregate groups by follows `group by`", f"write {code(f'group by {key}')}")
        if word == "window":
            return wrong(
                place,
                "the window comes after the groups",
                f"write `group by {_later(place, 'group')} window ...`",
            )
        if word == "where":
            return wrong(
                place,
                "an aggregate has no `where`",
                f"filter in a separate statement: `stream NAME = filter {source} {body(place, place.index, 'group')};`",
            )
        return None
    if place.expected == ["BY"] and place.is_word() and not word.startswith("by"):
        return wrong(place, "`group` is followed by `by`", f"write {code(f'group by {place.word}')}")
    if "WINDOW" in place.expected and "SELECT" in place.expected:
        return _before_select(place, word, following)
    if word == "," and following == "grace" and "EMIT" in place.expected:
        help = f"write {code(f'(size = ..., grace = {place.word_at(place.index + 2)})')}"
        return wrong(place, "`grace` is an option of the window", help)
    if word in ("grace", "with", "within") and "EMIT" in place.expected:
        return wrong(
            place, "`grace` is an option of the window", f"write {code(f'(size = ..., {word} = {following})')}"
        )
    if before == "emit":
        return wrong(
            place,
            "a window emits `changes` or `final` rows",
            "write `emit final` for one row when it closes, or nothing",
        )
    return None


def _before_select(place: WrongPlace, word: str, following: str) -> Explanation | None:
    """After the groups of an aggregate."""
    if word in ("tumbling", "hopping", "sliding", "session") and following == "(":
        return wrong(place, "a window begins with `window`", f"write {code(f'window {place.word} (...)')}")
    if word in ("tumble", "hop", "session_window", "cumulate", "every", "window_size", "timewindow", "over", "per"):
        size = next(
            (place.word_at(place.index + n) for n in range(1, 8) if " " in place.word_at(place.index + n)), "1 hour"
        )
        return sql(
            place, f"there is no {code(place.word)}", f"write {code(f'window tumbling (size = {size.strip(chr(39))})')}"
        )
    if word == "sets":
        return sql(place, "there is no `grouping sets`", "write an aggregate for each set of groups")
    if place.word == "(" and place.word_at(place.index - 1).isidentifier():
        return wrong(place, "a `select` is missing", f"write {code(f'select {place.word_at(place.index - 1)}(...)')}")
    if place.is_word() and following == "(":
        return wrong(place, "a `select` is missing", f"write {code(f'select {place.word}(...)')}")
    return None


def _later(place: WrongPlace, word: str) -> str:
    """What follows ``WORD by`` later in the statement."""
    index = place.index
    while (found := place.word_at(index)) and found != ";":
        if found.lower() == word and place.word_at(index + 1).lower() == "by":
            return body(place, index + 2, "select", "window", "having", "order", "emit", "limit")
        index += 1
    return "COLUMN"


def _rekey(place: WrongPlace) -> Explanation | None:
    return _by(place, "rekey", "the new key")


def _explode(place: WrongPlace) -> Explanation | None:
    if place.word == "." and "BY" in place.expected:
        return wrong(
            place,
            "the array follows `by`",
            f"write {code(f'explode {place.word_at(place.index - 1)} by {place.word_at(place.index + 1)} as NAME')}",
        )
    if place.word.lower() == "from" and "BY" in place.expected:
        array = place.word_at(place.index - 1)
        return wrong(
            place,
            "the stream comes before the array",
            f"write {code(f'explode {place.word_at(place.index + 1)} by {array} as NAME')}",
        )
    if "AS" in place.expected and "BY" not in place.expected and (place.name == "SEMICOLON" or place.is_word()):
        name = place.word if place.is_word() else "NAME"
        array = place.word_at(place.index - 1)
        return wrong(place, "the column of the elements has no name", f"write {code(f'by {array} as {name}')}")
    return _by(place, "explode", "the array")


def _by(place: WrongPlace, operation: str, what: str) -> Explanation | None:
    if "BY" not in place.expected or not place.is_word():
        return None
    if place.word_at(place.index - 1) == "by":
        return wrong(place, "the stream is missing", f"write {code(f'{operation} STREAM by {place.word}')}")
    if place.word.lower() in ("on", "to", "key", "with", "as", "using", "into") and place.name != "AS":
        return wrong(place, f"{what} follows `by`", "write `by`", new="by")
    return wrong(
        place,
        f"a `by` is missing: {what} follows it",
        f"write {code(f'{operation} {place.word_at(place.index - 1)} by {place.word}')}",
    )


def _merge(place: WrongPlace) -> Explanation | None:
    if place.word == "," == place.word_at(place.index - 1):
        return wrong(place, "there are two commas and no input between them", "remove one of them", new="")
    if "COMMA" not in place.expected or not place.is_word():
        return None
    word, following = place.word.lower(), place.word_at(place.index + 1)
    if word in ("and", "with", "to", "union", "or"):
        return wrong(
            place,
            "the inputs of a merge are separated by commas",
            f"write {code(f'{place.word_at(place.index - 1)}, {following}')}",
            new=",",
        )
    return say(place, "VSC022", "a comma is missing between two inputs", f"write `,` before {code(place.word)}")


def _distinct(place: WrongPlace) -> Explanation | None:
    word = place.word.lower()
    if "WITHIN" not in place.expected:
        if word == "by" and "SEMICOLON" in place.expected:
            return wrong(
                place,
                "`by` comes before `within`",
                f"write {code(f'distinct ... {body(place, place.index)} within ...')}",
            )
        return _duration_clause(place)
    if word == "(" and place.word_at(place.index - 1) == "on":
        last = closing(place, place.index)
        keys, stream = text(place, place.index + 1, last - 1), place.word_at(last + 1)
        return wrong(
            place, "the stream comes first, then `by`", f"write {code(f'distinct {stream} by {keys} within ...')}"
        )
    if word == "from":
        keys, stream = place.word_at(place.index - 1), place.word_at(place.index + 1)
        return wrong(
            place, "the stream comes first, then `by`", f"write {code(f'distinct {stream} by {keys} within ...')}"
        )
    if word in ("on", "key", "over") and "BY" in place.expected:
        return wrong(place, "the columns of a `distinct` follow `by`", "write `by`", new="by")
    if place.name == "SEMICOLON":
        return wrong(
            place,
            "a `distinct` has no end without `within`",
            "write how far apart repeats can be, as in `within 1 day`",
        )
    return None


def _suppress(place: WrongPlace) -> Explanation | None:
    _word, before = place.word.lower(), place.word_at(place.index - 1)
    forms = "write `until window closes`, or `until time limit 5 minutes`"
    if "UNTIL" in place.expected or before in ("until", "window", "time") or (before == "limit" and place.word == ";"):
        return wrong(place, "a `suppress` says until when it holds rows", forms)
    return _duration_clause(place)


def _converted(place: WrongPlace) -> Explanation | None:
    """``to_table``, ``to_stream`` and ``materialize``."""
    at = operation(place) or place.first
    if place.word.lower() in ("by", "on", "key") and place.word_at(at) == "to_table":
        return wrong(
            place,
            "the table has the key of the stream",
            f"rekey it first: {code(f'rekey {place.word_at(at + 1)} {body(place, place.index)}')}",
        )
    if place.word.lower() in ("select", "where") and "SEMICOLON" in place.expected:
        return say(
            place,
            "VSC025",
            "a statement has one operation",
            "write `map ... select` or `filter ... where` in a statement of its own",
        )
    if place.word == "(" and "VERSIONED" in place.expected:
        return options_of_a_store(place)
    if place.name == "AS" and "SEMICOLON" in place.expected:
        return wrong(
            place,
            "the name of the store comes before `versioned`",
            f"write {code(f'as {place.word_at(place.index + 1)} versioned (...)')}",
        )
    return None


CLAUSES = {
    "filter": _filter, "map": _map, "join": _join, "aggregate": _aggregate, "rekey": _rekey, "explode": _explode,
    "merge": _merge, "distinct": _distinct, "suppress": _suppress, "to_table": _converted, "to_stream": _converted,
    "materialize": _converted,
}  # fmt: skip
