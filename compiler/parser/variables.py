"""Replaces ``${name}`` by the variable's value."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.source import Span
from vsc.plan.secrets import is_secret

__all__ = ["REFERENCE", "expand", "value_of"]

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable inside a string."""


def expand(written: str, start: int, variables: Mapping[str, str]) -> tuple[str, list[Finding]]:
    """Unescapes the inside of a string literal, which begins at offset `start`, and replaces its variables.

    A value is inserted as is: text in it that looks like a variable or a doubled quotation mark stays. A variable
    without a value, or with the name of a secret, is reported and stays in the text.
    """
    findings: list[Finding] = []
    pieces: list[str] = []
    at = 0
    for match in REFERENCE.finditer(written):
        pieces.append(written[at : match.start()].replace("''", "'"))
        value = value_of(match.group(1), Span(start + match.start(), start + match.end()), variables)
        if isinstance(value, Finding):
            findings.append(value)
        pieces.append(match.group() if isinstance(value, Finding) else value)
        at = match.end()
    pieces.append(written[at:].replace("''", "'"))
    return "".join(pieces), findings


def value_of(name: str, span: Span, variables: Mapping[str, str]) -> str | Finding:
    """The value of a variable outside of connector options; what is wrong if it has none, or is a secret by its name.

    The plan holds such a value, and with it every checkpoint; a connector's variables get theirs when it runs.
    """
    if is_secret(name):
        message = f"the variable `{name}` has the name of a secret, and the plan would hold its value"
        help = "use it in options of connectors only; if it is not one, give it another name"
        return Finding("VSC014", span, message, (), help)
    value = variables.get(name)
    if value is not None:
        return value
    help = f"give it with `--var {name}=...` or in the environment"
    return Finding("VSC014", span, f"the variable `{name}` has no value", (), help)
