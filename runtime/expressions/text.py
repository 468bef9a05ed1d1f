"""Functions over text: as Spark's, by characters (code points), never by UTF-16 units or bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from ctypes import c_float
from typing import Any, TypeVar

from vsc.runtime.expressions.failure import fail, short

__all__ = [
    "MOST",
    "characters",
    "check_length",
    "concat_ws",
    "initcap",
    "instr",
    "java_double",
    "java_float",
    "like_matcher",
    "limited",
    "padded",
    "repeat",
    "replace",
    "substring",
    "translate",
]

T = TypeVar("T", str, bytes)

MOST = 100_000_000
"""How many characters or bytes a text or binary may have that an expression makes."""
_LIKE = re.compile(r"\\(.?)|(.)", re.DOTALL)
"""A piece of a ``like`` pattern: an escaped character, or another one."""


def java_double(value: float) -> str:
    """`value` as Java prints a double: ``1.0``, ``1.0E10``, ``NaN``; with the fewest digits that read back."""
    shortest, two = repr(value), f"{value:.1e}"
    return _java(value, two if float(two) == value else shortest)  # two digits, which Java always prints, if they do


def java_float(value: float) -> str:
    """`value`, a number of 32 bits, as Java prints a float."""
    if not math.isfinite(value) or value == 0:
        return _java(value, repr(value))
    for digits in range(2, 10):  # Java always prints two
        text = f"{value:.{digits}g}"
        if c_float(float(text)).value == value:
            break
    return _java(value, text)


def _java(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    digits, point = digits.strip("0"), point - leading
    if -3 < point <= 7:
        padded = digits.ljust(point, "0") if point > 0 else "0" * (1 - point) + digits
        cut = max(point, 1)
        return f"{sign}{padded[:cut]}.{padded[cut:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def like_matcher(pattern: str) -> Callable[[str], bool]:
    """The function that matches a text with a ``like`` pattern, in time that grows with the text's length.

    Fails where ``\\`` stands before anything but ``% _ \\``.
    """
    first, *others = _like_pieces(pattern)
    if not others:
        return lambda text: len(text) == len(first) and _found(first, text, 0, len(text)) >= 0
    *middle, last = others

    def matches(text: str) -> bool:
        end = len(text) - len(last)
        at = len(first)
        if at > end or _found(first, text, 0, at) < 0 or _found(last, text, end, len(text)) < 0:
            return False
        for piece in middle:  # the leftmost place of each leaves the most room for the others
            at = _found(piece, text, at, end)
            if at < 0:
                return False
        return True

    return matches


_Piece = list[str | None]
"""What stands between two ``%``, character by character; None is any character."""


def _like_pieces(pattern: str) -> list[_Piece]:
    pieces: list[_Piece] = [[]]
    for escaped, plain in _LIKE.findall(pattern):
        if plain == "%":
            pieces.append([])
        elif plain:
            pieces[-1].append(None if plain == "_" else plain)
        elif escaped and escaped in "%_\\":
            pieces[-1].append(escaped)
        else:
            written = short(pattern)
            fail("INVALID_FORMAT", f"the like pattern '{written}' has an escape character that escapes nothing")
    return pieces


def _found(piece: _Piece, text: str, start: int, end: int) -> int:
    """Where the first `piece` in ``text[start:end]`` ends; -1 if there is none."""
    if None not in piece:
        found = text.find("".join(map(str, piece)), start, end)
        return found if found < 0 else found + len(piece)
    if start + len(piece) > end:
        return -1
    masks = dict[str | None, int]()
    for bit, letter in enumerate(piece):
        masks[letter] = masks.get(letter, 0) | 1 << bit
    wild = masks.pop(None)
    begun, whole = 0, 1 << (len(piece) - 1)
    for at in range(start, end):  # a bit of `begun`: so much of the piece ends here
        begun = (begun << 1 | 1) & (masks.get(text[at], 0) | wild)
        if begun & whole:
            return at + 1
    return -1


def concat_ws(separator: str | None, *values: str | list[str | None] | None) -> str | None:
    """The texts, and those in arrays, joined; nulls are left out."""
    if separator is None:
        return None
    texts = [text for value in values for text in (value if isinstance(value, list) else (value,))]
    return separator.join([text for text in texts if text is not None])


def substring(text: T, position: int, length: int | None = None) -> T:
    """`length` characters (or bytes) from `position`, counted from 1 or, negative, from the end; 0 is 1."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(0, start) : max(0, end)] if end > start else text[:0]


def replace(text: str, search: str, replacement: str) -> str:
    """`text` with every `search` replaced, unless that is too long; an empty `search` is found nowhere."""
    if not search:
        return text
    if len(replacement) > len(search):
        check_length(len(text) + text.count(search) * (len(replacement) - len(search)))
    return text.replace(search, replacement)


def instr(text: str, part: str) -> int:
    """Where `part` first occurs, counted from 1; 0 if nowhere."""
    return text.find(part) + 1


def initcap(text: str) -> str:
    """The text in lower case, with a capital after each blank and at the start."""
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def repeat(text: str, times: int) -> str:
    """The text so often, unless that is too long."""
    check_length(len(text) * max(times, 0))
    return text * times


def padded(left: bool) -> Callable[[str, int, str], str]:
    """``lpad`` or ``rpad``: the text of exactly `length` characters, filled up with `pad`; a longer one is cut."""

    def fill(text: str, length: int, pad: str) -> str:
        check_length(length)
        missing = length - len(text)
        if missing <= 0 or not pad:
            return text[: max(length, 0)]
        more = (pad * (missing // len(pad) + 1))[:missing]
        return more + text if left else text + more

    return fill


def translate(text: str, letters: str, replacements: str) -> str:
    """The text with each of `letters` replaced by the one at its place in `replacements`; without one it is removed."""
    table: dict[int, str | None] = {}
    for place, letter in enumerate(letters):
        table.setdefault(ord(letter), replacements[place] if place < len(replacements) else None)
    return text.translate(table)


def limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which fails where the text or binary that it makes is longer than `MOST`."""

    def checked(*values: Any) -> Any:
        found = function(*values)
        if found is not None:
            check_length(len(found))
        return found

    return checked


def check_length(length: int) -> None:
    """Fails for a text or binary longer than `MOST`."""
    if length > MOST:
        fail("VALUE_TOO_LONG", f"the result has {length} characters or bytes, more than {MOST}")


def characters(text: str, limit: int) -> list[str]:
    """What ``split`` makes with an empty pattern: each character."""
    count = len(text) if limit <= 0 else min(limit, len(text))
    return [*text[: count - 1], text[count - 1 :]]
