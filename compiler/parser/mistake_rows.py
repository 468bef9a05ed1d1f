"""Mistakes as rows of text: where a row holds, what is said, what to write.

    filter WHERE @on|if|when|with|by|having ='where'
      the condition of a `filter` follows `where`
      write `where`

A family is a file of rows, ``rows/FAMILY.txt``. The first row that holds explains the mistake; a row whose text is
``-`` ends its family, or only repairs. Its first lines say where; several of them share one text. Each begins with what
the row is for: an operation, ``operation`` (any), ``node`` (a source or an operation), ``sink``, ``topology``, ``let``,
``function``, ``include``, ``first`` (the first word of a statement), or ``*``. What several rows begin with stands once
above them, in ``[...]``, up to an empty line; ``.`` is then a row with nothing more. Tests follow, which all must hold:

* ``@a|b``: the word at the place; ``<a`` the one before it, ``<<a`` the one before that; ``>a``, ``>>a`` behind it.
  ``:type`` in place of a word is a class of words (`row_words`).
* ``#STRING|INTEGER``: the terminal at the place; ``<#STRING`` the one before it.
* ``WHERE|ON``: one of these terminals is expected; ``{WHERE}``: exactly these are; ``{?WHERE|ON}``: no others are.
* ``(``: inside brackets; ``(cast|count``: inside the brackets of one of these words.
* ``?in_columns``: a test by its name (`row_tests`). ``!`` in front of any test: it does not hold.

And what else is said:

* ``^VSC022``: the code, VSC005 if none is given.
* ``/-1..0``: the span, in tokens from the place. ``(`` is the open bracket, ``)`` what closes it, ``:run`` a place by
  its name.
* ``='text'``: the text that certainly belongs there; ``%:comma``: where it goes, if not into the span.
* ``+EQUAL``: read on as if that terminal stood in front of the place; ``~EQUAL``: as if it stood there.

Texts have holes: ``{word}``, ``{-1}`` and ``{+2}`` for words around the place, and what `row_holes` has, with an offset
and arguments: ``{inside+1}``, ``{body:materialize}``. Each row has an example among the noted mistakes in
``tests/compiler/parser/mistakes``.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.wording import code
from vsc.compiler.parser.place import Explanation, Repair, WrongPlace
from vsc.compiler.parser.row_holes import HOLES, SPANS
from vsc.compiler.parser.row_tests import TESTS
from vsc.compiler.parser.row_words import CLASSES
from vsc.compiler.parser.surroundings import closing, open_bracket, operation
from vsc.compiler.source import Span
from vsc.grammar.forms import operations

__all__ = ["Row", "explanation", "row_for", "rows"]

Test = Callable[[WrongPlace], bool]

_PARTS = re.compile(r"='[^']*'|\S+")
_HOLE = re.compile(r"(?<!\$)\{(\w*)([+-]\d+)?(?::([\w,+-]+))?\}")
_CODE = re.compile(r"`` .*? ``|`[^`]*`")
_SOURCES = ("stream", "table", "global")


class Row(NamedTuple):
    """A row as it is written, with its tests. `message` is empty if it only ends its family."""

    line: int
    scopes: frozenset[str]
    tests: tuple[Test, ...]
    message: str
    help: str
    code: str
    span: str
    edit: str
    new: str | None
    repair: str


def row_for(family: str, place: WrongPlace) -> Row | None:
    """The row of a family that holds at a place."""
    scopes = _scopes(place)
    return next((row for row in rows(family) if row.scopes & scopes and all(test(place) for test in row.tests)), None)


def explanation(row: Row, place: WrongPlace) -> Explanation | None:
    """What a row says at a place; None if it only ends its family."""
    if not row.message and not row.repair:
        return None
    finding = None
    if row.message:
        span = _span(row.span, place)
        fix = None if row.new is None else Fix(_span(row.edit, place) if row.edit else span, _filled(row.new, place))
        finding = Finding(row.code, span, _said(row.message, place), (), _said(row.help, place), fix)
    if not row.repair:
        return finding, None
    sign, terminal = row.repair[0], row.repair[1:]
    return finding, Repair(None if terminal == "." else place.tables.number[terminal], consumes=sign == "~")


@cache
def rows(family: str) -> tuple[Row, ...]:
    """The rows of ``rows/FAMILY.txt``."""
    data = pkgutil.get_data(__name__, f"rows/{family}.txt")  # the package may be in a zip file
    assert data is not None, family
    return tuple(_read(data.decode("utf-8")))


def _read(text: str) -> Iterator[Row]:
    places: list[tuple[int, str]] = []
    said: list[str] = []
    shared = ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        written = line.strip()
        if said and line[:2] != "  ":
            yield from (_row(at, place, *said) for at, place in places)
            places, said = [], []
        if line.startswith("["):
            shared = written[1:-1] + " "
        elif not written:
            shared = ""
        elif line[:2] == "  ":
            said.append(written)
        elif line[:2] != "--":
            places.append((number, shared + ("" if written == "." else written)))


def _row(number: int, place: str, message: str, help: str = "") -> Row:
    scopes, *parts = _PARTS.findall(place)
    given = {"^": "VSC005", "/": "", "%": "", "+": "", "~": ""}
    tests, new = [], None
    for part in parts:
        if part[0] in given:
            given[part[0]] = part[1:] or "."
        elif part.startswith("='"):
            new = part[2:-1]
        else:
            tests.append(_test(part))
    repair = next((sign + given[sign] for sign in "~+" if given[sign]), "")
    message = "" if message == "-" else message
    return Row(
        number,
        frozenset(scopes.split(",")),
        tuple(tests),
        message,
        help,
        given["^"],
        given["/"],
        given["%"],
        new,
        repair,
    )


# where


def _scopes(place: WrongPlace) -> set[str]:
    """What a row can be for: the statement, its operation."""
    at, head = operation(place), place.word_at(place.first).lower()
    if place.index == place.first:
        return {"*", "first"}
    kind = {"*", head, "node"} if head in _SOURCES else {"*", head}
    return kind if at is None else kind | {"operation", operations().get(place.word_at(at).lower(), "")}


def _test(part: str) -> Test:
    """A test as it is written: of the words around the place, of what is expected there, or by its name."""
    if part[0] == "!" and len(part) > 1:
        inner = _test(part[1:])
        return lambda place: not inner(place)
    if part[0] == "?":
        return TESTS[part[1:]]
    if part[0] == "(":
        return partial(_owned, part[1:].split("|") if part[1:] else None)
    if part[0] in "#{" and len(part) > 1:
        names = frozenset(part.strip("#{?}").split("|"))
        if part[0] == "#":
            return lambda place: place.name in names
        return partial(_only, names, part[1] == "?")
    if part[:2] == "<#":
        kinds = frozenset(part[2:].split("|"))
        return lambda place: place.before in kinds
    if part[0] in "@<>" and len(part) > 1:
        sign = part[0]
        words = part.lstrip(sign) if sign != "@" else part[1:]
        offset = {"@": 0, "<": -1, ">": 1}[sign] * (len(part) - len(words))
        return partial(_word_is, offset, _alternatives(words))
    if re.fullmatch(r"[A-Z_|]+", part):
        expected = frozenset(part.split("|"))
        return lambda place: bool(expected & set(place.expected))
    raise ValueError(f"unknown test {part}")


def _alternatives(words: str) -> tuple[str, ...]:
    return tuple(words.split("|")) if words != "|" else ("|",)


def _word_is(offset: int, wanted: tuple[str, ...], place: WrongPlace) -> bool:
    word = place.word_at(place.index + offset)
    return any(CLASSES[one[1:]](word) if one[:1] == ":" and len(one) > 1 else word.lower() == one for one in wanted)


def _owned(wanted: list[str] | None, place: WrongPlace) -> bool:
    """Whether the place is inside brackets, of one of these words."""
    opened = open_bracket(place)
    return opened is not None and (wanted is None or place.word_at(opened - 1).lower() in wanted)


def _only(names: frozenset[str], at_most: bool, place: WrongPlace) -> bool:
    return set(place.expected) <= names if at_most else set(place.expected) == names


# what is said


def _said(template: str, place: WrongPlace) -> str:
    """A template with its holes filled. What is code stays code, whatever fills its holes."""
    parts, end = [], 0
    for match in _CODE.finditer(template):
        parts.append(_filled(template[end : match.start()], place))
        inner = match[0].strip("`")
        parts.append(f"``{_filled(inner, place)}``" if match[0][1] == "`" else code(_filled(inner, place)))
        end = match.end()
    return "".join([*parts, _filled(template[end:], place)])


def _filled(template: str, place: WrongPlace) -> str:
    return _HOLE.sub(lambda match: _hole(match, place), template)


def _hole(match: re.Match[str], place: WrongPlace) -> str:
    name, offset, given = match[1], int(match[2] or 0), tuple((match[3] or "").split(",")) if match[3] else ()
    if not name:
        return place.word_at(place.index + offset)
    return HOLES[name](place, place.index + offset, *given)


def _span(written: str, place: WrongPlace) -> Span:
    """``-1``, ``-1..0``, ``0..)``: tokens from the place; ``(`` is the open bracket, ``)`` what closes it."""
    if not written:
        return place.span
    if written[0] == ":":
        return SPANS[written[1:]](place)
    first, _, last = written.partition("..")
    return place.tokens.span(_token(first, place)).to(place.tokens.span(_token(last or first, place)))


def _token(written: str, place: WrongPlace) -> int:
    opened = place.index if place.word == "(" and written == ")" else open_bracket(place) or place.first
    if written == ")":
        return closing(place, opened)
    return opened + int(written[1:] or 0) if written[0] == "(" else place.index + int(written)
