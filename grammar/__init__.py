"""The grammar of the language, as data.

`vsc.lark` is the language, for people and for lark; ``tables.json`` is the same as the LALR tables that the compiler
loads, so that no grammar is compiled when ``vsc`` starts. ``python -m vsc.grammar`` makes the second from the first.
This package knows nothing of the compiler.
"""

from __future__ import annotations

import pkgutil

__all__ = ["read", "read_tables"]


def read() -> str:
    """The text of the grammar, ``vsc.lark``."""
    return _read("vsc.lark")


def read_tables() -> str:
    """The text of ``tables.json`` (its form: see `vsc.grammar.build`)."""
    return _read("tables.json")


def _read(name: str) -> str:
    data = pkgutil.get_data(__name__, name)  # the package may lie in a zip file
    assert data is not None, name
    return data.decode("utf-8")
