"""Names and code in messages, as a user has to write them."""

from __future__ import annotations

import re

__all__ = ["HARD_WORDS", "code", "listed", "named", "string"]

HARD_WORDS = frozenset(
    ("and", "or", "not", "in", "is", "like", "between", "case", "when", "then", "else", "end", "cast", "null", "true",
     "false", "as", "select", "where")
)  # fmt: skip
"""The words that are names only in backticks."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MOST = 8


def named(name: str) -> str:
    """A name as the language writes it: in backticks if it needs them."""
    return name if _PLAIN.match(name) and name not in HARD_WORDS else "`" + name.replace("`", "``") + "`"


def string(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def code(text: str) -> str:
    """Code inside a sentence: between backticks, between doubled ones if it has some itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def listed(names: list[str]) -> str:
    """Names inside a sentence: ``a, b and c``, each as `code`; the first few of many."""
    shown = [code(named(name)) for name in names]
    if len(shown) > _MOST:
        return ", ".join(shown[:_MOST]) + ", ..."
    if len(shown) < 2:
        return shown[0] if shown else "none"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
