"""What fills the holes in the texts of rows of mistakes, and the places that they name."""

from __future__ import annotations

import re
from collections.abc import Callable

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.wording import code, named, string
from vsc.compiler.parser import rebuilt
from vsc.compiler.parser.place import WrongPlace
from vsc.compiler.parser.queries import as_operations
from vsc.compiler.parser.row_words import MAIN_OPTION
from vsc.compiler.parser.surroundings import (
    before_comma,
    body,
    bracket_end,
    closing,
    declared,
    input_of,
    name_index,
    open_bracket,
    operation,
    text,
)
from vsc.compiler.parser.wording import form_of, found, one_of
from vsc.compiler.source import Span
from vsc.grammar.forms import clause_words, clauses_of, operations
from vsc.plan.connectors import facts_of

__all__ = [
    "HOLES",
    "SPANS",
    "bracketed",
    "clauses_before",
    "later_clause",
    "name_with_signs",
    "optional_clauses",
    "own_option",
]  # fmt: skip

_OWN_OPTIONS = {
    "bootstrap.servers": "bootstrap_servers", "bootstrap-servers": "bootstrap_servers", "group.id": "group",
    "auto.offset.reset": "starting_offsets", "scan.startup.mode": "starting_offsets", "key.format": "key_format",
    "value.format": "format", "rows-per-second": "rows_per_second", "time-zone": "time_zone",
    "schema.registry.url": "schema", "starting-offsets": "starting_offsets",
}  # fmt: skip
"""Options of other systems that are vsc's own under another name."""


def clauses_before(place: WrongPlace) -> list[str]:
    """The first words of the clauses in front of the place, but those inside others: ``correct ... within``."""
    at = operation(place) or place.first
    own = {clause.word: re.findall(r"[a-z_]+", clause.form) for clause in clauses_of(place.word_at(at).lower())}
    found: list[str] = []
    for word in map(place.word_at, range(at + 1, place.index)):
        if word in own and not (found and word in own[found[-1]]):
            found.append(word)
    return found


def optional_clauses(place: WrongPlace) -> dict[str, str]:
    """The clauses of the statement's operation that can be left out, in their order, by their first words."""
    found = clauses_of(place.word_at(operation(place) or place.first))
    return {clause.word: clause.words for clause in found if clause.optional}


def later_clause(place: WrongPlace) -> str:
    """A clause that stands in front of the place, though it comes after the one that begins there."""
    order, words = list(optional_clauses(place)), clauses_before(place)
    after = order[order.index(place.word) + 1 :] if place.word in order else []
    return next((one for one in after if one in words), "")


def bracketed(place: WrongPlace, index: int) -> str:
    """The text from the parenthesis at `index` to what closes it."""
    return text(place, index, closing(place, index))


def _inside(place: WrongPlace, index: int) -> str:
    return text(place, index + 1, closing(place, index) - 1)


def _to_close(place: WrongPlace, index: int) -> str:
    return text(place, index, closing(place, open_bracket(place) or place.first) - 1)


def _from_open(place: WrongPlace, first: int, last: int) -> str:
    """From the token `first` behind the open bracket to the token `last`."""
    return text(place, (open_bracket(place) or place.first) + first, last)


def _in_brackets(place: WrongPlace, index: int) -> str:
    return text(place, index + 1, bracket_end(place) - 1)


def _main_option(place: WrongPlace, index: int, given: str = "") -> str:
    """The main option of what owns the list; of the word before the place if `given` is -1."""
    opened = open_bracket(place)
    owner = place.word_at(index - 1)
    if given != "-1" and opened is not None:
        owner = place.word_at(opened - (2 if opened == place.first + 2 else 1))  # of `topology NAME (`, the first word
    missing = "size" if given == "-1" else given or ("name" if place.word == "=" else "NAME")
    return MAIN_OPTION.get(owner, missing)


def _dotted(place: WrongPlace) -> Span:
    """``kafka.acks``: the name of an option of Spark or Kafka, without its quotes."""
    last = place.index + 1
    while place.word_at(last + 1) in (".", "-"):
        last += 2
    return place.tokens.span(place.index - 1).to(place.tokens.span(last))


def _slice(place: WrongPlace, span: Span) -> str:
    return place.tokens.text[span.start : span.end]


def own_option(place: WrongPlace) -> str:
    """What vsc calls the option whose name has dots at the place; empty if it has none such."""
    name = _slice(place, _dotted(place)).removeprefix("kafka.").removeprefix("properties.")
    return _OWN_OPTIONS.get(name, "")


def _client(place: WrongPlace) -> tuple[str, str]:
    """The prefix of its options, and the system that reads them: Spark, or what the connector asks."""
    opened = open_bracket(place)
    return (None if opened is None else facts_of(place.word_at(opened - 1)).client) or ("", "Spark")


def _client_option(place: WrongPlace) -> str:
    name, prefix = _slice(place, _dotted(place)), _client(place)[0]
    return name if name.startswith((prefix, "spark.", "fs.")) else f"{prefix}{name}"


def _run(place: WrongPlace) -> Span:
    """The text from the place to the next blank, comma, quote or bracket."""
    whole, end = place.tokens.text, place.span.start
    while end < len(whole) and not whole[end].isspace() and whole[end] not in ",();'`":
        end += 1
    return Span(place.span.start, end)


def _interval(place: WrongPlace, index: int) -> str:
    """``interval '5' minute``, ``interval '5 minutes'`` as a duration."""
    value, unit = place.word_at(index + 1).strip("'"), place.word_at(index + 2).lower()
    if " " in value:
        return value
    return f"{value} {unit}" if unit.isidentifier() else f"{value} minutes"


def name_with_signs(place: WrongPlace) -> tuple[int, Span]:
    """The last token of a name with signs, ``my-stream``, and where it stands."""
    first = last = name_index(place)
    while place.word_at(last + 1) in ("-", ".", "/") and place.tokens.starts[last + 1] == place.tokens.ends[last]:
        last += 2
    last = min(last, len(place.tokens.kinds) - 1)
    return last, place.tokens.span(first).to(place.tokens.span(last))


def _withname_with_signs(place: WrongPlace) -> str:
    return _slice(place, name_with_signs(place)[1])


def _lambda(place: WrongPlace) -> tuple[str, Span]:
    """``lambda x, i:`` as ``(x, i) ->``, and where it stands."""
    last = place.index
    while place.word_at(last) not in (":", ";", ""):
        last += 1
    names = text(place, place.index, last - 1)
    span = place.tokens.span(place.index - 1).to(place.tokens.span(last))
    return f"({names}) ->" if "," in names else f"{names} ->", span


def _length(place: WrongPlace) -> str:
    """The length of a window somewhere behind the place."""
    words = (place.word_at(place.index + n) for n in range(1, 8))
    return next((word for word in words if " " in word), "1 hour").strip("'")


def _value_of_in(place: WrongPlace) -> str:
    value = place.word_at(place.index - 2)
    return place.word_at(place.index - 3) if value.lower() == "not" else value


def _select(place: WrongPlace) -> str:
    found = clauses_of(place.word_at(operation(place) or place.first))
    return next((clause.form for clause in found if clause.word == "select"), "select ...")


def _body(place: WrongPlace, index: int, *ends: str) -> str:
    return body(place, index, *("," if end == "comma" else end for end in ends))


def _in_parentheses(place: WrongPlace, index: int) -> str:
    written = body(place, index)
    return written if written.startswith("(") else f"({written})"


def _quoted(place: WrongPlace, *offsets: str, between: str = "") -> str:
    return code(named(between.join(place.word_at(place.index + int(offset)) for offset in offsets)))


HOLES: dict[str, Callable[..., str]] = {
    "word": lambda place, index: place.word,
    "lower": lambda place, index: place.word_at(index).lower(),
    "next_lower": lambda place, index: place.word_at(index + 1).lower(),
    "plain": lambda place, index: place.word_at(index).strip("'"),
    "named": lambda place, index: named(place.word_at(index).strip("'")),
    "quoted_word": lambda place, index: code(named(place.word.strip("'"))),
    "quoted": lambda place, index, *offsets: _quoted(place, *offsets),
    "quoted_words": lambda place, index, *offsets: _quoted(place, *offsets, between=" "),
    "variable": lambda place, index: f"${{{place.word_at(index)}}}",
    "type": lambda place, index: place.word_at(index) or "TYPE",
    "head": lambda place, index: place.word_at(place.first).lower(),
    "declared": lambda place, index: declared(place),
    "input": lambda place, index: input_of(place),
    "op": lambda place, index: operations()[place.word_at(operation(place) or place.first)],
    "body": _body,
    "inside": _inside,
    "bracketed": bracketed,
    "in_brackets": _in_brackets,
    "in_parentheses": _in_parentheses,
    "behind": lambda place, index: place.word_at(closing(place, index) + 1),
    "to_close": _to_close,
    "argument": lambda place, index: _to_close(place, index + (place.word.lower() in ("from", "in", "for"))),
    "owner": lambda place, index: place.word_at((open_bracket(place) or 0) - 1),
    "part_word": lambda place, index: place.word_at((open_bracket(place) or 0) + 1),
    "part": lambda place, index: place.word_at((open_bracket(place) or 0) + 1).lower(),
    "before_comma": lambda place, index: before_comma(place),
    "distinct_arguments": lambda place, index: _from_open(place, 2, closing(place, open_bracket(place) or 0) - 1),
    "key_columns": lambda place, index: _from_open(place, 1, closing(place, open_bracket(place) or 0) - 1),
    "sizes": lambda place, index: place.word.replace(".", ", "),
    "store_kind": lambda place, index: "unversioned" if "expire" in bracketed(place, index) else "versioned",
    "before_input": lambda place, index: rebuilt.operation_before_input(place),
    "form": lambda place, index, *words: form_of(words[0] if words else place.word_at(index)),
    "form_here": lambda place, index: form_of(place.word_at(operation(place) or place.first)),
    "select": lambda place, index: _select(place),
    "query": lambda place, index: as_operations(place, index),
    "groups": lambda place, index: rebuilt.groups(place),
    "length": lambda place, index: _length(place),
    "clause": lambda place, index: optional_clauses(place)[place.word.lower()],
    "later_clause": lambda place, index: optional_clauses(place)[later_clause(place)],
    "main_option": _main_option,
    "options": lambda place, index: body(place, index, "emit", *clause_words()),
    "dotted": lambda place, index: _slice(place, _dotted(place)),
    "own_option": lambda place, index: own_option(place),
    "client": lambda place, index: _client(place)[1],
    "client_option": lambda place, index: _client_option(place),
    "run": lambda place, index: _slice(place, _run(place)),
    "quoted_run": lambda place, index: string(_slice(place, _run(place))),
    "iso": lambda place, index: iso_duration(place.word) or "",
    "interval": _interval,
    "having": lambda place, index: rebuilt.having(place),
    "over": lambda place, index: rebuilt.over(place),
    "filtered_call": lambda place, index: rebuilt.filtered_call(place),
    "rekey": lambda place, index: rebuilt.rekey(place),
    "decimal": lambda place, index: f"{place.word_at(index - 1).replace('.', '')}.{place.word_at(index + 1)}",
    "lambda": lambda place, index: _lambda(place)[0],
    "name_with_signs": lambda place, index: _withname_with_signs(place),
    "name_without_signs": lambda place, index: re.sub("[-./]", "_", _withname_with_signs(place)),
    "quoted_name_with_signs": lambda place, index: code(named(_withname_with_signs(place))),
    "part_of_time": lambda place, index: rebuilt.part_of_time(place),
    "as_function": lambda place, index: rebuilt.as_function(place),
    "value_of_in": lambda place, index: _value_of_in(place),
    "expected": lambda place, index: one_of(place.expected, place.tables),
    "found": lambda place, index: found(place.name, place.word),
}
"""What fills a hole: the place, the token that the hole means, and what it is given."""


def _before_place(place: WrongPlace) -> Span:
    """Behind the token before the place."""
    end = place.tokens.ends[place.index - 1]
    return Span(end, end)


def _primary_key(place: WrongPlace) -> Span:
    opened = open_bracket(place) or place.first
    return place.tokens.span(opened - 2).to(place.tokens.span(closing(place, opened)))


SPANS: dict[str, Callable[[WrongPlace], Span]] = {
    "behind_last": _before_place,
    "comma": lambda place: Span(place.span.start - 1, place.span.start - 1),
    "with_blank": lambda place: Span(place.span.start, place.tokens.starts[place.index + 1]),
    "last_with_blank": lambda place: Span(place.tokens.starts[place.index - 1], place.span.start),
    "dotted": _dotted,
    "run": _run,
    "signs": lambda place: name_with_signs(place)[1],
    "lambda": lambda place: _lambda(place)[1],
    "primary_key": _primary_key,
    "in_brackets": lambda place: place.tokens.span(place.index - 1).to(place.tokens.span(bracket_end(place))),
}
"""Places that are not whole tokens, or have to be looked for."""
