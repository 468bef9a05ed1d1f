"""Text to syntax tree: `parse` for a file, `parse_expression` for one expression; `variables_in` for the names of
its variables; `read_statements` for a tree of one's own.

Every text gives a tree and findings, never an exception: a statement that cannot be read is reported where it goes
wrong and left out, and reading goes on behind its ``;``. The language is `vsc.grammar`'s; lark has turned it into
tables beforehand, so nothing of lark is loaded here.
"""

from __future__ import annotations

from vsc.compiler.parser.reader import (
    MAX_CHARACTERS,
    Parsed,
    ParsedExpression,
    Read,
    parse,
    parse_expression,
    read_statements,
    variables_in,
)

__all__ = [
    "MAX_CHARACTERS",
    "Parsed",
    "ParsedExpression",
    "Read",
    "parse",
    "parse_expression",
    "read_statements",
    "variables_in",
]
