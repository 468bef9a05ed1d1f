"""Texts that only Java reads in the end, in options of Spark: regular expressions, globs, patterns of times.

What is wrong with one, and what to write instead; None if nothing is, or if only Java can tell. What Java takes is
never refused.
"""

from __future__ import annotations

import re

from vsc.plan.connectors.facts import Wrong

__all__ = ["wrong_glob", "wrong_regex", "wrong_time_pattern"]

_BEYOND = re.compile(r"\\Q|\(\?[A-Za-z-]*x")
"""What makes other signs of a regular expression mean nothing: ``\\Q...\\E``, and comments."""
_REGEX = re.compile(
    r"\\(?:[pPxNb]\{[^}]*\}|c?.)|(?P<members>\[\^?\]?[^]\\[&]*)(?P<close>\]?)|"
    r"(?P<open>\((?:\?(?:<?[=!]|[:>]|<[A-Za-z0-9]+>|[a-z-]+:)|(?!\?)))|(?P<sign>[^\\[])",
    re.DOTALL,
)
_PATTERN = re.compile(r"'[^']*(?P<end>'?)|(?P<letters>([A-Za-z])\3*)|(?P<sign>.)", re.DOTALL)
_MOST_LETTERS = {
    **dict.fromkeys("dhkmsHK", 2), **dict.fromkeys("GLMz", 4), **dict.fromkeys("xXZ", 5), "D": 3, "v": 4, "O": 4,
    "V": 2, "S": 9, "a": 1, "y": 6, "g": 99,
}  # fmt: skip
"""The letters of patterns, and how often each may stand in a row."""
_MOST_WRITTEN = {**_MOST_LETTERS, "E": 4, "F": 1, "q": 4, "Q": 4}
_MEANT = {"Y": "y", "u": "y"}


def wrong_regex(name: str, value: str) -> Wrong:
    """What is wrong with a regular expression of Java."""
    found = None if _BEYOND.search(value) else _broken(value)
    if found is None:
        return None
    return f"'{name}' is a regular expression, and '{value}' has {found}", "correct it; `\\` in front makes a sign text"


def _broken(regex: str) -> str | None:
    """What Java does not take in a regular expression, if that is sure."""
    depth, at, begins = 0, 0, True
    while at < len(regex):
        piece = _REGEX.match(regex, at)
        if piece is None:
            return "a `\\` at its end"
        at, sign, opens = piece.end(), piece["sign"], piece["open"] is not None
        if piece["close"] == "":  # members of other classes, or escaped ones, follow, if anything does
            return None if at < len(regex) else "a `[` without its `]`"
        if sign in ("*", "+", "?") and begins:
            return f"a `{sign}` that repeats nothing"
        if sign == "{" and not regex[at : at + 1].isdecimal():
            return "a `{` that is not `{n}`, `{n,}` or `{n,m}`"
        if sign == "(" and regex.startswith("?P", at):
            return "`(?P`, where Java has `(?<name>...)`"
        depth += (opens or sign == "(") - (sign == ")")
        if depth < 0:
            return "a `)` without its `(`"
        begins = opens or sign == "|"
    return "a `(` without its `)`" if depth else None


def wrong_glob(name: str, value: str) -> Wrong:
    """What is wrong with a pattern of names of files, as Hadoop reads it."""
    in_set, groups, signs = False, 0, iter(value)
    for sign in signs:
        if sign == "\\" and next(signs, "") == "":
            return _not_a_glob(name, value, "a `\\` at its end")
        if sign == "[" and in_set:
            return _not_a_glob(name, value, "a `[` without its `]`")
        in_set = sign == "[" or (in_set and sign != "]")
        groups += (sign == "{") - (sign == "}" and groups > 0)
    if in_set or groups:
        return _not_a_glob(name, value, "a `[` without its `]`" if in_set else "a `{` without its `}`")
    return None


def _not_a_glob(name: str, value: str, found: str) -> Wrong:
    return f"'{name}' is a pattern of names, and '{value}' has {found}", "write one, such as '*.json'"


def wrong_time_pattern(name: str, value: str, reads: bool) -> Wrong:
    """What is wrong with a pattern of times, for one who `reads` them or writes them."""
    known, depth = _MOST_LETTERS if reads else _MOST_WRITTEN, 0
    for piece in _PATTERN.finditer(value):
        letters, sign = piece["letters"], piece["sign"]
        if piece["end"] == "" and not (reads and "S" in value):  # with fractions Spark takes it apart itself
            return _not_a_pattern(name, value, "a quote without its end", "close it")
        if letters is not None and len(letters) > known.get(letters[0], 0):
            return _not_a_pattern(name, value, f"`{letters}`, which Spark does not know", _help(letters))
        depth += (sign == "[") - (sign == "]")
        if sign in ("{", "}", "#") or depth < 0:
            return _not_a_pattern(name, value, f"the reserved sign `{sign}`", f"write it as text: ''{sign}''")
    return None


def _not_a_pattern(name: str, value: str, found: str, help: str) -> Wrong:
    return f"'{name}' is a pattern of times, and '{value}' has {found}", help


def _help(letters: str) -> str:
    if (meant := _MEANT.get(letters[0])) is not None:
        return f"write `{meant * min(len(letters), _MOST_LETTERS[meant])}`"
    return f"write letters that are text between quotes, each doubled in a topology: ''{letters}''"
