"""The grammar of the language, as data.

``vsc.lark`` defines the language, for people and for lark. ``tables.json`` holds the LALR tables built from it; the
compiler loads these, so that no grammar is compiled when ``vsc`` starts. ``forms.json`` holds how operations look and
the order of their clauses (`vsc.grammar.forms`). ``python -m vsc.grammar`` rebuilds both.
This package does not depend on the compiler.
"""

from __future__ import annotations

import pkgutil

__all__ = ["read", "read_forms", "read_tables"]


def read() -> str:
    """The text of the grammar, ``vsc.lark``."""
    return _read("vsc.lark")


def read_tables() -> str:
    """The text of ``tables.json``. `vsc.grammar.build` describes its format."""
    return _read("tables.json")


def read_forms() -> str:
    """The text of ``forms.json``. `vsc.grammar.build_forms` describes its format."""
    return _read("forms.json")


def _read(name: str) -> str:
    data = pkgutil.get_data(__name__, name)  # the package may be in a zip file
    assert data is not None, name
    return data.decode("utf-8")
