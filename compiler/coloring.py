"""How the text of a topology is coloured: rules made from the compiler's own lists of words.

Both users take them from here: the lexer for Pygments (`vsc.highlight`) and the grammar of the extension for VS Code
(``python -m tools.textmate`` writes it). The patterns mean the same in Python and in TextMate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal as Choice

from vsc.compiler.parser.lexer import CALENDAR_UNITS, UNITS
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.parser.types import TYPE_NAMES
from vsc.plan.functions import AGGREGATES, FUNCTIONS
from vsc.plan.record import record

__all__ = ["Kind", "Rule", "coloring"]

Kind = Choice[
    "comment", "string", "variable", "declaration", "node", "name", "float", "integer", "unit", "function", "operator",
    "word operator", "constant", "type", "keyword", "punctuation",
]  # fmt: skip

_CONSTANTS = ("false", "none", "null", "true")
_DECLARING = ("function", "let", "sink", "stream", "table", "topology")
_WORD_OPERATORS = ("and", "between", "in", "is", "like", "not", "or")
_PUNCTUATION = ("(", ")", "[", "]", ",", ";", ".", ":")


@record
class Rule:
    """Text that matches `pattern` has a kind; with several kinds, each is that of a group, and the rest is blank."""

    pattern: str
    kinds: tuple[Kind, ...]


def coloring() -> tuple[Rule, ...]:
    """The rules: the first one that matches decides. Text that matches none is blank."""
    tables = load_tables()
    pattern = tables.patterns
    quoted, plain = pattern["QUOTED"], pattern["NAME"]
    signs = set(tables.signs) - set(_PUNCTUATION)
    keywords = set(tables.words) - {*_CONSTANTS, *_WORD_OPERATORS}
    return (
        Rule(pattern["COMMENT"], ("comment",)),
        Rule(pattern["STRING"], ("string",)),
        Rule(pattern["VARIABLE"], ("variable",)),
        Rule(rf"\b({_any(_DECLARING)})\s+({plain}|{quoted})(?=\s*(?:[(=;]|to\b))", ("declaration", "node")),
        Rule(quoted, ("name",)),
        Rule(rf"\b(?:{pattern['DOUBLE']}|{pattern['DECIMAL']})", ("float",)),
        Rule(rf"\b([0-9]+)\s+({_any((*UNITS, *CALENDAR_UNITS))})\b", ("integer", "unit")),
        Rule(rf"\b{pattern['INTEGER']}\b", ("integer",)),
        Rule(rf"\b(?:{_any([*FUNCTIONS, *AGGREGATES, 'cast', 'try_cast'])})(?=\s*\()", ("function",)),
        Rule(rf"\b(?:{_any(_WORD_OPERATORS)})\b", ("word operator",)),
        Rule(rf"\b(?:{_any(_CONSTANTS)})\b", ("constant",)),
        Rule(rf"\b(?:{_any(TYPE_NAMES)})(?=\s*(?:[,)<>(]|$))", ("type",)),
        Rule(rf"(?<!\.)\b(?:{_any(keywords)})\b", ("keyword",)),
        Rule(plain, ("name",)),
        Rule(_any(signs), ("operator",)),
        Rule(_any(_PUNCTUATION), ("punctuation",)),
    )


def _any(words: Iterable[str]) -> str:
    """A pattern for any of these words, longer ones before their own prefixes."""
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))
