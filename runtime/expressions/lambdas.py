"""The functions that take a lambda, which says what becomes of each element of an array: for one row, and for columns.

Over columns, the lambda is evaluated once for all elements of many rows. Where one fails, the rows decide: `exists` and
`forall` may not have come to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Lambda
from vsc.plan.types import INT
from vsc.runtime.expressions.forms import Argument, Lazy, Uncertain, true_rows
from vsc.runtime.values import arrow_type

if TYPE_CHECKING:
    from vsc.runtime.expressions.columns import Columns

__all__ = ["EXISTS", "FILTER", "FORALL", "REDUCE", "TRANSFORM", "TRANSFORM_VALUES"]

_MOST = 1 << 16
"""How many elements are looked at together."""

_Gathers = Callable[[Any, Iterator[Any]], Any]
"""The result of an array or a map, and of what the lambda gives for each element, computed as it is asked for."""
_Pairs = Callable[[Any], Iterable[tuple[Any, Any]]]
"""What the lambda takes, of each element."""


def _numbered(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return ((item, number) for number, item in enumerate(items))


def _in_row(gathers: _Gathers, pairs: _Pairs = _numbered) -> Callable[[Call, Sequence[Argument]], Argument]:
    def row(call: Call, args: Sequence[Argument]) -> Argument:
        array, body = args
        width = 4 + 2 * _lambda(call).depth

        def evaluate(record: Any) -> Any:
            items = array(record)
            if items is None:
                return None
            seen = record[:width]
            return gathers(items, (body((*seen, *pair)) for pair in pairs(items)))

        return evaluate

    return row


def _chosen(items: list[Any], results: Iterator[Any]) -> list[Any]:
    return [item for item, found in zip(items, results, strict=True) if found]


def _decided(decisive: bool) -> _Gathers:
    def gather(_: list[Any], results: Iterator[Any]) -> bool | None:
        unknown = False
        for found in results:
            if found is decisive:
                return bool(found)
            unknown = unknown or found is None
        return None if unknown else not decisive

    return gather


def _lambda(call: Call, argument: int = 1) -> Lambda:
    found = call.args[argument]
    assert isinstance(found, Lambda)
    return found


class _Elements:
    """The elements of an array in each row, one below the other."""

    def __init__(self, columns: Columns, call: Call) -> None:
        array = columns.array(call.args[0])
        self.null = array.is_null().to_numpy(zero_copy_only=False)
        self.items = pc.list_flatten(array)
        if len(self.items) > _MOST:
            raise Uncertain  # of fewer rows, as `evaluate` halves them: columns of the row are copied for each element
        self.rows = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
        self.starts = np.searchsorted(self.rows, np.arange(columns.length))
        numbers = pa.array(np.arange(len(self.rows)) - self.starts[self.rows], arrow_type(INT))
        self.results = columns.at(self.rows, self.items, numbers).array(_lambda(call).body)

    def lists(self, items: pa.Array, rows: np.ndarray[Any, Any], type: pa.DataType) -> pa.Array:
        """An array in each row, of the `items` that belong to `rows`."""
        offsets = np.append(np.searchsorted(rows, np.arange(len(self.null))), len(rows)).astype(np.int32)
        mask = pa.array(self.null) if self.null.any() else None
        return pa.ListArray.from_arrays(pa.array(offsets), items, type, mask=mask)


def _transform_column(columns: Columns, call: Call) -> pa.Array:
    found = _Elements(columns, call)
    return found.lists(found.results, found.rows, arrow_type(call.type))


def _filter_column(columns: Columns, call: Call) -> pa.Array:
    found = _Elements(columns, call)
    kept = true_rows(found.results)
    return found.lists(found.items.filter(pa.array(kept)), found.rows[kept], arrow_type(call.type))


def _decided_column(decisive: bool) -> Callable[[Columns, Call], pa.Array]:
    def column(columns: Columns, call: Call) -> pa.Array:
        found = _Elements(columns, call)
        rows = len(found.null)
        decides = np.bincount(found.rows[true_rows(pc.equal(found.results, decisive))], minlength=rows) > 0
        unknown = np.bincount(found.rows[found.results.is_null().to_numpy(zero_copy_only=False)], minlength=rows) > 0
        values = np.where(decides, decisive, not decisive)
        return pa.array(values, mask=found.null | (unknown & ~decides))

    return column


EXISTS = Lazy(_in_row(_decided(True)), _decided_column(True))
FORALL = Lazy(_in_row(_decided(False)), _decided_column(False))
FILTER = Lazy(_in_row(_chosen), _filter_column)
TRANSFORM = Lazy(_in_row(lambda _, results: list(results)), _transform_column)


def _reduce_row(call: Call, args: Sequence[Argument]) -> Argument:
    array, start, merge, *finish = args
    width = 4 + 2 * _lambda(call, 2).depth

    def evaluate(record: Any) -> Any:
        items = array(record)
        if items is None:
            return None
        seen, so_far = record[:width], start(record)
        for item in items:
            so_far = merge((*seen, so_far, item))
        return finish[0]((*seen, so_far, None)) if finish else so_far

    return evaluate


def _mapped(entries: dict[Any, Any], results: Iterator[Any]) -> dict[Any, Any]:
    return dict(zip(entries, results, strict=True))


def _rows_decide(columns: Columns, call: Call) -> pa.Array:
    """An element waits for the one before it, and a map has few entries: no columns."""
    return columns.by_rows(call)


REDUCE = Lazy(_reduce_row, _rows_decide)
TRANSFORM_VALUES = Lazy(_in_row(_mapped, dict.items), _rows_decide)
