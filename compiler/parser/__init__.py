"""Turns text into a syntax tree.

`parse` reads a file and `parse_expression` one expression. `variables_in` lists the variables of a text.
`read_statements` builds a tree with the caller's own builder.

Every text gives a tree and findings, never an exception. A statement that cannot be read is reported where it goes
wrong and left out; reading continues after its ``;``. `vsc.grammar` defines the language. Its tables are built in
advance, so lark is not loaded here.
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
