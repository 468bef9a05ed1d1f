"""All comparisons, in the order of the page. `bench.comparison` says what makes one."""

from __future__ import annotations

from importlib import import_module

from bench.comparison import Comparison

__all__ = ["NAMES", "comparison"]

NAMES = (
    "stream_table_join",
    "stream_table_join_one_file",
    "primary_key_join",
    "foreign_key_join",
    "stream_stream_join",
    "count_by_key",
    "tumbling_final",
)
"""The packages here."""


def comparison(name: str) -> Comparison:
    """The comparison of a package. Imports nothing that needs Spark."""
    found: Comparison = import_module(f"{__name__}.{name}").COMPARISON
    return found
