"""Which random topologies a test runs: a few fixed ones, or those that an environment variable asks for."""

from __future__ import annotations

import os

__all__ = ["of_both_sizes", "seeds"]


def seeds(name: str, usual: int) -> range:
    """The seeds of a test: the first `usual`, or what the variable `name` says: ``500``, or ``1200:1300``."""
    first, _, last = os.environ.get(name, str(usual)).rpartition(":")
    return range(int(first or 0), int(last))


def of_both_sizes(name: str, usual: int, large: int) -> list[tuple[bool, int]]:
    """Small topologies, then large ones: whether a case is large, and its seed."""
    return [(False, seed) for seed in seeds(name, usual)] + [(True, seed) for seed in seeds(name, large)]
