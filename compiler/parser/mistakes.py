"""Explains a token that is not allowed at its place, and says how to continue reading.

Most such tokens are SQL habits or typing errors. Each of these gets a sentence that shows the right form, and if
possible a repair, so that the rest of the statement can still be checked. For all others the finding says, in the
language's own words, what was expected and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.compiler.diagnostics.wording import code, string
from vsc.compiler.parser.habits import sql_clause
from vsc.compiler.parser.lexer import Tokens
from vsc.compiler.parser.machine import Failure, Machine
from vsc.compiler.parser.place import Explanation, Place, Repair
from vsc.compiler.parser.units import duration_mistake
from vsc.compiler.parser.wording import found, one_of
from vsc.compiler.source import Span

__all__ = ["broken_off", "explain", "starts_statement"]

_SQL_STATEMENTS = frozenset(
    (
        "select",
        "insert",
        "create",
        "with",
        "update",
        "delete",
        "drop",
        "alter",
        "from",
        "use",
        "set",
        "describe",
        "show",
    )
)
_COMPARISONS = ("EQUAL", "LESSTHAN", "MORETHAN", "IS", "IN", "BETWEEN", "LIKE", "NOT")
_COMPARISON_SIGNS = frozenset(["=", "<>", "!=", "<", "<=", ">", ">="])
_NO_PATTERNS = "there are no regular expressions: use `like`, `starts_with`, `ends_with` or `contains`"
_OTHER_OPERATORS = {
    "ilike": "compare in lower case: `lower(x) like 'a%'`",
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "similar", "glob", "matches"), _NO_PATTERNS),
    "isnull": "write `x is null`",
    "notnull": "write `x is not null`",
    "div": "write `floor(x / y)`, or `cast(x / y as bigint)`",
    "mod": "write `x % y`",
    "xor": "write `a <> b`",
}
"""Operators of SQL's dialects. Some are similar to one of the language that means something else."""
_OTHER_JOINS = {
    "inner": "write `join`: a join without a word before it is an inner join",
    "right": "swap the inputs and write `left join`; the left input of a join with a table is the stream",
    "full": "write `outer join`",
    "cross": "there is no cross join: every join uses the key",
    "asof": "write `join`: with a versioned table, a record finds the row of its own time",
}


_COLUMN = re.compile(r"[\w.`]+")


def starts_statement(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` is the first on its line and clearly begins a statement."""
    start = tokens.starts[index]
    if tokens.text[tokens.text.rfind("\n", 0, start) + 1 : start].strip():
        return False
    words = [tokens.word(i) for i in range(index, min(index + 3, len(tokens.kinds)))]
    words += [""] * (3 - len(words))
    if words[0] in ("stream", "table"):
        return words[2] in ("=", "(")
    return (
        words[:2] == ["global", "table"]
        or (words[0] == "sink" and words[2] in ("to", "of"))
        or (words[0] == "topology" and words[2] == ";")
    )


def broken_off(tokens: Tokens, first: int, index: int) -> Explanation | None:
    """Explains an unexpected token right after a word that begins a new statement; None if there is no such word.

    The statement at `first` is then incomplete. The word that begins the next statement was read as a name, since most
    words can be names.
    """
    if index - 1 <= first or not starts_statement(tokens, index - 1):
        return None
    if index - 2 in tokens.damaged:
        return None, None
    end = tokens.ends[index - 2]
    return Finding(
        "VSC005", Span(end, end), "the statement is not complete", (), "complete it, and end it with `;`"
    ), None


def explain(machine: Machine, failure: Failure, first: int) -> Explanation:
    """The finding for a token that is not allowed here, and the repair with which to continue.

    The finding is None if the token was already reported. The repair is None if the statement cannot be read further.
    `first` is the first token of the statement.
    """
    place = Place(machine, failure, first)
    if place.damaged():
        return None, None
    for mistake in _MISTAKES:
        explanation = mistake(place)
        if explanation is not None:
            return explanation
    return _unexpected(place)


def _upper_case(place: Place) -> Explanation | None:
    """A keyword that is not in lower case, here or just before (where it was read as a name)."""
    lower = place.word.lower()
    keyword = place.tables.words.get(lower)
    if keyword is not None and lower != place.word and place.tables.names[keyword] in place.expected:
        finding = place.finding("VSC007", f"keywords are written in lower case: `{place.word}`", f"write `{lower}`",
                                new=lower)  # fmt: skip
        return finding, Repair(keyword, consumes=True)
    before = place.word_at(place.index - 1)
    keyword = place.tables.words.get(before.lower())
    if keyword in place.tables.reserved and before != before.lower():
        span = place.tokens.span(place.index - 1)
        return place.finding(
            "VSC007",
            f"keywords are written in lower case: `{before}`",
            f"write `{before.lower()}`",
            span,
            before.lower(),
        ), None
    return None


def _sql_statement(place: Place) -> Explanation | None:
    if place.index != place.first or place.word.lower() not in _SQL_STATEMENTS:
        return None
    help = "write `stream NAME = map INPUT select ...;`, and `sink NAME to CONNECTOR (...);` to write it out"
    if place.word_at(place.index + 1).lower() in ("stream", "table", "global"):
        help = f"leave out `{place.word}`"
    return place.finding("VSC010", f"`{place.word}` does not begin a statement: a topology declares nodes", help), None


def _chained_comparison(place: Place) -> Explanation | None:
    if place.name not in _COMPARISONS and place.word not in _COMPARISON_SIGNS:
        return None
    if "OR" not in place.expected or "EQUAL" in place.expected:
        return None
    help = "write `a < b and b < c`, or put one of the comparisons in parentheses"
    return place.finding("VSC019", "comparisons do not chain", help), None


def _missing_semicolon(place: Place) -> Explanation | None:
    if "SEMICOLON" not in place.expected or place.index == place.first:
        return None
    if place.name != "$END" and not starts_statement(place.tokens, place.index):
        return None
    end = place.tokens.ends[place.index - 1]
    finding = place.finding("VSC006", "the `;` at the end of the statement is missing", "add `;`", Span(end, end), ";")
    return finding, Repair(place.tables.number["SEMICOLON"], consumes=False)


def _unquoted_value(place: Place) -> Explanation | None:
    if place.before != "EQUAL" or not place.is_word() or "STRING" not in place.expected or "NAME" in place.expected:
        return None
    text = place.word.strip("`")
    near = nearest(text, ("true", "false", "null"))
    new = near if near and text.lower() == near else string(text)
    sure = None if text.lower() in ("yes", "no", "on", "off") else new
    place.tokens.damaged.add(place.index)
    message = "the value of an option is a literal: a string goes in quotation marks"
    finding = place.finding("VSC005", message, f"write `{new}`", new=sure)
    return finding, Repair(place.tables.number["STRING"], consumes=True)


def _reserved_name(place: Place) -> Explanation | None:
    if place.terminal not in place.tables.reserved or "NAME" not in place.expected:
        return None
    if "LPAR" in place.expected and place.word_at(place.index + 1) not in (",", ")", ";", "."):
        return None  # where an expression is expected; a part of it is more likely missing
    message = f"`{place.word}` is a reserved word"
    finding = place.finding("VSC017", message, f"to use it as a name, put it in backticks: `` `{place.word}` ``")
    return finding, Repair(place.tables.name, consumes=True)


def _misspelled(place: Place) -> Explanation | None:
    shortest = 4 if place.terminal in place.tables.reserved else 3  # `end` is not a misspelled `and`
    if not place.is_word() or len(place.word) < shortest or place.word.startswith("`"):
        return None
    if "OR" in place.expected and (help := _OTHER_OPERATORS.get(place.word.lower())) is not None:
        return place.finding("VSC010", f"there is no operator `{place.word}`", help), None
    words = {place.tables.texts[place.tables.number[name]]: name for name in place.expected
             if name in place.tables.number and name.lower() in place.tables.words}  # fmt: skip
    near = nearest(place.word, words)
    if near is None or ("AS" in place.expected and len(near) < 4):  # more likely a new name whose `as` is missing
        return None
    finding = place.finding("VSC005", f"{one_of(place.expected, place.tables)}, found {found(place.name, place.word)}",
                            f"did you mean `{near}`?", new=misspelt(place.word, words))  # fmt: skip
    return finding, Repair(place.tables.number[words[near]], consumes=True)


def _window(place: Place) -> Explanation | None:
    """`emit` without a window, or a window right after `group by`, with no expression to group by."""
    if "WINDOW" not in place.expected or "AS" not in place.expected:
        return None
    if place.word == "emit":
        help = "write the window in front of it, as in `window tumbling (size = 1 hour) emit final`, or remove it"
        return place.finding("VSC005", "`emit` needs a window", help), None
    if place.word_at(place.index - 1) == "window" and place.word_at(place.index + 1) == "(":
        span, help = place.tokens.span(place.index - 1), "write it in front, as in `group by account window ...`"
        return place.finding("VSC005", "`group by` needs an expression", help, span), None
    return None


def _missing_as(place: Place) -> Explanation | None:
    if "AS" not in place.expected or not place.is_word() or place.word in place.tables.words:
        return None
    several = "COMMA" in place.expected
    alias = place.tables.number["AS"]
    place.machine.take(alias, place.index, inserted=True)
    source = place.machine.last(2)
    written = place.tokens.text[source.start : source.end]
    help = f"write {code(f'{written} as {place.word}')}"
    if len(written) > 60 or "\n" in written:
        help = f"write {code(f'as {place.word}')}"
    rival = None
    if several and _COLUMN.fullmatch(written):
        help += f" for another name, or {code(f'{written}, {place.word}')} for two columns"
        rival = f", {place.word}"
    fix = Fix(place.span, f"as {place.word}", rival)
    what = "`as`" if rival is None else "`as` or a comma"
    finding = Finding("VSC009", place.span, f"{what} is missing before `{place.word}`", (), help, fix)
    return finding, Repair(None, consumes=False)


def _other_dialect(place: Place) -> Explanation | None:
    """Forms of SQL and other dialects that this language writes differently."""
    if "JOIN" in place.expected and place.word.lower() in _OTHER_JOINS:
        help = _OTHER_JOINS[place.word.lower()]
    elif place.word.lower() == "select" and "FILTER" in place.expected:
        help = "write `map INPUT select ...`"
    elif place.word.lower() == "from" and {"COMMA", "SEMICOLON"} <= set(place.expected):
        help = "write the input before `select`, as in `map INPUT select ...`"
    elif place.name == "WHERE" and {"SEMICOLON", "SELECT"} & set(place.expected):
        help = "filter in a separate statement, as in `stream NAME = filter INPUT where ...;`"
    elif _as_of(place):
        help = "leave it out: a join with a versioned table finds the row that was valid at the record's own time"
    elif place.expected == ["EQUAL"]:
        help = "write `=`" if place.before != "STRING" else "an option has a name, as in `path = '...'`"
    elif place.word == "outer" and place.word_at(place.index - 1) == "left":
        help = "write `left join`"
    elif place.word == ":" and place.word_at(place.index + 1) == ":":
        help = "write `cast(... as TYPE)`"
    elif "COLON" in place.expected and place.is_word():
        help = f"write {code(f'{place.word_at(place.index - 1)}: {place.word}')}"
    elif place.name == "AS" and "EQUAL" in place.expected and "OR" not in place.expected:
        help = "write `=`"
    elif place.name in ("RPAR", "COMMA") and "AS" in place.expected and "COMMA" not in place.expected:
        help = "write `cast(... as TYPE)`"
    elif place.name == "DURATION" and place.word_at(place.index - 1) == "interval":
        help = f"write `{place.word}`"
    elif place.name == "SEMICOLON" and place.expected == ["LPAR"]:
        help = f"write `{place.word_at(place.index - 1)} ()`"
    elif place.name == "STRING" and place.word_at(place.index - 1) in ("date", "timestamp", "interval"):
        help = f"write `cast({place.word} as date)`, `to_timestamp({place.word})`, or a duration such as `1 day`"
    else:
        return None
    return _unexpected(place, help, _edit(place))


def _edit(place: Place) -> Fix | None:
    """What certainly has to change at a form of another dialect."""
    starts, end = place.tokens.starts, place.tokens.ends[place.index - 1]
    word, before, following = place.word.lower(), place.word_at(place.index - 1), place.word_at(place.index + 1).lower()
    joins = "JOIN" in place.expected
    if (joins and (word, following) in (("inner", "join"), ("full", "outer"))) or (before, word) == ("left", "outer"):
        return Fix(Span(place.span.start, starts[place.index + 1]), "")
    if joins and (word, following) == ("full", "join"):
        return Fix(place.span, "outer")
    if place.name == "DURATION" and before == "interval":
        return Fix(Span(starts[place.index - 1], place.span.start), "")
    if place.name == "SEMICOLON" and place.expected == ["LPAR"]:
        return Fix(Span(end, end), " ()")
    if "COLON" in place.expected and place.is_word():
        return Fix(Span(end, end), ":")
    if place.name == "AS" and "EQUAL" in place.expected and "OR" not in place.expected:
        return Fix(place.span, "=")
    return None


def _as_of(place: Place) -> bool:
    """Whether this is ``join ... as of TIME`` or SQL's ``for system_time as of TIME``."""
    if place.word.lower() == "for":
        return place.word_at(place.index + 1).lower() == "system_time"
    return "GRACE" in place.expected and [place.word_at(place.index - i) for i in (2, 1)] == ["as", "of"]


def _unexpected(place: Place, help: str | None = None, fix: Fix | None = None) -> Explanation:
    if place.index == place.first and "TOPOLOGY" in place.expected:
        expected = "a statement begins with `topology`, `stream`, `table`, `global table` or `sink`"
    else:
        expected = one_of(place.expected, place.tables)
    if help is None and place.terminal in place.tables.reserved and "NAME" in place.expected:
        help = f"as a name, `{place.word}` needs backticks"
    message = f"{expected}, found {found(place.name, place.word)}"
    return Finding("VSC005", place.span, message, (), help, fix), None


_MISTAKES: tuple[Callable[[Place], Explanation | None], ...] = (
    _upper_case,
    _sql_statement,
    _chained_comparison,
    _missing_semicolon,
    duration_mistake,
    _unquoted_value,
    sql_clause,
    _other_dialect,
    _reserved_name,
    _window,
    _misspelled,
    _missing_as,
)
