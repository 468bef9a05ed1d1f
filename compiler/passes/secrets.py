"""Passwords and keys written into a topology: they would end up in the plan, and with it in every checkpoint."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.plan.secrets import instead_of_secret, is_secret

__all__ = ["written_secrets"]


def written_secrets(clause: syntax.ConnectorClause, own: Container[str]) -> Iterator[Finding]:
    """A finding for each option of a connector that holds a password or a private key instead of a variable.

    `own` are the options of the connector itself; other names are written in quotes.
    """
    for option in clause.options:
        text = option.value.value if isinstance(option.value, syntax.Literal) else None
        if not isinstance(text, str):
            continue
        name = option.name.text
        if text and is_secret(name) and "${" not in text and not (name == "registry_auth" and text.startswith("file:")):
            variable = re.sub(r"\W", "_", name.rpartition(".")[2])  # a shell's variable has no dots
            quoted = f"'{name}'" if option.quoted or name not in own else name
            yield _finding(option, f"`{name}` is written as text, and every checkpoint would hold it",
                           f"write `{quoted} = '${{{variable}}}'`, and give it in the environment")  # fmt: skip
        elif (instead := instead_of_secret(text)) is not None:
            yield _finding(option, f"`{name}` holds a password as text, and every checkpoint would hold it",
                           f"write `{instead}`, and give it in the environment")  # fmt: skip


def _finding(option: syntax.Option, message: str, action: str) -> Finding:
    return Finding("VSC505", option.name.span, message, (), action)
