"""vsc, as with four files a batch."""

from __future__ import annotations

from bench.comparisons.stream_table_join.vsc_versioned import measure

__all__ = ["measure"]
