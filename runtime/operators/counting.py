"""Records that an operator drops, counted with their reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.records import Mask

__all__ = ["count", "null_rows"]


def count(metrics: Metrics, node: str, reason: Dropped, bad: Mask) -> None:
    """Counts the records where `bad` is true as dropped."""
    metrics.count(node, Group.DROPPED_RECORDS, reason, int(np.count_nonzero(bad)))


def null_rows(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Where one of the columns is null."""
    null = np.zeros(rows, dtype=np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null
