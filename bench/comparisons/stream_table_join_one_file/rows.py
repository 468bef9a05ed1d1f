"""The same rows as with four files a batch."""

from __future__ import annotations

from bench.comparisons.stream_table_join.rows import write

__all__ = ["write"]
