"""The stream of `bench.comparisons.count_by_key`: its event times advance, so windows close."""

from __future__ import annotations

from bench.comparisons.count_by_key.rows import write

__all__ = ["write"]
