"""Columns as Spark SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ddl", "quoted"]


def quoted(name: str) -> str:
    """A column's name as Spark SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def ddl(columns: Iterable[tuple[str, object]]) -> str:
    """Names and types as Spark's DDL."""
    return ", ".join(f"{quoted(name)} {type}" for name, type in columns)
