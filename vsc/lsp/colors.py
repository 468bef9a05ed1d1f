"""Semantic colours, for editors that take them from the server: by the compiler's rules and each name's meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from vsc.compiler.coloring import Kind, coloring
from vsc.compiler.source import Span
from vsc.lsp.document import Document

__all__ = ["TOKEN_TYPES", "colors"]

TOKEN_TYPES = ("comment", "string", "number", "keyword", "operator", "type", "function", "variable", "class",
               "property", "parameter")  # fmt: skip
"""The protocol's names for kinds of token; a token gives an index into them."""

_OF_KINDS: dict[Kind, str] = {
    "comment": "comment", "string": "string", "variable": "variable", "float": "number", "integer": "number",
    "unit": "keyword", "declaration": "keyword", "keyword": "keyword", "word operator": "keyword",
    "constant": "keyword", "operator": "operator", "type": "type", "function": "function", "node": "class",
}  # fmt: skip
_OF_SYMBOLS = {"node": "class", "column": "property", "alias": "parameter"}
_LINE = re.compile(r"[^\r\n]+")


def colors(document: Document) -> list[int]:
    """Five numbers for each token: lines and characters since the previous one, length, type, and 0."""
    data: list[int] = []
    line = character = 0
    for span, token_type in _tokens(document):
        start, end = document.positions.position(span.start), document.positions.position(span.end)
        moved = start.line - line
        data += [moved, start.character - (0 if moved else character), end.character - start.character,
                 TOKEN_TYPES.index(token_type), 0]  # fmt: skip
        line, character = start.line, start.character
    return data


def _tokens(document: Document) -> Iterator[tuple[Span, str]]:
    """The spans to colour, in order. No span crosses a line end."""
    meant = {one.span: _OF_SYMBOLS[one.symbol.kind] for one in document.names.occurrences}
    for span, kind in _parts(document.text):
        token_type = meant.get(span) or _OF_KINDS.get(kind)
        if token_type is not None:
            for match in _LINE.finditer(document.text, span.start, span.end):
                yield Span(match.start(), match.end()), token_type


def _parts(text: str) -> Iterator[tuple[Span, Kind]]:
    pattern, kinds = _pattern()
    for match in pattern.finditer(text):
        assert match.lastindex is not None
        for group, kind in kinds[next(number for number in kinds if match[number] is not None)]:
            yield Span(match.start(group), match.end(group)), kind


@cache
def _pattern() -> tuple[re.Pattern[str], dict[int, list[tuple[int, Kind]]]]:
    """All rules as one pattern, and for each rule's group the groups of its kinds."""
    alternatives, kinds, number = [], {}, 1
    for rule in coloring():
        inner = re.compile(rule.pattern).groups
        whole = len(rule.kinds) == 1
        kinds[number] = [(number if whole else number + 1 + place, kind) for place, kind in enumerate(rule.kinds)]
        alternatives.append(f"({rule.pattern})")
        number += 1 + inner
    return re.compile("|".join(alternatives), re.MULTILINE), kinds
