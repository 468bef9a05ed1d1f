"""Passwords and keys written into a topology: they would end up in the plan, and with it in every checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding

__all__ = ["written_secrets"]

_NAMES = ("password", "client.secret", "ssl.key.pem", "ssl.keystore.key")
_IN_TEXT = re.compile(r"""(?:[?&](\w*password)=|\b(\w*password)\s*=\s*(["']))(?!\$\{)[^&"']""", re.IGNORECASE)
"""A parameter of a URL, or a quoted value as in Java's `sasl.jaas.config`."""


def written_secrets(clause: syntax.ConnectorClause) -> Iterator[Finding]:
    """A finding for each option of a connector that holds a password or a private key instead of a variable."""
    for option in clause.options:
        text = option.value.value if isinstance(option.value, syntax.Literal) else None
        if not isinstance(text, str):
            continue
        name = option.name.text
        if option.quoted and text and name.lower().endswith(_NAMES) and "${" not in text:
            variable = name.rpartition(".")[2]  # a shell's variable has no dots
            yield _finding(option, f"`{name}` is written as text, and every checkpoint would hold it",
                           f"write `'{name}' = '${{{variable}}}'`, and give it in the environment")  # fmt: skip
        elif (found := _IN_TEXT.search(text)) is not None:
            key, quote = found[1] or found[2], found[3] or ""
            yield _finding(option, f"`{name}` holds a password as text, and every checkpoint would hold it",
                           f"write `{key}={quote}${{{key}}}{quote}`, and give it in the environment")  # fmt: skip


def _finding(option: syntax.Option, message: str, action: str) -> Finding:
    return Finding("VSC505", option.name.span, message, (), action)
