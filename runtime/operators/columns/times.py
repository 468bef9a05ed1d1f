"""Event times that an expression computes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.types import TIMESTAMP, DataType
from vsc.runtime.records import Int64s, Mask

__all__ = ["event_times"]


def event_times(column: pa.Array, type: DataType) -> tuple[Int64s, Mask]:
    """The times in ms (a ``timestamp`` is floored, any other type is in ms), and where the time is missing."""
    null: Mask = column.is_null().to_numpy(zero_copy_only=False)
    numbers = column.view(pa.int64()) if type == TIMESTAMP else column.cast(pa.int64())
    times: Int64s = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return (np.floor_divide(times, 1000) if type == TIMESTAMP else times), null
