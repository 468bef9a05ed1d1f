"""What a text with mistakes would have declared, so that nobody reports it as missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vsc.compiler import syntax
from vsc.compiler.parser.lexer import Tokens
from vsc.compiler.parser.strange import STARTS
from vsc.compiler.source import Span

__all__ = ["begun_names", "declared_names", "swallows"]

_DECLARATION = re.compile(
    r"^[ \t]*(?:stream|table|global[ \t]+table)[ \t]+(`(?:[^`\n]|``)+`|[A-Za-z_]\w*)\s*[=(]", re.MULTILINE
)

_KINDS = ("stream", "table", "global")
_OTHERS = ("sink", "topology", "let", "function", "include")
"""The first words of statements, by whether they declare a node."""
_LONGEST_HEAD = 8  # the words before the name in ``create or replace table if not exists``, and it


def declared_names(tokens: Tokens, broken: Iterable[tuple[int, int]]) -> tuple[syntax.Name, ...]:
    """The names that a text with mistakes would declare.

    These are the names of its `broken` statements, and those that its lines seem to declare: a string or a comment
    without its end hides statements.
    """
    names = [_name(match[1], match.start(1)) for match in _DECLARATION.finditer(tokens.text)]
    for first, after in broken:
        if tokens.word(first) in _OTHERS:
            continue
        for index in range(first, min(after, first + _LONGEST_HEAD)):
            word = tokens.word(index)
            if word in ("(", "="):
                break
            if (word[:1].isalpha() or word[:1] in "_`") and word not in _KINDS:
                names.append(_name(word, tokens.starts[index]))
    return tuple({name.text: name for name in names}.values())


def _name(written: str, start: int) -> syntax.Name:
    span = Span(start, start + len(written))
    if written.startswith("`"):
        return syntax.Name(written[1:-1].replace("``", "`"), span, quoted=True)
    return syntax.Name(written, span)


def begun_names(tokens: Tokens, broken: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """The beginnings of the names on which broken statements end: ``stream pri``. Empty if they end before."""
    names = []
    for first, after in broken:
        words = [tokens.word(index) for index in range(first, after) if tokens.word(index) != ";"]
        if words[:1] == ["global"]:
            del words[0]
        if words and words[0] in _OTHERS:
            continue
        if words[1:2] in (["="], ["("]) and words[0] in _KINDS:  # it lacks its name
            names.append("")
        if len(words) > 2:
            continue
        names.append(words[1].strip("`") if len(words) == 2 else "")
    return tuple(names)


def swallows(tokens: Tokens) -> bool:
    """Whether a string holds a line that begins a statement: its quote is missing, more likely than not."""
    words = (tokens.word(index) for index in range(len(tokens.kinds)))
    return any(word.startswith("'") and "\n" in word and STARTS.search(word) for word in words)
