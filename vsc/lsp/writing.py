"""Writes names into a text."""

from __future__ import annotations

import re

from vsc.compiler.parser.tables import load_tables

__all__ = ["written"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def written(name: str) -> str:
    """A name, in backticks if it needs them."""
    tables = load_tables()
    reserved = tables.words.get(name) in tables.reserved
    return name if _PLAIN.match(name) and not reserved else "`" + name.replace("`", "``") + "`"
