"""Functions over text: as Spark's, by characters (code points), never by UTF-16 units or bytes."""

from __future__ import annotations

import math
import re
from ctypes import c_float
from typing import TypeVar

from vsc.runtime.expressions.failure import fail

__all__ = ["concat_ws", "java_double", "java_float", "like_regex", "replace", "split", "split_regex", "substring"]

T = TypeVar("T", str, bytes)

_LIKE = re.compile(r"\\(.?)|(%+|.)", re.DOTALL)
"""A piece of a ``like`` pattern: an escaped character, or another one."""
_DOT = re.compile(r"\\.|\[(?:\\.|[^\\\]])*+|\.", re.DOTALL)
"""A dot, or what may hold one that means itself: an escape, a class."""
_NO_LINE_END = r"[^\n\r\x85\u2028\u2029]"
"""What a dot is in Java."""


def java_double(value: float) -> str:
    """`value` as Java prints a double: ``1.0``, ``1.0E10``, ``NaN``; with the fewest digits that read back."""
    shortest, two = repr(value), f"{value:.1e}"
    return _java(value, two if float(two) == value else shortest)  # two digits, which Java always prints, if they do


def java_float(value: float) -> str:
    """`value`, a number of 32 bits, as Java prints a float."""
    if not math.isfinite(value) or value == 0:
        return _java(value, repr(value))
    for digits in range(1, 10):
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


def like_regex(pattern: str) -> re.Pattern[str]:
    """The regular expression of a ``like`` pattern; fails where ``\\`` stands before anything but ``% _ \\``."""

    def regex(piece: re.Match[str]) -> str:
        escaped, text = piece.groups()
        if text is not None:
            return {"%": ".*", "_": "."}.get(text[0]) or re.escape(text)
        if escaped not in ("%", "_", "\\"):
            fail("INVALID_FORMAT", f"the like pattern '{pattern}' has an escape character that escapes nothing")
        return re.escape(escaped)

    return re.compile(_LIKE.sub(regex, pattern), re.DOTALL)


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
    """`text` with every `search` replaced; an empty `search` is found nowhere."""
    return text.replace(search, replacement) if search else text


def split_regex(pattern: str) -> re.Pattern[str]:
    """The regular expression of ``split``: as Java means it, within what the compiler lets through."""
    return re.compile(_DOT.sub(lambda piece: _NO_LINE_END if piece[0] == "." else piece[0], pattern), re.ASCII)


def split(text: str, pattern: re.Pattern[str], limit: int) -> list[str]:
    """The pieces of `text` between the matches of `pattern`, at most `limit` if that is positive."""
    if not pattern.pattern and text:
        count = len(text) if limit <= 0 else min(limit, len(text))
        return [*text[: count - 1], text[count - 1 :]]
    pieces: list[str] = []
    start = 0
    for match in pattern.finditer(text):
        if 0 < limit <= len(pieces) + 1:
            break
        if match.end() == 0:
            continue  # an empty match in front of everything gives no empty piece
        pieces.append(text[start : match.start()])
        start = match.end()
    return [*pieces, text[start:]]
