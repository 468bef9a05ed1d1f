"""Passwords written into a topology: they would end up in the plan, and with it in every checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding

__all__ = ["written_secrets"]

_IN_URL = re.compile(r"[?&](\w*password)=(?!\$\{)[^&]", re.IGNORECASE)


def written_secrets(clause: syntax.ConnectorClause) -> Iterator[Finding]:
    """A finding for each option of a connector that holds a password instead of a variable."""
    for option in clause.options:
        text = option.value.value if isinstance(option.value, syntax.Literal) else None
        if not isinstance(text, str):
            continue
        name = option.name.text
        if option.quoted and text and name.lower().endswith("password") and "${" not in text:
            yield _finding(option, f"`{name}` is written as text, and every checkpoint would hold it",
                           f"write `'{name}' = '${{{name}}}'`, and give it in the environment")  # fmt: skip
        elif (found := _IN_URL.search(text)) is not None:
            yield _finding(option, f"`{name}` holds a password as text, and every checkpoint would hold it",
                           f"write `{found[1]}=${{{found[1]}}}`, and give it in the environment")  # fmt: skip


def _finding(option: syntax.Option, message: str, action: str) -> Finding:
    return Finding("VSC505", option.name.span, message, (), action)
