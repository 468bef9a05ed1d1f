"""Names tokens, found or expected, in the words of the language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from vsc.compiler.parser.tables import Tables
from vsc.compiler.syntax import Operation
from vsc.grammar.forms import forms, operations

__all__ = ["form_of", "found", "one_of"]

_NAMES = frozenset({"NAME", "QUOTED"})
_LITERALS = frozenset(
    {
        "CALENDAR_LENGTH",
        "DECIMAL",
        "DOUBLE",
        "DURATION",
        "FALSE",
        "INTEGER",
        "NULL",
        "STRING",
        "TRUE",
        "VARIABLE",
        "MINUS",
    }
)
_EXPRESSIONS = _NAMES | _LITERALS | {"LPAR", "NOT", "CASE", "CAST"}
_OPERATORS = frozenset(
    ("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "EQUAL", "LESSTHAN", "MORETHAN", "OR", "AND", "IS", "IN", "BETWEEN")
) | {"LIKE", "NOT", "DOT", "LSQB", "LPAR"}
_KINDS = {
    "NAME": "a name",
    "QUOTED": "a name",
    "INTEGER": "a whole number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "STRING": "a string",
    "DURATION": "a duration",
    "VARIABLE": "a variable",
    "$END": "the end of the text",
}
_LONGEST = 40


def one_of(expected: Sequence[str], tables: Tables) -> str:
    """``expected a name, `,` or `)` ``, for the terminals that are allowed at a place."""
    left = set(expected)
    parts: list[str] = []
    if {"NAME", "CASE", "LPAR"} <= left:
        parts.append("an expression")
        left -= _EXPRESSIONS
    elif {"STRING", "INTEGER", "TRUE"} <= left:
        parts.append("a literal")
        left -= _LITERALS
    if {"FILTER", "MAP", "JOIN"} <= left:
        parts.append("an operation (`filter`, `map`, `join`, `aggregate`, ...)")
        left -= {word.upper() for word in operations()}
    operators = "PLUS" in left or "OR" in left
    if operators:
        left = {name for name in left if name not in _OPERATORS and not name.startswith("__ANON")}
    if "DURATION" in left:
        left.discard("VARIABLE")
    if "DECIMAL" in left:
        left.discard("INTEGER")
    words = sorted(name for name in left if name in _KINDS)
    parts += dict.fromkeys(_KINDS[name] for name in words)
    texts = sorted(tables.texts[tables.number[name]] for name in left if name not in _KINDS)
    parts += [f"`{text}`" for text in texts if text[0].isalpha()] + [
        f"`{text}`" for text in texts if not text[0].isalpha()
    ]
    if operators:
        parts.append("an operator")
    if len(parts) == 1:
        return f"expected {parts[0]}"
    return f"expected {', '.join(parts[:-1])} or {parts[-1]}"


def form_of(word: str) -> str:
    """How the operation or the statement looks that begins with `word`, with the kind of node that it takes."""
    name = operations().get(word, word)
    reads = next((one.reads for one in get_args(Operation) if one.word == name), None)
    return forms()[name].form.replace("INPUT", reads.upper() if reads else "INPUT")


def found(name: str, word: str) -> str:
    """What was found, for the end of a sentence."""
    if name == "$END":
        return "the end of the text"
    shown = word if len(word) <= _LONGEST and "\n" not in word else word[:_LONGEST].split("\n")[0] + "..."
    return f"the string {shown}" if name == "STRING" else f"`{shown}`"
