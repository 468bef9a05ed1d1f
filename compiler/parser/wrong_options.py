"""Options and lists of them that are not written ``(name = value, ...)``."""

from __future__ import annotations

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.surroundings import body, open_bracket, say, text, wrong
from vsc.compiler.source import Span
from vsc.grammar.forms import clause_words
from vsc.plan.connectors import FACTS, facts_of

__all__ = ["wrong_options"]

_OWN = {
    "bootstrap.servers": "bootstrap_servers", "bootstrap-servers": "bootstrap_servers", "group.id": "group",
    "auto.offset.reset": "starting_offsets", "scan.startup.mode": "starting_offsets", "key.format": "key_format",
    "value.format": "format", "rows-per-second": "rows_per_second", "time-zone": "time_zone",
    "schema.registry.url": "schema", "starting-offsets": "starting_offsets",
}  # fmt: skip
"""Options of other systems that are vsc's own under another name."""
_FIRST = {"topology": "clock", "tumbling": "size", "hopping": "size", "sliding": "difference", "session": "gap",
          "versioned": "retention", "unversioned": "expire",
          **{kind: facts.main for kind, facts in FACTS.items() if facts.main}}  # fmt: skip
"""The option that a value without a name most likely is, by what the options belong to."""
_LITERALS = ("STRING", "DURATION", "INTEGER", "DECIMAL", "VARIABLE")


def wrong_options(place: WrongPlace) -> Explanation | None:
    """An option without parentheses, name, ``=`` or value."""
    return _without_parentheses(place) or _name(place) or _value(place)


def _without_parentheses(place: WrongPlace) -> Explanation | None:
    if place.expected == ["LPAR"] and place.word == "select" and place.word_at(place.index - 2) == "window":
        kind = place.word_at(place.index - 1)
        help = f"write `{kind} ({_FIRST.get(kind, 'size')} = 1 hour)`"
        return wrong(place, f"the options of {code(kind)} are missing", help)
    if place.expected != ["LPAR"] or not (place.is_word() or place.name in ("DURATION", "LSQB", "STRING")):
        return None
    before, following = place.word_at(place.index - 1), place.word_at(place.index + 1)
    if place.name == "LSQB" and before != "in":
        return wrong(place, "options stand in parentheses", "write `(` and `)`")
    if place.is_word() and following == "=":
        written = f"({body(place, place.index, 'emit', *clause_words())})"
        return wrong(
            place, f"the options of {code(before)} stand in parentheses", f"write {code(f'{before} {written}')}"
        )
    if place.is_word() and following == "(" and before in FACTS and place.word != before:
        return wrong(place, f"the options of {code(before)} stand in parentheses", f"write {code(f'{before} (...)')}")
    if place.name == "DURATION" and before in _FIRST:
        help = f"write {code(f'{before} ({_FIRST[before]} = {place.word})')}"
        return wrong(place, f"the options of {code(before)} stand in parentheses", help)
    if (place.name in ("DURATION", "INTEGER") and place.word_at(place.index - 2) == "window") or before == "window":
        return wrong(place, "a window has a kind", f"write {code(f'window tumbling (size = {place.word})')}")
    return None


def _name(place: WrongPlace) -> Explanation | None:
    """Where the name of an option is expected, or the ``=`` after it."""
    opened = open_bracket(place)
    if opened is None:
        return None
    owner = place.word_at(opened - (2 if opened == place.first + 2 else 1))  # of `topology NAME (`, the first word
    if (
        "EQUAL" not in place.expected
        and set(place.expected) <= {"NAME", "QUOTED", "STRING", "RPAR"}
        and "STRING" in place.expected
    ):
        if place.word == ",":
            return wrong(place, "there are two commas and no option between them", "remove one of them", new="")
        if place.word == "=":
            return wrong(place, "an option has a name", f"write it in front: `{_FIRST.get(owner, 'name')} = ...`")
        if owner == "within" and place.name == "DURATION":
            return wrong(
                place, "`within` takes a duration without parentheses", f"write {code(f'within {place.word}')}"
            )
        if place.name in ("DURATION", "INTEGER", "VARIABLE"):
            help = f"write `{_FIRST.get(owner, 'NAME')} = {place.word}`"
            return wrong(place, "an option has a name", help)
        return None
    if place.expected != ["EQUAL"]:
        return None
    before, after = place.word_at(place.index - 1), place.index + 1
    equal = place.tables.number["EQUAL"]
    if place.word != "=" and (place.word == ":" or place.name in _LITERALS) and _told(place, opened):
        return None, Repair(equal, consumes=place.word == ":")
    if place.word in (".", "-"):
        return _dotted(place, after)
    if place.word == ":":
        finding = place.finding("VSC005", "the value of an option follows a `=`", "write `=`", new="=")
        return finding, Repair(equal, consumes=True)
    if place.word in (",", ")") and before.startswith("'"):
        name = _FIRST.get(owner, "path")
        return wrong(
            place, "an option has a name", f"write {code(f'{name} = {before}')}", place.tokens.span(place.index - 1)
        )
    if place.word in (",", ")"):
        return wrong(
            place,
            f"the option {code(before)} has no value",
            f"write {code(f'{before} = ...')}",
            place.tokens.span(place.index - 1),
        )
    if place.name in _LITERALS and place.word_at(after) == "=":
        span, new = place.span.to(place.tokens.span(after)), f"= {place.word}"
        return wrong(place, "the `=` stands before the value", f"write {code(f'{before} {new}')}", span, new)
    if place.name in _LITERALS:
        end = place.tokens.ends[place.index - 1]
        finding = place.finding(
            "VSC005",
            f"a `=` is missing after {code(before)}",
            f"write {code(f'{before} = {place.word}')}",
            Span(end, end),
            " =",
        )
        return finding, Repair(equal, consumes=False)
    if place.word.lower() in ("period", "interval", "time", "by", "is"):
        return wrong(place, "the name of an option is one word", f"write {code(f'{before} = ...')}", new="")
    if place.is_word():
        whole = f"{before}_{place.word}"
        return wrong(place, "the name of an option is one word", f"write {code(whole)}")
    return None


def _told(place: WrongPlace, opened: int) -> bool:
    """Whether an earlier option of the list lacks its ``=`` as well: that is one mistake."""
    words = [place.word_at(index) for index in range(opened + 1, place.index - 1)]
    return ":" in words or words.count("=") < words.count(",")


def _dotted(place: WrongPlace, after: int) -> Explanation:
    """``kafka.acks``: the name of an option of Spark or Kafka, without its quotes."""
    first, last = place.index - 1, after
    while place.word_at(last + 1) in (".", "-"):
        last += 2
    name = place.tokens.text[place.tokens.starts[first] : place.tokens.ends[last]]
    span = place.tokens.span(first).to(place.tokens.span(last))
    own = _OWN.get(name.removeprefix("kafka.").removeprefix("properties."))
    if own is not None:
        return wrong(place, f"{code(name)} is called {code(own)} here", f"write {code(own)}", span, own)
    message = f"{code(name)} is not the name of one of vsc's options"
    opened = open_bracket(place)
    client = None if opened is None else facts_of(place.word_at(opened - 1)).client
    if client is None:
        return wrong(place, message, f"an option of Spark goes in quotes: `'{name}' = ...`", span)
    prefix, owner = client
    whole = name if name.startswith((prefix, "spark.", "fs.")) else f"{prefix}{name}"
    return wrong(place, message, f"an option of {owner} goes in quotes: `'{whole}' = ...`", span)


def _value(place: WrongPlace) -> Explanation | None:
    """Where the value of an option is expected, or the end of the option."""
    if open_bracket(place) is None:
        return None
    if place.before == "EQUAL" and "STRING" in place.expected and "NAME" not in place.expected:
        return _no_literal(place)
    if {"COMMA", "RPAR"} == set(place.expected) and place.word in ("||", "+", "*"):
        value = f"{place.word_at(place.index - 1)} {place.word} {place.word_at(place.index + 1)}"
        help = f"compute it before: {code(f'let NAME = {value};')}, and write its name here"
        return wrong(place, "the value of an option is one literal", help)
    if place.name == "STRING" and set(place.expected) <= {"NAME", "QUOTED", "RPAR"}:
        written = named(place.word.strip("'"))
        return wrong(place, "the name of a column is not a string", f"write {code(written)}", new=written)
    if (
        {"COMMA", "RPAR"} == set(place.expected)
        and place.name in ("SLASH", "COLON", "DOT", "MINUS")
        and place.before == "STRING"
    ):
        return wrong(place, "the value of an option is one literal", "write the whole value in single quotes")
    return None


def _no_literal(place: WrongPlace) -> Explanation | None:
    word, option = place.word, place.word_at(place.index - 2)
    if word in (",", ")"):
        return wrong(place, f"the option {code(option)} has no value", f"write {code(f'{option} = ...')}, or remove it")
    if word in ("/", ".", "-", ":", "*"):
        written = _run(place)
        return wrong(
            place,
            "the value of an option is a literal: a string goes in quotation marks",
            f"write `'{written}'`",
        )
    if word == "%" and place.word_at(place.index + 2) == "%":
        name = place.word_at(place.index + 1)
        span = place.span.to(place.tokens.span(place.index + 2))
        return say(
            place,
            "VSC026",
            f"{code(f'%{name}%')} is not a variable here",
            f"write {code(f'${{{name}}}')}, and run with {code(f'--var {name}=...')}",
            span,
        )
    if word == "[" and option == "partition_by":
        last = place.index
        while place.word_at(last) not in ("]", ";", ""):
            last += 1
        names = code(f"({text(place, place.index + 1, last - 1)})")
        return wrong(place, "columns stand in parentheses", f"write {names}")
    if word == "(" or word == "[":
        return wrong(place, "the value of an option is one literal", "write several values in one string: `'a,b'`")
    following = place.word_at(place.index + 1)
    if (duration := iso_duration(word)) is not None:
        return say(place, "VSC004", "a duration is a number with its unit", f"write {code(duration)}", new=duration)
    if word.lower() == "interval" and following:
        value = following.strip("'") + (
            f" {place.word_at(place.index + 2)}" if following.startswith("'") and following.strip("'").isdigit() else ""
        )
        return say(place, "VSC004", "a duration is written without `interval`", f"write {code(value)}")
    if place.is_word() and (following in (".", "-", ":", "/")):
        written = _run(place)
        span = Span(place.span.start, place.span.start + len(written))
        return wrong(
            place,
            "the value of an option is a literal: a string goes in quotation marks",
            f"write `'{written}'`",
            span,
            f"'{written}'",
        )
    return None


def _run(place: WrongPlace) -> str:
    """The text from the place to the next blank, comma, quote or bracket."""
    whole, start = place.tokens.text, place.span.start
    end = start
    while end < len(whole) and not whole[end].isspace() and whole[end] not in ",();'`":
        end += 1
    return whole[start:end]
