"""Which random topologies a test runs: a few fixed ones, or those that an environment variable asks for."""

from __future__ import annotations

import os

__all__ = ["seeds"]


def seeds(name: str, usual: int) -> range:
    """The seeds of a test: the first `usual`, or what the variable `name` says: ``500``, or ``1200:1300``."""
    first, _, last = os.environ.get(name, str(usual)).rpartition(":")
    return range(int(first or 0), int(last))
