"""Passwords and keys written into a topology: they would end up in the plan, and with it in every checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding

__all__ = ["written_secrets"]

_SECRET = r"(?:password|passwd|passphrase|pwd|secret|secret[._-]?(?:access[._-]?)?key|token|api[._-]?key|credentials)"
_NAME = re.compile(
    rf"{_SECRET}$|(?:^|\.)(?:ssl\.key\.pem|ssl\.keystore\.key|basic\.auth\.user\.info|private[._-]?key)$"
    r"|\.(?:account\.key|client\.secret)\.|\.sas\.(?:fixed\.)?token",
    re.IGNORECASE,
)
"""What the option of a secret is called: ``kafka.ssl.key.password``, ``fs.s3a.secret.key``."""
_PLAIN = re.compile(r"(?:endpoint|url|uri|provider|location|path|file|class)$", re.IGNORECASE)
"""What ends the name of an option that only says where a secret is."""
_PARAMETER = re.compile(
    rf"""(?:[?&;\s]|^)(\w*{_SECRET}|AccountKey|SharedAccessKey|sig)=(?!\$\{{)[^&;"'\s]""", re.IGNORECASE
)
"""A parameter of a URL, or a part of a connection string."""
_LOGIN = re.compile(rf"""\b(\w*(?:{_SECRET}|private_?key))\s*=\s*(["'])(?!\$\{{)[^"']""", re.IGNORECASE)
"""A quoted value as in Java's `sasl.jaas.config`: ``password="..."``, ``clientSecret="..."``."""
_USER = re.compile(r"(\w[\w+.-]*://)([^/?#@:\s]*):(?!\$\{[^}]*\}@)[^/?#@\s]+@")
"""``scheme://user:secret@host``."""


def written_secrets(clause: syntax.ConnectorClause) -> Iterator[Finding]:
    """A finding for each option of a connector that holds a password or a private key instead of a variable."""
    for option in clause.options:
        text = option.value.value if isinstance(option.value, syntax.Literal) else None
        if not isinstance(text, str):
            continue
        name = option.name.text
        if option.quoted and text and _NAME.search(name) and not _PLAIN.search(name) and "${" not in text:
            variable = re.sub(r"\W", "_", name.rpartition(".")[2])  # a shell's variable has no dots
            yield _finding(option, f"`{name}` is written as text, and every checkpoint would hold it",
                           f"write `'{name}' = '${{{variable}}}'`, and give it in the environment")  # fmt: skip
        elif (instead := _inside(text)) is not None:
            yield _finding(option, f"`{name}` holds a password as text, and every checkpoint would hold it",
                           f"write `{instead}`, and give it in the environment")  # fmt: skip


def _inside(text: str) -> str | None:
    """What to write for a secret inside of a text; None if there is none."""
    if (found := _PARAMETER.search(text)) is not None:
        return f"{found[1]}=${{{found[1]}}}"
    if (found := _LOGIN.search(text)) is not None:
        return f"{found[1]}={found[2]}${{{found[1]}}}{found[2]}"
    if (found := _USER.search(text)) is not None:
        return f"{found[1]}{found[2]}:${{password}}@"
    return None


def _finding(option: syntax.Option, message: str, action: str) -> Finding:
    return Finding("VSC505", option.name.span, message, (), action)
