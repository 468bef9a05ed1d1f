"""Replaces ``${name}`` by the variable's value."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.source import Span

__all__ = ["REFERENCE", "expand", "missing_variable"]

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable inside a string."""


def expand(written: str, start: int, variables: Mapping[str, str]) -> tuple[str, list[Finding]]:
    """Unescapes the inside of a string literal, which begins at offset `start`, and replaces its variables.

    A value is inserted as is: text in it that looks like a variable or a doubled quotation mark stays. A variable
    without a value is reported and stays in the text.
    """
    findings: list[Finding] = []
    pieces: list[str] = []
    at = 0
    for match in REFERENCE.finditer(written):
        pieces.append(written[at : match.start()].replace("''", "'"))
        value = variables.get(match.group(1))
        if value is None:
            findings.append(missing_variable(match.group(1), Span(start + match.start(), start + match.end())))
        pieces.append(match.group() if value is None else value)
        at = match.end()
    pieces.append(written[at:].replace("''", "'"))
    return "".join(pieces), findings


def missing_variable(name: str, span: Span) -> Finding:
    """The finding for a variable without a value."""
    help = f"give it with `--var {name}=...` or in the environment"
    return Finding("VSC014", span, f"the variable `{name}` has no value", (), help)
