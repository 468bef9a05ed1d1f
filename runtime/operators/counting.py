"""Records that an operator drops, counted with their reason."""

from __future__ import annotations

import numpy as np

from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.records import Mask

__all__ = ["count"]


def count(metrics: Metrics, node: str, reason: Dropped, bad: Mask) -> None:
    """Counts the records where `bad` is true as dropped."""
    metrics.count(node, Group.DROPPED_RECORDS, reason, int(np.count_nonzero(bad)))
