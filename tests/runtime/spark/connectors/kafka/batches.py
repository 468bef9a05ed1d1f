"""Records as a task of the sink gets them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = ["Headers", "records"]

Headers = Sequence[tuple[str, bytes | None]]
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def records(
    *rows: tuple[bytes | None, bytes | None, int], headers: Sequence[Headers | None] | None = None
) -> pa.RecordBatch:
    """A batch of (key, value, time in ms), and of their headers."""
    columns = [
        pa.array([row[i] for row in rows], type) for i, type in enumerate((pa.binary(), pa.binary(), pa.int64()))
    ]
    names = ["key", "value", "timestamp"]
    if headers is not None:
        found = [None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers]
        columns.append(pa.array(found, pa.list_(_HEADER)))
        names.append("headers")
    return pa.RecordBatch.from_arrays(columns, names)
