"""Text that is not a token of the language: placeholders of templates and shells, merge conflicts, open strings."""

from __future__ import annotations

import re
from typing import NamedTuple

from vsc.compiler.source import Span

__all__ = ["STARTS", "conflict_end", "glued_string", "placeholder"]

STARTS = re.compile(
    r"^[ \t]*(?:(?:stream|(?:global[ \t]+)?table)[ \t]+(?:\w+|`[^`\n]+`)\s*[=(]"
    r"|--|let[ \t]+(?:\w+|`[^`\n]+`)\s*=|function[ \t]+(?:\w+|`[^`\n]+`)\s*\("
    r"|include[ \t]+'|sink[ \t]+(?:\w+|`[^`\n]+`)\s+(?:to|of)\b)",
    re.MULTILINE,
)
"""A line that begins a statement, or is a comment."""

_PLACEHOLDER = re.compile(
    r"\{\{[^{}\n]*\}\}|\{%[^\n]*?%\}|[#$@]\{[^{}\n]*\}|\$\([^()\n]*\)|[$@][A-Za-z_][A-Za-z0-9_]*|\$[0-9]+"
    r"|\{[A-Za-z_][A-Za-z0-9_]*\}|\?"
)
_MACRO = re.compile(r"\{\{-?\s*(\w+)\s*\((.*)\)\s*-?\}\}")
"""A call in a template, as in dbt: ``{{ ref('orders') }}``."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Placeholder(NamedTuple):
    """Where it ends, and what to report about it."""

    end: int
    message: str
    help: str


def placeholder(text: str, start: int) -> Placeholder | None:
    """The placeholder of another tool that begins at `start`; None if there is none."""
    match = _PLACEHOLDER.match(text, start)
    if match is None or match[0].startswith("${"):
        return None
    written = match[0]
    if written.startswith("{%"):
        return Placeholder(
            match.end(), f"`{written}` belongs to a template engine", "run it first, or write plain text"
        )
    if (macro := _MACRO.match(written)) is not None:
        return Placeholder(match.end(), f"`{written}` belongs to a template engine", _instead_of_macro(macro))
    if written == "?":
        return Placeholder(match.end(), "`?` is not part of the language",
                           "a variable is `${name}`; a choice is `case when ... then ... else ... end`")  # fmt: skip
    name = _NAME.search(written)
    variable = name[0] if name else f"arg{written[1:]}" if written[1:].isdigit() else "name"
    help = f"write `${{{variable}}}`, and run with `--var {variable}=...`"
    return Placeholder(match.end(), f"`{written}` is not a variable here", help)


def _instead_of_macro(macro: re.Match[str]) -> str:
    called, names = macro[1], re.findall(r"['\"](\w+)['\"]", macro[2])
    if called in ("ref", "source") and names:
        return f"write `{names[-1]}`: a node is read by its name"
    if called in ("var", "env_var") and names:
        return f"write `${{{names[0]}}}`, and run with `--var {names[0]}=...`"
    return "remove it: the text of a topology is read as it is"


def conflict_end(text: str, start: int) -> int:
    """Where to go on after the marker of a conflict at `start`: after it, or after the other version."""
    line = text.find("\n", start)
    end = len(text) if line < 0 else line
    if text[start] in "<>":
        return end
    closing = re.compile(r"^>{7}(?:[ \t][^\n]*)?\r?$", re.MULTILINE).search(text, end)
    return end if closing is None else closing.end()


def glued_string(text: str, start: int, quote: int) -> Span | None:
    """The string that lacks its quote, if the line of the open quote at `quote` has an earlier one.

    In ``(path = 'x, format = 'json')`` the quote that is left over is the last one, but the first string is the one
    that is not closed: the text after its end begins with a letter. `start` is where the line begins.
    """
    for match in re.finditer(r"'(?:[^'\n]|'')*'(?=(\w)?)", text[start:quote]):
        if match[1]:
            return Span(start + match.start(), start + match.end())
    return None
