"""Operations as SQL, Kafka Streams and other systems write them."""

from __future__ import annotations

from vsc.compiler.diagnostics.suggest import misspelt
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.habits import SORTING
from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.parser.surroundings import (
    body,
    closing,
    declared,
    open_bracket,
    operation,
    phrase,
    say,
    sql,
    text,
    wrong,
)
from vsc.compiler.parser.wording import form_of
from vsc.compiler.parser.wrong_clauses import CLAUSES
from vsc.grammar.forms import clauses_of, operations

__all__ = ["OTHER_JOINS", "form_at", "wrong_operation"]

_OWN_TIME = "write `join`: with a versioned table, a record finds the row of its own time"
OTHER_JOINS = {
    "inner": "write `join`: a join without a word before it is an inner join",
    "right": "swap the inputs and write `left join`; the left input of a join with a table is the stream",
    "full": "write `outer join`",
    "cross": "write `join ... on`: every join uses a key",
    "natural": "write `join ... on`: which columns make the key is always said",
    "asof": _OWN_TIME,
    "temporal": _OWN_TIME,
    "interval": _OWN_TIME,
    "lookup": "write `join`: a table is always looked up by its key",
    "semi": "write `join`, and select the columns of the left input alone",
    "anti": "write `left join`, and filter the rows whose columns of the table are null",
    "lateral": "write `explode STREAM by ARRAY as NAME` for the elements of an array",
    "global": "write `join`: which table is global is said by its declaration",
}
"""Joins of other systems, by the word before ``join``."""
_SYNONYMS = {
    **dict.fromkeys(("union", "unionall", "concat", "combine"), "merge"),
    **dict.fromkeys(("groupby", "group", "group_by", "count", "reduce", "sum", "fold", "agg", "avg",
                     "window"), "aggregate"),
    **dict.fromkeys(("flatmap", "flat_map", "flatmapvalues", "unnest", "flatten", "lateral"), "explode"),
    **dict.fromkeys(("repartition", "partition", "partition_by", "partitionby", "select_key", "selectkey", "keyby",
                     "key_by", "through", "rekeyby"), "rekey"),
    **dict.fromkeys(("dedup", "dedupe", "deduplicate", "drop_duplicates", "dropduplicates", "unique"), "distinct"),
    **dict.fromkeys(("where", "filter_not", "filternot"), "filter"),
    **dict.fromkeys(("project", "transform", "mapvalues", "map_values", "with_column", "withcolumn", "peek", "process"),
                    "map"),
    **dict.fromkeys(("totable", "table", "tabel"), "to_table"),
    **dict.fromkeys(("tostream", "stream", "changelog"), "to_stream"),
    **dict.fromkeys(("lookup", "enrich"), "join"),
    **dict.fromkeys(("cache", "persist", "store"), "materialize"),
}  # fmt: skip
"""Words for operations in other systems."""
_BEFORE_INPUT = ("stream", "table", "global", "versioned", "lookup", "temporal", "source", "lateral")
_AFTER_INPUT = ("join", "left", "right", "inner", "outer", "full", "cross", "union", "where", "filter", "map", "group",
                "select")  # fmt: skip
_NO_STAR = ("exclude", "without", "but", "replace", "rename", "minus", "omit")
_WINDOWS = ("tumble", "hop", "cumulate", "session", "tumbling", "hopping")
_NO_NESTING = "an operation takes the names of nodes, not another operation"


def form_at(place: WrongPlace) -> str | None:
    """The form of the statement's operation; None if there is none."""
    at = operation(place)
    return form_of(place.word_at(at)) if at is not None and place.word_at(at) in operations() else None


def wrong_operation(place: WrongPlace) -> Explanation | None:
    """A part of an operation that is written differently here."""
    at = operation(place)
    if at is None:
        return None
    if "FILTER" in place.expected:
        return _no_operation(place)
    if place.expected == ["JOIN"] and (place.word_at(place.index - 1), place.word) == ("outer", "left"):
        return wrong(place, "a join is `left` or `outer`, not both", "write one of them")
    if place.expected == ["JOIN"]:
        with_table = place.is_word() and place.word_at(place.index + 1).lower() == "with"
        return (
            wrong(place, "`left` belongs to `join`", f"write {code(f'left join {place.word} ...')}")
            if with_table
            else None
        )
    if place.is_word() and len(place.word) > 3 and misspelt(place.word, _words(place)) is not None:
        return None
    return _nested(place) or _input(place) or CLAUSES.get(_word(place, at), _nothing)(place) or _late(place)


def _words(place: WrongPlace) -> list[str]:
    """The keywords that are allowed at the place."""
    return [word for word, terminal in place.tables.words.items() if place.tables.names[terminal] in place.expected]


def _word(place: WrongPlace, at: int) -> str:
    return operations().get(place.word_at(at), "")


def _nothing(place: WrongPlace) -> Explanation | None:
    return None


def _no_operation(place: WrongPlace) -> Explanation | None:
    """After the ``=``, where an operation is expected."""
    word, following = place.word.lower(), place.word_at(place.index + 1)
    if word == "select":
        return wrong(place, "a node is computed by an operation, not by a query", "write `map INPUT select ...`")
    if word == "(":
        return wrong(place, "an operation stands without parentheses", "remove them")
    second = following.lower()
    if "join" in phrase(place, 2, 1) and word in OTHER_JOINS:
        return None
    if place.is_word() and second == "with":
        return wrong(place, "the word of the operation is missing", f"write {code(f'join {place.word} with ...')}")
    if place.is_word() and (second in _AFTER_INPUT or following in operations()):
        return wrong(place, "the operation stands before its input", f"write {code(_before(place, second))}")
    if word in _SYNONYMS:
        return sql(place, f"there is no operation {code(place.word)}", f"write {code(form_of(_SYNONYMS[word]))}")
    if place.is_word() and (following == ";" or not following):
        help = f"write {code(f'map {place.word} select *')}, or name the operation that computes it"
        return wrong(place, f"{code(place.word)} is not an operation", help)
    if place.is_word() and following == ".":
        return wrong(
            place,
            "an operation is not a method of its input",
            "write it first, as in `filter INPUT where ...`",
        )
    return None


def _before(place: WrongPlace, word: str) -> str:
    source = place.word
    if word in ("union",):
        return f"merge {source}, ..."
    if word in ("where", "filter"):
        return f"filter {source} where ..."
    if word in ("map", "select"):
        return f"map {source} select ..."
    if word == "group":
        return f"aggregate {source} group by ... select ..."
    if operations().get(word, "join") != "join":
        return f"{word} {source} ..."
    left = "left " if word == "left" else "outer " if word in ("outer", "full") else ""
    return f"{left}join {source} with ..."


def _nested(place: WrongPlace) -> Explanation | None:
    """An operation or a query in parentheses, where the name of a node is expected."""
    if place.word != "(" or {"NAME", "QUOTED"} != set(place.expected):
        return None
    inner, last = place.word_at(place.index + 1).lower(), closing(place, place.index)
    span = place.span.to(place.tokens.span(last))
    if inner in operations() or inner in ("select", "with"):
        operation = text(place, place.index + 1, last - 1)
        help = "give the inner one a statement of its own, and write its name here"
        if inner in operations():
            help = f"write {code(f'stream NAME = {operation};')} before it, and `NAME` here"
        return say(place, "VSC025", _NO_NESTING, help, span)
    inside, before = text(place, place.index + 1, last - 1), place.word_at(place.index - 1)
    if before == "window":
        return wrong(place, "a window has a kind", f"write {code(f'window tumbling ({inside})')}")
    if "," in inside and before in operations() and before != "merge":
        return wrong(place, "an operation is not a call", f"write {code(form_of(before))}", span)
    glued = place.tokens.ends[place.index - 1] == place.span.start
    new = f" {inside}" if glued else inside
    return wrong(place, "inputs stand without parentheses", f"write {code(inside)}", span, new)


def _input(place: WrongPlace) -> Explanation | None:
    """Where an alias or the next word could follow an input."""
    before = place.word_at(place.index - 1).lower()
    if before in _BEFORE_INPUT and "AS" in place.expected and place.is_word() and place.word not in place.tables.words:
        span = place.tokens.span(place.index - 1)
        return wrong(place, "an input is its name alone", f"write {code(place.word)}", span, "")
    if place.word == "(" and "AS" in place.expected and "OR" not in place.expected and before != "on":
        return _called(place)
    if before == "from" and place.is_word() and place.word_at(place.index - 2) in operations():
        word = place.word_at(place.index - 2)
        return wrong(place, f"the input follows {code(word)} directly", f"write {code(f'{word} {place.word}')}",
                   place.tokens.span(place.index - 1), "")  # fmt: skip
    if place.name == "STRING" and {"NAME", "QUOTED"} == set(place.expected):
        return wrong(place, "a name is not a string", f"write {code(place.word.strip(chr(39)))}")
    return None


def _called(place: WrongPlace) -> Explanation:
    """``table(s)`` or ``tumble(s, at, 5 minutes)`` as an input."""
    word, inside = place.word_at(place.index - 1), text(place, place.index + 1, closing(place, place.index) - 1)
    span, source = place.tokens.span(place.index - 1), place.word_at(place.index + 1)
    if word.lower() in _WINDOWS or "tumble" in inside or "hop" in inside:
        help = f"write {code('... group by ... window tumbling (size = 5 minutes)')}, which follows the input"
        return wrong(place, "an aggregate has its window behind its groups", help, span)
    if word.lower() in _BEFORE_INPUT:
        return wrong(place, "an input is its name alone", f"write {code(source)}", span)
    return wrong(place, "an input is the name of a node, not a call", f"the form is {code(form_at(place) or word)}")


def _late(place: WrongPlace) -> Explanation | None:
    """Clauses after the ``select`` of an operation."""
    if place.expected == ["LPAR"] and place.word_at(place.index - 1) == "except":
        columns = body(place, place.index, "materialize", ",")
        return wrong(place, "the columns after `except` stand in parentheses", f"write {code(f'except ({columns})')}")
    if "SELECT" in place.expected and place.name == "SEMICOLON":
        return wrong(place, "a `select` is missing", f"write what the result holds: {code(_select(place))}")
    if not {"SEMICOLON", "MATERIALIZE"} & set(place.expected) or open_bracket(place) is not None:
        return None
    word, following = place.word.lower(), place.word_at(place.index + 1)
    if word == "group" and following.lower() == "by":
        source = place.word_at((operation(place) or 0) + 1)
        return sql(
            place,
            "`group by` belongs to an aggregate",
            f"write {code(f'aggregate {source} group by {body(place, place.index + 2)} select ...')}",
        )
    if word == "window":
        return wrong(
            place,
            "the window comes before `select`",
            f"write `group by ... {body(place, place.index, 'emit')} select ...`",
        )
    if word == "emit":
        return wrong(
            place,
            "`emit` comes after the window, before `select`",
            f"write {code(f'window ... (...) {text(place, place.index, place.index + 1)} select ...')}",
        )
    clauses = [clause.word for clause in clauses_of("join")]
    if _word(place, operation(place) or 0) == "join" and word in clauses[: clauses.index("select")]:
        return wrong(
            place, f"{code(word)} comes before `select`", f"write {code(f'{body(place, place.index)} select ...')}"
        )
    if word == "into":
        return wrong(
            place, "rows are written by a sink", f"write {code(f'sink {declared(place)} to CONNECTOR (...);')}"
        )
    if word == "by" and place.word_at(place.index - 1) == "order":
        return sql(place, "there is no `order by`", SORTING, place.tokens.span(place.index - 1).to(place.span))
    if "EXCEPT" in place.expected and place.is_word() and word not in _NO_STAR:
        return say(place, "VSC022", "a comma is missing between two columns", f"write `,` before {code(place.word)}")
    if place.is_word() and following == "as" and place.word_at(place.index - 2) == "as":
        return say(place, "VSC022", "a comma is missing between two columns", f"write `,` before {code(place.word)}")
    if word in ("-", ".") and place.word_at(place.index - 2) == "as":
        return _name_of_column(place, f"{place.word_at(place.index - 1)}{place.word}{following}")
    if place.is_word() and place.word_at(place.index - 2) == "as" and place.word not in place.tables.words:
        return _name_of_column(place, f"{place.word_at(place.index - 1)} {place.word}")
    if word == "except" and place.word_at(place.index - 1) == "*":
        return None
    if word in _NO_STAR and place.word_at(place.index - 1) == "*":
        help = "write `* except (a, b)` to leave columns out, and list changed ones: `* except (n), n + 1 as n`"
        return sql(place, f"there is no {code(f'* {place.word}')}", help)
    return None


def _select(place: WrongPlace) -> str:
    clauses = clauses_of(place.word_at(operation(place) or 0))
    return next((clause.form for clause in clauses if clause.word == "select"), "select ...")


def _name_of_column(place: WrongPlace, whole: str) -> Explanation:
    plain = "".join(sign if sign.isalnum() else "_" for sign in whole)
    message = f"{code(whole)} is not a name: names are made of letters, digits and `_`"
    return wrong(place, message, f"write {code(plain)}, or {code(named(whole))}")
