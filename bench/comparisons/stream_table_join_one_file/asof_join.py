"""Spark's own ``ASOF JOIN``, as with four files a batch."""

from __future__ import annotations

from bench.comparisons.stream_table_join.asof_join import measure

__all__ = ["measure"]
