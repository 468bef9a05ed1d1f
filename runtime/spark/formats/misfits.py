"""Why a row of a source cannot be read, in the user's words; texts that are not text, and times of other years."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.records import Int64s

__all__ = ["misfit", "not_text", "outside_years", "shown"]

_SHOWN = 80
_NONE: Int64s = np.zeros(0, np.int64)
_YEARS = {
    pa.date32(): (pa.int32(), -719_162, 2_932_896),
    pa.timestamp("us", "UTC"): (pa.int64(), -62_135_596_800_000_000, 253_402_300_799_999_999),
}
"""The numbers that the types of times are made of: their type, and those with which the years 1 to 9999 begin and
end."""


def misfit(column: Column, held: str) -> str:
    """That a column cannot hold what a row has."""
    return f"column '{column.name}' ({column.type}) cannot hold {shown(held)}"


def shown(text: str) -> str:
    """A text of the data in a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def not_text(column: pa.Array) -> Int64s:
    """The rows of a column in which a string, at whatever depth, is not UTF-8."""
    return _rows(column, pa.types.is_string, _not_utf8)


def outside_years(column: pa.Array) -> Int64s:
    """The rows of a column in which a date or a timestamp, at whatever depth, is not of the years 1 to 9999."""
    return _rows(column, _YEARS.__contains__, _not_in_years)


def _rows(column: pa.Array, is_kind: Callable[[pa.DataType], bool], wrong: Callable[[pa.Array], Int64s]) -> Int64s:
    """The rows of a column in which a value of a kind is `wrong`."""
    kind = column.type
    if is_kind(kind):
        return wrong(column)
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    elif pa.types.is_struct(kind):
        found = [_rows(child, is_kind, wrong) for child in column.flatten()]
        return np.unique(np.concatenate(found)) if found else _NONE
    elif not pa.types.is_list(kind):
        return _NONE
    bad = _rows(column.flatten(), is_kind, wrong)
    return np.unique(pc.list_parent_indices(column).to_numpy()[bad]) if len(bad) else bad


def _not_in_years(column: pa.Array) -> Int64s:
    physical, first, last = _YEARS[column.type]
    numbers = column.view(physical)
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None or (ends["min"] >= first and ends["max"] <= last):
        return _NONE
    outside = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
    return np.flatnonzero(pc.fill_null(outside, False).to_numpy(zero_copy_only=False))


def _not_utf8(column: pa.Array) -> Int64s:
    raw = column.cast(pa.binary())
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        return np.fromiter(_broken(raw.to_pylist()), np.int64)
    return _NONE


def _broken(values: list[bytes | None]) -> Iterator[int]:
    for row, value in enumerate(values):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            yield row
