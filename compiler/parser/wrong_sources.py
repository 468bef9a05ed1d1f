"""Columns and clauses of a source as SQL and its dialects write them."""

from __future__ import annotations

from itertools import pairwise

from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import (
    body,
    closing,
    declared,
    in_columns,
    name_index,
    open_bracket,
    options_of_a_store,
    phrase,
    say,
    sql,
    text,
    wrong,
)
from vsc.compiler.parser.types import is_type_name
from vsc.compiler.source import Span
from vsc.plan.connectors import FACTS

__all__ = ["wrong_source"]

_FROM = "write `from CONNECTOR (...)`, as in `from files (path = 'data/x', format = 'json')`"
_NO_RULES = "remove it, and drop what does not fit in a `filter`"
_EVENT_TIME = "write `timestamp at` after the connector; how late rows may come is the `grace` of a window or a join"
_COMPUTED = "compute it in a `map` of the source: `map {} select *, ... as {}`"
_AFTER_TYPE = {
    "not": ("a column has no `not null`", "remove it: key columns are never null; drop other nulls in a `filter`"),
    "null": ("a column has no `null`", "remove it: every column that is not a key column can be null"),
    "nullable": ("a column has no `nullable`", "remove it: every column that is not a key column can be null"),
    "default": ("a column has no `default`", "remove it, and write `coalesce(COLUMN, VALUE)` in a `map`"),
    "comment": ("a column has no `comment`", "write `-- ...` at the end of the line"),
    **dict.fromkeys(("unique", "check", "references", "foreign", "constraint", "exclude"),
                    ("a source has no constraints", _NO_RULES)),
    **dict.fromkeys(("auto_increment", "autoincrement", "identity", "generated", "serial"),
                    ("a source reads its columns: none is generated", "remove it")),
    **dict.fromkeys(("collate", "encode", "encoding", "charset"),
                    ("a column has no collation or encoding", "remove it: texts are UTF-8 and compare by code point")),
    **dict.fromkeys(("metadata", "header", "headers"),
                    ("a column has no `{word}`", "remove it; the connector's options say what it reads besides rows")),
    "precision": ("there is no type `double precision`", "write `double`"),
    "unsigned": ("there are no unsigned types", "write the next wider type, such as `bigint` for an unsigned int"),
    "varying": ("there is no type `character varying`", "write `string`"),
}  # fmt: skip
_CLAUSES = {
    "with": ("where rows come from is not written with `with`", _FROM),
    "using": ("where rows come from is not written with `using`", _FROM),
    **dict.fromkeys(("stored", "location", "tblproperties", "options", "format"),
                    ("where rows come from is written with `from`", _FROM)),
    **dict.fromkeys(("partitioned", "clustered", "distributed", "partition", "bucketed", "order", "cluster"),
                    ("a source has no layout", "remove it: `vsc run --partitions N` says how wide a run is")),
    "watermark": ("there is no `watermark`", _EVENT_TIME),
    **dict.fromkeys(("event", "eventtime", "event_time", "rowtime"),
                    ("the event time is written with `timestamp`", "write `timestamp COLUMN`")),
    "comment": ("a source has no `comment`", "write `-- ...` above it"),
    "versioned": ("`versioned` belongs to `materialize`", "write `materialize versioned (retention = 7 days)`"),
    "retention": ("`retention` belongs to `materialize`", "write `materialize versioned (retention = 7 days)`"),
    **dict.fromkeys(("expire", "expires", "ttl"),
                    ("rows expire by an option of their store", "write `materialize unversioned (expire = 30 days)`")),
    "unversioned": ("`unversioned` belongs to `materialize`", "write `materialize unversioned`"),
    "where": ("a source reads every row", "write a statement of its own: `stream NAME = filter {name} where ...;`"),
    "select": ("a source is not a query", "write a statement of its own: `stream NAME = map {name} select ...;`"),
    "as": ("a source is not a query", "write a statement of its own: `stream NAME = map {name} select ...;`"),
    "emit": ("a source has no `emit`", "remove it"),
    **dict.fromkeys(("schema", "columns"),
                    ("the columns stand directly after the name", "write `{name} (id bigint, ...)`")),
}  # fmt: skip


def wrong_source(place: WrongPlace) -> Explanation | None:
    """A column, a type or a clause that is written differently here."""
    if place.index <= name_index(place) or place.word_at(place.first) not in ("stream", "table", "global"):
        return _array_type(place)
    columns = in_columns(place)
    if columns or open_bracket(place) is not None:
        found = _constraint(place) or _type_parts(place) or (_column(place) if columns else None)
        if found is not None:
            return found
    return _array_type(place) or (_clause(place) if open_bracket(place) is None else None)


def _constraint(place: WrongPlace) -> Explanation | None:
    """``primary key (id)`` and ``watermark for ...``, whose first words were read as a column."""
    opened = open_bracket(place) or place.first
    if phrase(place, 2, opened - place.index - 2) == ("primary", "key"):
        columns = text(place, opened + 1, closing(place, opened) - 1)
        span = place.tokens.span(opened - 2).to(place.tokens.span(closing(place, opened)))
        return sql(
            place, "the key is not one of the columns", f"write {code(f'key {columns}')} after the connector", span
        )
    if place.word_at(opened - 1).lower() in ("unique", "check", "index", "foreign") and not in_columns(place):
        return sql(place, "a source has no constraints", _NO_RULES, place.tokens.span(opened - 1))
    for back in (1, 2):
        if phrase(place, 2, -back) == ("watermark", "for"):
            column = place.word_at(place.index - back + 2)
            span = Span(place.tokens.starts[place.index - back], place.tokens.ends[place.index - back + 1])
            return sql(place, "there is no `watermark`", _EVENT_TIME.replace("at`", f"{column}`", 1), span)
    return None


def _column(place: WrongPlace) -> Explanation | None:
    before, word, following = place.word_at(place.index - 1), place.word.lower(), place.word_at(place.index + 1).lower()
    if {"NAME", "QUOTED"} <= set(place.expected) <= {"NAME", "QUOTED", "RPAR"}:
        return _needs_type(place, before)
    if "COLON" in place.expected or not {"LESSTHAN", "COMMA"} <= set(place.expected):
        return None
    column = place.word_at(place.index - 2)
    if (word, following) == ("primary", "key"):
        if place.word_at(place.index + 2) == "(":
            column = text(place, place.index + 3, closing(place, place.index + 2) - 1)
        return sql(place, "the key is not part of a column", f"write {code(f'key {column}')} after the connector",
                   place.span.to(place.tokens.span(place.index + 1)))  # fmt: skip
    if word in ("with", "without") and following in ("time", "local"):
        return say(place, "VSC016", "a timestamp has no time zone of its own: it is an instant",
                   "write `timestamp`; the option `time_zone` of `files` reads local times")  # fmt: skip
    if word == "as" or (word, following) == ("generated", "always"):
        name = declared(place)
        return sql(place, "a source does not compute columns", _COMPUTED.format(name, column))
    if word in _AFTER_TYPE:
        message, help = _AFTER_TYPE[word]
        return sql(place, message.format(word=word), help.replace("COLUMN", column))
    if place.word == "<>":
        return say(place, "VSC016", f"the type {code(before)} needs its parts", f"write {code(f'{before}<T>')}")
    if place.word == "=":
        message, help = _AFTER_TYPE["default"]
        return sql(place, message, help.replace("COLUMN", column))
    if place.is_word() and place.word_at(place.index + 1) in (",", ")"):
        name = f"{column} {before}"
        help = (
            f"write a name in backticks: {code(f'{named(name)} {place.word}')}"
            if is_type_name(place.word)
            else "remove it"
        )
        return wrong(place, f"a column is a name and a type, found {code(place.word)} as well", help)
    return None


def _needs_type(place: WrongPlace, before: str) -> Explanation | None:
    """Where a column or a type is expected."""
    if before == "(" and place.word == ")":
        return wrong(place, "a source declares its columns", "write their names and types, as in `(id bigint)`")
    if place.word == ":":
        finding = place.finding("VSC005", "no `:` stands between a column and its type", "remove the `:`", new="")
        place.tokens.damaged.add(place.index)
        return finding, None
    if place.word in (",", ")") and before not in ("(", ","):
        help = f"write one after its name, as in {code(f'{before} string')}"
        return wrong(place, f"the column {code(before)} has no type", help, place.tokens.span(place.index - 1))
    if place.word == "," and before == ",":
        return wrong(place, "there are two commas and no column between them", "remove one of them", new="")
    if place.word == "(" and before != "(":
        lacks = "name" if is_type_name(before) else "type"
        return wrong(place, f"a column is a name and a type, and this one has no {lacks}", f"write its {lacks}")
    if place.word == "[" and place.word_at(place.index + 2) == "]":
        return wrong(place, "a name has no `[` and `]`", f"write {code(named(place.word_at(place.index + 1)))}")
    if place.name == "STRING":
        name = place.word.strip("'")
        return wrong(
            place,
            "the name of a column is not a string",
            f"write {code(named(name))}",
        )
    return None


def _array_type(place: WrongPlace) -> Explanation | None:
    """``string[]`` and ``[]string``."""
    before = place.word_at(place.index - 1)
    if place.word != "[":
        return None
    closed = place.word_at(place.index + 1) == "]"
    if before.lower() in ("array", "map", "struct", "decimal") and not closed:
        last = _closing(place, "]")
        inside = text(place, place.index + 1, last - 1)
        span = place.tokens.span(place.index - 1).to(place.tokens.span(last))
        new = f"{before}({inside})" if before.lower() == "decimal" else f"{before}<{inside}>"
        return say(place, "VSC016", "a type has no `[` and `]`", f"write {code(new)}", span, new)
    if is_type_name(before) and "LESSTHAN" in place.expected:
        new, span = f"array<{before}>", place.tokens.span(place.index - 1)
        end = place.index + (1 if closed else 2)
        return say(
            place,
            "VSC016",
            "the type of an array is not written with `[]`",
            f"write {code(new)}",
            span.to(place.tokens.span(end)),
            new,
        )
    if closed and is_type_name(place.word_at(place.index + 2)) and "NAME" in place.expected:
        new = f"array<{place.word_at(place.index + 2)}>"
        return say(place, "VSC016", "the type of an array is not written with `[]`", f"write {code(new)}")
    return None


def _words(place: WrongPlace) -> list[str]:
    """The words of the statement in front of the place."""
    return [place.word_at(index) for index in range(place.first, place.index)]


def _columns_of(place: WrongPlace) -> list[str]:
    """The names before a type, in the columns of the source."""
    words = _words(place)
    return [one for one, following in pairwise(words[2:]) if is_type_name(following)]


def _closing(place: WrongPlace, sign: str) -> int:
    """The next token `sign` of the statement, or its last token."""
    last = place.index
    while (word := place.word_at(last)) and word not in (sign, ";"):
        last += 1
    return last


def _type_parts(place: WrongPlace) -> Explanation | None:
    """``map(string, int)``, ``array<array<string>)``, ``array<string>>``, ``decimal(12.2)``, ``enum('a')``."""
    opened, before = open_bracket(place), place.word_at(place.index - 1)
    owner = place.word_at(opened - 1) if opened is not None else ""
    if place.expected == ["INTEGER"] and opened == place.index - 1 and place.name not in ("RPAR", "SEMICOLON"):
        if place.name == "DECIMAL":
            sizes = place.word.replace(".", ", ")
            return say(place, "VSC016", "the digits of a decimal are two numbers", f"write {code(f'decimal({sizes})')}")
        inside = text(place, place.index, closing(place, opened) - 1)
        if owner.lower() in ("array", "map", "struct"):
            help = (
                f"write {code(f'{owner}<{inside}>')}"
                if owner.lower() != "struct"
                else "write `struct<NAME: TYPE, ...>`"
            )
            return say(place, "VSC016", "the parts of a type stand between `<` and `>`", help)
        return say(
            place, "VSC016", f"there is no type {code(owner)} with such parts", "write `string`, or another type"
        )
    if owner.lower() == "decimal" and place.name == "INTEGER" and place.before == "INTEGER":
        return say(
            place, "VSC022", "a comma is missing between two numbers", f"write `decimal({before}, {place.word})`"
        )
    if owner.lower() == "decimal" and "RPAR" in place.expected and place.is_word():
        assert opened is not None
        return say(place, "VSC023", "the `(` of `decimal` is not closed", "write `)` after its digits",
                   place.tokens.span(opened))  # fmt: skip
    if "MORETHAN" in place.expected and place.word in (")", ";"):
        help = f"write `>` before {code(place.word)}"
        return say(place, "VSC023", "the `<` of a type is not closed", help, new=f">{place.word}")
    if place.word == ">" and before == ">":
        return say(place, "VSC023", "this `>` closes nothing", "remove it", new="")
    return None


def _clause(place: WrongPlace) -> Explanation | None:
    """After the columns."""
    before, word, following = place.word_at(place.index - 1).lower(), place.word.lower(), place.word_at(place.index + 1)
    name = declared(place)
    if before == "from" and place.word == "(":
        return wrong(place, "the connector has no name", "write it in front, as in `from files (...)`")
    if before == "from" and place.name == "STRING":
        help = f"write `from files (path = {place.word}, format = 'json')`, or another connector"
        return wrong(place, "`from` takes a connector, not a path", help)
    if before == "key" and place.word == "(":
        columns = text(place, place.index + 1, closing(place, place.index) - 1)
        span = place.span.to(place.tokens.span(closing(place, place.index)))
        new = f" {columns}" if place.tokens.ends[place.index - 1] == place.span.start else columns
        return wrong(place, "the key stands without parentheses", f"write {code(f'key {columns}')}", span, new)
    if before in ("key", "timestamp", "from") and place.word in ("=", ":"):
        return wrong(
            place, f"{code(before)} is a clause, not an option", f"write {code(f'{before} {following}')}", new=""
        )
    if before == "by" and place.word_at(place.index - 2) in ("key", "timestamp"):
        clause = place.word_at(place.index - 2)
        return wrong(
            place,
            f"{code(clause)} has no `by`",
            f"write {code(f'{clause} {place.word}')}",
            place.tokens.span(place.index - 1),
            "",
        )
    if before == "delete" and place.is_word():
        return wrong(place, "rows are deleted by a condition: `delete when`", "write `delete when`", new="when")
    if before == "materialize" and place.word == "(":
        return options_of_a_store(place, "materialize ")
    if before in ("versioned", "unversioned") and following == "=":
        options = body(place, place.index, "from", "key", "timestamp", "delete")
        return wrong(place, "options stand in parentheses", f"write {code(f'({options})')}")
    if "FROM" not in place.expected:
        return None
    if place.is_word() and following == "(" and place.word in FACTS:
        help = f"write {code(f'from {place.word}')}"
        return wrong(place, "the connector follows `from`", help, new=f"from {place.word}")
    if place.is_word() and place.word in _columns_of(place) and before != place.word_at(place.index - 2):
        help = f"write {code(f'timestamp {place.word}')}, or {code(f'key {place.word}')}"
        return wrong(place, f"the column {code(place.word)} belongs to no clause", help)
    if place.word == "," and before == ")" and "from" not in _words(place):
        return say(place, "VSC023", "this `)` ends the columns", "remove it", place.tokens.span(place.index - 1), "")
    if word == "to":
        help = f"write `from`; rows are written by a sink: {code(f'sink {name} to CONNECTOR (...);')}"
        return wrong(place, "a source reads from a connector", help)
    if (word, following.lower()) == ("primary", "key"):
        finding = place.finding("VSC010", "the key is written without `primary`", "write `key` alone", new="")
        place.tokens.damaged.add(place.index)
        return (finding, None) if place.word_at(place.index + 2) == "(" else (finding, Repair(None, consumes=True))
    if word in _CLAUSES:
        message, help = _CLAUSES[word]
        return sql(place, message, help.replace("{name}", name))
    return None
