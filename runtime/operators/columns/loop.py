"""Rows that a loop over records has made, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Mask
from vsc.runtime.values import to_array

__all__ = ["columns_of", "there"]


def columns_of(rows: Sequence[Row | None], schema: Sequence[Column]) -> tuple[pa.Array, ...]:
    """The columns of rows; a missing row is null."""
    absent = (None,) * len(schema)
    columns = zip(*[absent if row is None else row for row in rows], strict=True) if rows else [()] * len(schema)
    return tuple(to_array(column, c.type) for column, c in zip(columns, schema, strict=True))


def there(rows: Sequence[Row | None]) -> Mask:
    """Where a row exists."""
    return np.fromiter((row is not None for row in rows), dtype=np.bool_, count=len(rows))
