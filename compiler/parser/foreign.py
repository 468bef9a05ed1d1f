"""Signs from other languages that people write out of habit, and the right form for each."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FOREIGN", "Foreign", "describe_character"]


class Foreign(NamedTuple):
    """What to report about a sign.

    `meant` is the text to read in its place; with `sure`, nothing else can be meant. `comment_end` is what ends the
    comment, if the sign begins one.
    """

    message: str
    help: str
    meant: str = ""
    sure: bool = False
    comment_end: str | None = None


FOREIGN = {
    "==": Foreign("`==` is not an operator here", "write `=`", "=", sure=True),
    "===": Foreign("`===` is not an operator here", "write `=`", "=", sure=True),
    "!==": Foreign("`!==` is not an operator here", "write `<>`", "<>", sure=True),
    ":=": Foreign("`:=` is not part of the language", "a node and an option are written with `=`, a column with `as`"),
    "=<": Foreign("`=<` is not an operator here", "write `<=`", "<=", sure=True),
    "**": Foreign("`**` is not an operator here", "write `pow(x, y)`", "*"),
    "<<": Foreign("there are no operators on bits", "multiply: `x * 2`", "*"),
    "->>": Foreign("`->>` is not part of the language", "a field of a struct is `s.f`, an element of a map `m['k']`"),
    "++": Foreign("`++` is not an operator here", "add with `+`; texts are joined with `||`"),
    "<=>": Foreign("`<=>` is not an operator here", "write `coalesce(a = b, a is null and b is null)`", "="),
    "=>": Foreign("`=>` is not an operator here", "write `>=`", ">="),
    "??": Foreign("`??` is not an operator here", "write `coalesce(x, y)`"),
    "?:": Foreign("`?:` is not an operator here", "write `coalesce(x, y)`"),
    "&&": Foreign("`&&` is not an operator here", "write `and`", "and", sure=True),
    '"': Foreign("double quotes are not part of the language", "write single quotes for a string"),
    "/*": Foreign("`/*` does not start a comment", "start each line of a comment with `--`", comment_end="*/"),
    "//": Foreign("`//` does not start a comment", "start a comment with `--`", comment_end="\n"),
    "#": Foreign("`#` does not start a comment", "start a comment with `--`", comment_end="\n"),
}
"""By sign. (``||`` is missing because it is part of the language: it joins strings.)"""

_NAMES = {
    "\0": "a NUL character",
    "\u00a0": "a no-break space",
    "\u200b": "a zero-width space",
    "\u2060": "a word joiner",
    "\u00ad": "a soft hyphen",
}
_BITS = ("there are no operators on bits", "conditions are joined by `and` and `or`, texts by `||`")
_PATTERNS = ("`~` is not an operator here", "write `regexp_like(text, 'regex')`")
_OTHERS = {
    "~": _PATTERNS, "&": _BITS, "|": _BITS, "^": _BITS,
    "{": ("there are no braces in the language", "options stand in `(` and `)`, a variable is `${name}`"),
    "}": ("there are no braces in the language", "options stand in `(` and `)`, a variable is `${name}`"),
    "\\": ("there is no `\\` in the language", "a statement can span several lines; in a string it is plain text"),
}  # fmt: skip
_QUOTES = "‘’‚‛“”„‟«»´"
_DASHES = "‐‑‒–—−"


def describe_character(run: str, first: str) -> tuple[str, str, str | None]:
    """Message and help for `run`, whose character `first` cannot begin any token; what it certainly means, if so."""
    point = f"U+{ord(first):04X}"
    if first in _NAMES:
        meant = " " if run == "\u00a0" else None
        return f"{_NAMES[first]} ({point}) is not allowed here", "remove it, or write a plain space", meant
    if first in _QUOTES:
        return f"`{first}` ({point}) is not a quotation mark here", "write the plain quotation mark '", None
    if first in _DASHES:
        meant = "-" if len(run) == 1 else None
        return f"`{first}` ({point}) is not part of the language", "write the plain `-`", meant
    if first in _OTHERS:
        return *_OTHERS[first], None
    if run.startswith("!~"):
        return *_PATTERNS, None
    if first == "!":
        return "`!` is not an operator here", "write `not`", "not " if run == "!" else None
    if first.isalpha():
        return (
            f"`{run}` is not a name: names are made of the letters a to z, digits and `_`",
            "put the whole name in backticks",
            None,
        )
    if not first.isprintable():
        return f"the character {point} is not allowed here", "remove it", None
    return f"`{run}` is not part of the language", "remove it, or put the text in quotes or backticks", None
