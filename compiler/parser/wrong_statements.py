"""Statements that begin or are named as in other languages, and sinks."""

from __future__ import annotations

from typing import get_args

from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import body, declared, name_index, phrase, say, sql, text, wrong
from vsc.compiler.parser.types import is_type_name
from vsc.compiler.source import Span
from vsc.compiler.syntax import Operation
from vsc.grammar.forms import operations

__all__ = ["wrong_statement"]

_OF_TABLES = frozenset(operation.word for operation in get_args(Operation) if operation.makes == "table")

_DERIVED = "declare a node, as in `stream NAME = map INPUT select ...;`"
_FUNCTION = "write `function NAME (NAME TYPE, ...) returns TYPE from 'MODULE:NAME';`, or compute it in a `map`"
_OTHER_STATEMENTS = {
    **dict.fromkeys(("import", "load", "require"),
                    "write `include 'FILE';` for what another file declares"),
    **dict.fromkeys(("var", "val", "const", "define", "declare"),
                    "write `let NAME = VALUE;` for a constant; a value from outside is a variable, `${name}`"),
    **dict.fromkeys(("def", "func", "fn", "fun"), _FUNCTION),
    **dict.fromkeys(("view", "node", "query", "kstream", "source"),
                    "write `stream NAME` or `table NAME`, and `= OPERATION` or the columns of a source"),
    **dict.fromkeys(("ktable",), "write `table NAME = ...`"),
    **dict.fromkeys(("globalktable", "globaltable"), "write `global table NAME (...)`"),
    **dict.fromkeys(("print", "return", "emit", "output", "write"), "write a node with `sink NAME to console ();`"),
    **dict.fromkeys(("begin", "commit", "end", "if", "for", "while", "do"), "there is no control flow: " + _DERIVED),
    **dict.fromkeys(("external", "temporary", "temp", "versioned", "persistent"),
                    "begin with `stream` or `table`; `materialize versioned (...)` follows the other clauses"),
}  # fmt: skip
"""Words that begin a statement in other languages, with what to write here."""
_SQL = {
    **dict.fromkeys(("select", "with", "from", "values"),
                    "write `stream NAME = map INPUT select ...;`, and `sink NAME to CONNECTOR (...);` to write it out"),
    "insert": "write `sink NODE to CONNECTOR (...);`: a sink writes every row of a node",
    **dict.fromkeys(("update", "delete", "merge", "upsert"),
                    "rows change by what a source reads: a `table` keeps the newest row of each key"),
    **dict.fromkeys(("drop", "alter", "truncate"), "change the declaration itself, and run `vsc diff` on both texts"),
    **dict.fromkeys(("set", "reset"), "settings of Spark go to the command line: `vsc run --conf KEY=VALUE`"),
    "use": "remove it: there are no databases, a connector's options name what it reads",
    **dict.fromkeys(("describe", "desc", "show"), "run `vsc compile FILE --emit topology`: it shows nodes and columns"),
    **dict.fromkeys(("explain", "analyze"), "run `vsc compile FILE --emit topology`, or `vsc explain CODE`"),
}  # fmt: skip
_CREATED = ("stream", "table", "global", "or", "view", "temporary", "external", "source", "sink")


def wrong_statement(place: WrongPlace) -> Explanation | None:
    """A word that begins no statement, or a name, ``=`` or ``to`` that is not as it should be."""
    if place.index == place.first:
        return _first(place)
    head = place.word_at(place.first)
    if place.index > place.first + 6 and head != "function":
        return _after_sink(place)
    if head in ("stream", "table", "global"):
        return _head(place)
    if head == "sink":
        return _sink(place) or _after_sink(place)
    if head == "let":
        return _constant(place)
    if head == "function":
        return _function(place)
    if head == "include":
        return _include(place)
    return _topology(place) if head == "topology" else None


def _constant(place: WrongPlace) -> Explanation | None:
    at = place.index - place.first
    if at == 1:
        return wrong(place, "a constant has a name", "write `let NAME = VALUE;`")
    name, equal = place.word_at(place.first + 1), place.tables.number["EQUAL"]
    if at == 2 and place.word == ":":
        finding = place.finding("VSC005", "the value of a constant follows a `=`", "write `=`", new="=")
        return finding, Repair(equal, consumes=True)
    if at == 2 and is_type_name(place.word):
        return wrong(place, "a constant has the type of its value", f"write {code(f'let {name} = VALUE;')}")
    if place.word == "," and "SEMICOLON" in place.expected:
        return wrong(place, "a statement declares one constant", "write `;`, and the next one with a `let` of its own")
    return None


def _function(place: WrongPlace) -> Explanation | None:
    if place.word == "=":
        return wrong(place, "a function is written in Python, in a module", _FUNCTION)
    if place.word in ("->", ":") and "RETURNS" in place.expected:
        return wrong(place, "the type of a function follows `returns`", "write `returns`", new="returns")
    if "FROM" in place.expected and place.is_word():
        return wrong(place, "where a function is follows `from`", "write `from 'MODULE:NAME'`")
    if "FROM" in place.expected and place.name == "SEMICOLON":
        return wrong(place, "the function does not say where it is", "write `from 'MODULE:NAME'` at its end")
    if place.expected == ["STRING"] and place.is_word():
        return wrong(place, "where a function is goes in quotation marks", "write `'MODULE:NAME'`")
    if place.word in (",", ")") and {"NAME", "QUOTED"} <= set(place.expected):
        return wrong(place, "a parameter is a name and a type", "write its name in front, as in `x int`")
    return None


def _include(place: WrongPlace) -> Explanation | None:
    if place.index == place.first + 1:
        help = "write `include 'FILE';`, with the path of the file from the folder of this one"
        return wrong(place, "the path of a file goes in quotation marks", help)
    if place.word == ",":
        return wrong(place, "a statement includes one file", "write `;`, and another `include` for the next one")
    return None


def _first(place: WrongPlace) -> Explanation | None:
    word, (second, third) = place.word.lower(), phrase(place, 2, 1)
    if word == "create" and second in _CREATED:
        kind = second if second in ("stream", "table", "global", "sink") else "stream"
        skipped = "create or replace" if (second, third) == ("or", "replace") else f"create {second}"
        help = (
            "leave out `create`" if kind == second else f"write `stream NAME` or `table NAME`, without {code(skipped)}"
        )
        return sql(place, f"{code(place.word)} does not begin a statement: a topology declares nodes", help)
    if word in _SQL:
        message = f"{code(place.word)} does not begin a statement: a topology declares nodes"
        return sql(place, message, _SQL[word])
    if place.word in operations():
        kind = "table" if place.word in _OF_TABLES else "stream"
        return wrong(
            place, f"{code(place.word)} has no name for its result", f"write {code(f'{kind} NAME = {place.word} ...')}"
        )
    if place.is_word() and second == ":" and word not in _OTHER_STATEMENTS:
        operation = place.word_at(place.index + 2)
        help = f"write {code(f'stream {place.word} = {operation} ...')}, or `table`"
        return wrong(place, f"the declaration of {code(place.word)} lacks its kind and a `=`", help)
    if place.is_word() and second == "=":
        start = f"stream {place.word} = {place.word_at(place.index + 2)} ..."
        return wrong(place, f"the declaration of {code(place.word)} lacks its kind", f"write {code(start)}, or `table`")
    if word in _OTHER_STATEMENTS:
        return sql(place, f"{code(place.word)} does not begin a statement", _OTHER_STATEMENTS[word])
    if place.word in (")", "]", ","):
        return say(
            place,
            "VSC023" if place.word != "," else "VSC005",
            f"no statement begins with {code(place.word)}",
            "remove it",
        )
    return None


def _head(place: WrongPlace) -> Explanation | None:
    """Before the ``(`` or the ``=`` of a node."""
    at, kind = name_index(place), place.word_at(place.first)
    if place.index == place.first + 1 and kind == "global":
        return wrong(place, "only a table can be global", "write `global table NAME (...)`")
    if place.index == at:
        if place.name == "STRING":
            name = place.word.strip("'")
            written = named(name)
            return wrong(place, "a name is not a string", f"write {code(written)}", new=written)
        if place.word == ":" and place.word_at(place.index + 1).isidentifier():
            name = place.word_at(place.index + 1)
            return wrong(place, f"the name follows {code(kind)} directly", f"write {code(f'{kind} {name}')}", new="")
        if place.word == "=" or place.word == "(":
            return wrong(
                place,
                f"the {code(kind)} has no name",
                f"write a name in front, as in {code(f'{kind} payments {place.word}')}",
            )
        return None
    if not {"EQUAL", "LPAR"} <= set(place.expected):
        return None
    name, word = declared(place), place.word.lower()
    if place.word in ("-", ".", "/"):
        return _name_with_signs(place, at)
    if place.word == ":":
        return wrong(place, "a `=` follows the name of a node", "write `=`", new="=")
    if word in ("not", "exists") and place.word_at(at).lower() == "if":
        return sql(place, "there is no `if not exists`", "leave it out: a topology declares each node once")
    if place.word in operations() or word in ("select", "as"):
        if word == "select":
            return None
        if word == "as" and phrase(place, 1, 1) != ("select",):
            return None
        if word == "as":
            return sql(
                place,
                "a node is computed by an operation, not by a query",
                f"write {code(f'{kind} {name} = map INPUT select ...')}",
            )
        return wrong(place, f"a `=` is missing after {code(name)}", f"write {code(f'{name} = {place.word} ...')}")
    if word in ("with", "from", "using"):
        return wrong(place, f"the columns of {code(name)} are missing",
                   f"declare them: {code(f'{kind} {name} (id bigint, ...) from ...')}")  # fmt: skip
    if place.is_word() and is_type_name(place.word_at(place.index + 1)):
        return wrong(place, f"a `(` is missing before the columns of {code(name)}", f"write {code(f'{name} (')}")
    if place.is_word() and place.word_at(place.index + 1) in ("=", "("):
        whole = f"{name}_{place.word}"
        return wrong(place, "a name is one word", f"write {code(whole)}, or {code(named(f'{name} {place.word}'))}")
    return None


def _name_with_signs(place: WrongPlace, first: int) -> Explanation | None:
    """``my-stream``, ``db.orders``: only names in backticks have signs."""
    last = first
    while place.word_at(last + 1) in ("-", ".", "/") and place.tokens.starts[last + 1] == place.tokens.ends[last]:
        last += 2
    whole = place.tokens.text[place.tokens.starts[first] : place.tokens.ends[min(last, len(place.tokens.kinds) - 1)]]
    if last == first or not whole:
        return None
    span = Span(place.tokens.starts[first], place.tokens.ends[last])
    plain = whole.replace("-", "_").replace(".", "_").replace("/", "_")
    message = f"{code(whole)} is not a name: names are made of letters, digits and `_`"
    return wrong(place, message, f"write {code(plain)}, or {code(named(whole))}", span)


def _sink(place: WrongPlace) -> Explanation | None:
    """Before the connector of a sink."""
    node, word = declared(place), place.word.lower()
    if place.index == place.first + 1 or (node == "to" and place.index == place.first + 2):
        return wrong(place, "the sink does not say what it writes", "write `sink NODE to CONNECTOR (...);`")
    if "TO" in place.expected:
        if node in ("dropped", "missed") and place.is_word() and place.word_at(place.index + 1) == "to":
            return wrong(
                place, f"an `of` is missing after {code(node)}", f"write {code(f'sink {node} of {place.word}')}"
            )
        if place.word in ("-", ".", "/"):
            return _name_with_signs(place, place.first + 1)
        if place.word == ",":
            return wrong(place, "a sink writes one node", f"write a sink for each: {code(f'sink {node} to ...;')}")
        if word in ("into", "as", "in", "onto", "->") or place.word == "=":
            start = place.word_at(place.index + 2) if place.word_at(place.index + 2) == "to" else ""
            if not start:
                return wrong(place, "a sink is written with `to`", f"write {code(f'sink {node} to')}", new="to")
        if word == "from" or place.word == "=":
            source = place.word_at(place.index + 1)
            return wrong(place, "a sink has no name of its own", f"write {code(f'sink {source} to ...')}")
        if place.is_word() and place.word_at(place.index + 1) == "(":
            return wrong(place, f"a `to` is missing before {code(place.word)}", f"write {code(f'to {place.word}')}")
    if place.word == "(" and place.word_at(place.index - 1) == "to":
        return wrong(place, "the connector has no name", "write it in front, as in `to files (...)`")
    if place.name == "STRING" and place.word_at(place.index - 1) == "to":
        help = f"write `files (path = {place.word}, format = 'json')`, or another connector"
        return wrong(place, "a sink writes to a connector, not to a path", help)
    return None


def _after_sink(place: WrongPlace) -> Explanation | None:
    """What follows the connector of a sink."""
    if place.word_at(place.first) != "sink" or place.expected != ["SEMICOLON"]:
        return None
    word = place.word.lower()
    if word == "where":
        node = declared(place)
        help = f"write the rows of a filter: {code(f'stream {node}_kept = filter {node} {body(place, place.index)};')}"
        return wrong(place, "a sink writes every row of its node", help)
    if word == "trigger":
        return wrong(place, "the trigger is not part of a topology", "run with `vsc run --trigger '5 seconds'`")
    if word in ("to", ","):
        return wrong(
            place,
            "a sink has one connector",
            f"write a second sink: {code(f'sink {declared(place)} {body(place, place.index)};')}",
        )
    if word == "of":
        node = place.word_at(place.index + 1)
        return wrong(
            place, "`of` follows `dropped` directly", f"write {code(f'sink {declared(place)} of {node} to ...')}"
        )
    if word in ("partition", "partitioned"):
        help = "write `partition_by = (COLUMN, ...)` among the options of the connector"
        return wrong(place, "folders are an option of the connector", help)
    if place.is_word():
        return wrong(
            place,
            f"nothing follows the connector of a sink, found {code(place.word)}",
            "write it as an option of the connector, or remove it",
        )
    return None


def _topology(place: WrongPlace) -> Explanation | None:
    if place.name == "STRING" and place.index == place.first + 1:
        name = place.word.strip("'")
        written = named(name)
        return wrong(place, "a name is not a string", f"write {code(written)}", new=written)
    if place.word in (";", "(") and place.index == place.first + 1:
        return wrong(place, "the topology has no name", "write `topology NAME;`")
    if place.word == ":" and place.index == place.first + 1:
        return wrong(place, "the name follows `topology` directly", "write `topology NAME;`")
    if place.word in ("-", ".", "/"):
        return _name_with_signs(place, place.first + 1)
    if place.index == place.first + 2 and (place.word == "with" or place.word_at(place.index + 1) == "="):
        name, written = declared(place), body(place, place.index + (place.word == "with"))
        written = written if written.startswith("(") else f"({written})"
        return wrong(place, "the options of a topology follow its name", f"write {code(f'topology {name} {written}')}")
    if place.is_word() and place.index == place.first + 2:
        name = text(place, place.first + 1, place.index)
        return wrong(place, "a name is one word", f"write `{name.replace(' ', '_')}`, or {code(named(name))}")
    return None
