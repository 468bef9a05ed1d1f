"""Numbers and binaries in other digits: ``conv``, ``hex``, ``unhex``, and base 64."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import a2b_base64

from vsc.runtime.expressions.failure import fail, short

__all__ = ["from_base64", "from_hex", "hex_of_bytes", "hex_of_number", "in_base", "of_base64"]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORD = 2**64
_BASE64 = re.compile("[A-Za-z0-9+/]")
_OTHERS = re.compile("[^A-Za-z0-9+/]+")
_HEX = re.compile("[0-9A-Fa-f]*")
_BREAKS = re.compile(r"[\x00-\x20]+")


def in_base(text: str, source: int, target: int) -> str | None:
    """The number at the start of `text`, of 64 bits without a sign, in other digits; null for no text or another base.

    What is below zero is written as 64 bits, or with its sign if `target` is negative.
    """
    text, base = text.strip(" "), abs(target)
    if not (2 <= source <= 36 and 2 <= base <= 36 and text):
        return None
    negative = text[0] == "-"
    number = 0
    for letter in text[negative:]:
        digit = _DIGITS.find(letter.upper()) if letter.isascii() else -1
        if not 0 <= digit < source:
            break
        number = number * source + digit
        if number >= _WORD:
            fail("ARITHMETIC_OVERFLOW", f"the number '{short(text)}' does not fit in 64 bits")
    signed = number if number < _WORD // 2 else number - _WORD
    if target > 0:
        return _written(number if not negative else _WORD - 1 if signed < 0 else -number % _WORD, base)
    return "-" * (negative or signed < 0) + _written(abs(signed), base)


def _written(number: int, base: int) -> str:
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"


def hex_of_number(number: int) -> str:
    """A bigint's 64 bits in hexadecimal digits, without zeros in front."""
    return f"{number % _WORD:X}"


def hex_of_bytes(data: bytes) -> str:
    """Two hexadecimal digits for each byte."""
    return data.hex().upper()


def from_hex(text: str) -> bytes | None:
    """The bytes of hexadecimal digits, the first one alone if their number is odd; null for other characters."""
    if not _HEX.fullmatch(text):
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text)


def from_base64(text: str) -> bytes:
    """What `text` is in base 64, as in MIME: other characters, such as line ends, do not count.

    Fails where characters are missing, and if some follow the padding.
    """
    text, sign, rest = text.partition("=")
    letters = _OTHERS.sub("", text)
    left = len(letters) % 4
    missing = left == 1 or (sign and left == 0) or (sign and left == 2 and rest[:1] != "=")
    if missing or _BASE64.search(rest):
        fail("CONVERSION_INVALID_INPUT", f"the text '{short(text + sign + rest)}' is not base 64")
    return a2b_base64(letters + "=" * (-left % 4))


def of_base64(text: str) -> bytes:
    """What a value in data is in base 64, as Spark's JSON reads it: between groups of four letters there may be blanks
    and line ends. Raises ValueError.
    """
    groups = _BREAKS.split(text)
    if any(len(group) % 4 for group in groups):
        raise ValueError("groups of base 64 have four letters")
    return b64decode("".join(groups), validate=True)
