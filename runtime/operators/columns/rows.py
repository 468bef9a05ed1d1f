"""Records between columns and rows of Python values: for operators that take their records one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Mask
from vsc.runtime.values import to_array, to_values

__all__ = ["columns_of", "rows_of", "there"]


def rows_of(columns: Sequence[pa.Array], schema: Sequence[Column], count: int) -> list[Row]:
    """The `count` rows of columns."""
    values = [to_values(column, c.type) for column, c in zip(columns, schema, strict=True)]
    return list(zip(*values, strict=True)) if values else [()] * count


def columns_of(rows: Sequence[Row | None], schema: Sequence[Column]) -> tuple[pa.Array, ...]:
    """The columns of rows; a missing row is null."""
    absent = (None,) * len(schema)
    columns = zip(*[absent if row is None else row for row in rows], strict=True) if rows else [()] * len(schema)
    return tuple(to_array(column, c.type) for column, c in zip(columns, schema, strict=True))


def there(rows: Sequence[Row | None]) -> Mask:
    """Where a row exists."""
    return np.fromiter((row is not None for row in rows), dtype=np.bool_, count=len(rows))
