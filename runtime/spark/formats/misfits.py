"""Why a row of a source cannot be read, in the user's words; and texts that are not text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.records import Int64s

__all__ = ["misfit", "not_text", "shown"]

_SHOWN = 80


def misfit(column: Column, held: str) -> str:
    """That a column cannot hold what a row has."""
    return f"column '{column.name}' ({column.type}) cannot hold {shown(held)}"


def shown(text: str) -> str:
    """A text of the data in a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def not_text(column: pa.Array) -> Int64s:
    """The rows of a column in which a string, at whatever depth, is not UTF-8."""
    kind = column.type
    if pa.types.is_string(kind):
        return _not_utf8(column)
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    elif pa.types.is_struct(kind):
        found = [not_text(child) for child in column.flatten()]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
    elif not pa.types.is_list(kind):
        return np.zeros(0, np.int64)
    bad = not_text(column.flatten())
    return np.unique(pc.list_parent_indices(column).to_numpy()[bad]) if len(bad) else bad


def _not_utf8(column: pa.Array) -> Int64s:
    raw = column.cast(pa.binary())
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        return np.fromiter(_broken(raw.to_pylist()), np.int64)
    return np.zeros(0, np.int64)


def _broken(values: list[bytes | None]) -> Iterator[int]:
    for row, value in enumerate(values):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            yield row
