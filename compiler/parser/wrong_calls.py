"""Calls in the special forms of SQL: ``extract(year from at)``, ``cast(n to string)``, ``count(all n)``."""

from __future__ import annotations

from vsc.compiler.diagnostics.wording import code
from vsc.compiler.parser.place import Explanation, WrongPlace
from vsc.compiler.parser.surroundings import body, closing, open_bracket, say, sql, text, wrong
from vsc.compiler.parser.types import is_type_name
from vsc.compiler.source import Span

__all__ = ["wrong_call"]

_PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "doy", "epoch")


def wrong_call(place: WrongPlace) -> Explanation | None:
    """SQL's special forms of calls."""
    opened = open_bracket(place)
    if place.expected == ["LPAR"] and place.before == "CAST":
        value = body(place, place.index, ",", "as")
        return wrong(place, "a `cast` stands in parentheses", f"write {code(f'cast({value} as TYPE)')}")
    if opened is None or place.word_at(opened) != "(":
        return None
    name, word, before = place.word_at(opened - 1).lower(), place.word.lower(), place.word_at(place.index - 1).lower()
    start = place.tokens.starts[opened - 1]
    span = Span(start, place.tokens.ends[closing(place, opened)])
    rest = text(place, place.index + 1 if word in ("from", "in", "for") else place.index, closing(place, opened) - 1)
    if name == "extract" and (word == "from" or before == "from"):
        part = place.word_at(opened + 1).lower()
        whole = {"epoch": f"unix_seconds({rest})", "dow": f"dayofweek({rest}) - 1", "isodow": f"dayofweek({rest})"}
        if part in _PARTS and part not in ("doy", "week"):
            return sql(place, "there is no `extract`", f"write `{whole.get(part, f'{part}({rest})')}`", span)
        return sql(
            place,
            "there is no `extract`",
            f"no function gives the {code(part)}: `date_trunc('{part}', {rest})` gives its start",
            span,
        )
    if name == "position" and before == "in":
        part = place.word_at(opened + 1)
        return sql(
            place,
            "there is no `position`",
            f"write {code(f'contains({rest}, {part})')} for whether it occurs; no function says where",
            span,
        )
    if name in ("substring", "substr") and (word in ("from", "for") or before in ("from", "for")):
        args = [place.word_at(i) for i in range(opened + 1, closing(place, opened))]
        args = [a for a in args if a.lower() not in ("from", "for", ",")]
        return sql(
            place,
            "the arguments of `substring` are separated by commas",
            "write " + code(f"substring({', '.join(args)})"),
            span,
        )
    if name in ("trim", "ltrim", "rtrim") and place.word_at(opened + 1).lower() in ("both", "leading", "trailing"):
        function = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[place.word_at(opened + 1).lower()]
        return sql(
            place,
            f"`trim` has no {code(place.word_at(opened + 1))}",
            f"write {code(f'{function}(text)')}, which removes blanks",
            span,
        )
    if name == "overlay":
        return sql(place, "there is no `overlay`", "write `concat(substring(...), ..., substring(...))`", span)
    if name == "count" and word == "," and place.word_at(opened + 1).lower() == "distinct":
        return sql(
            place,
            "`count(distinct ...)` counts one value",
            f"write {code(f'count(distinct struct({text(place, opened + 2, closing(place, opened) - 1)}))')}",
            span,
        )
    if before == "all" and opened == place.index - 2:
        return sql(place, "`all` is not written", f"write {code(f'{name}({rest})')}", span)
    if name == "cast":
        return _cast(place, opened, span)
    if name in ("cast", "try_cast") and is_type_name(word):
        return None
    return None


def _cast(place: WrongPlace, opened: int, span: Span) -> Explanation | None:
    before = place.word_at(place.index - 1).lower()
    if before in ("to", "into") and place.is_word():
        value = text(place, opened + 1, place.index - 2)
        return wrong(place, "the type of a cast follows `as`", f"write {code(f'cast({value} as {place.word})')}", span)
    if "AS" in place.expected and place.word.lower() in ("to", "into"):
        return wrong(place, "the type of a cast follows `as`", "write `as`", new="as")
    if "AS" in place.expected and place.word == ",":
        value, type_ = text(place, opened + 1, place.index - 1), place.word_at(place.index + 1)
        return wrong(place, "the type of a cast follows `as`", f"write {code(f'cast({value} as {type_})')}")
    if place.name == "INTEGER" and place.word_at(place.index - 1) == "decimal":
        sizes = text(place, place.index, closing(place, opened) - 1)
        return say(
            place, "VSC016", "the digits of a decimal stand in parentheses", f"write {code(f'decimal({sizes})')}"
        )
    return None
