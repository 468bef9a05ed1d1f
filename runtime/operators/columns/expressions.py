"""A node's expressions over whole columns, and which rows they fail on.

An expression that fails on some row is evaluated again row by row, to find all such rows: failures are rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import ColumnFailure, Frame, evaluate
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import items
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import to_array, to_values

__all__ = ["Computed", "compute", "nulled", "true_rows"]


@dataclass(frozen=True, slots=True)
class Computed:
    """The columns of the items, null where `failures` (row, failure) says that one of them could not be computed."""

    columns: tuple[pa.Array, ...]
    failures: tuple[tuple[int, NodeFailure], ...] = ()


def compute(
    node: str,
    computed: Sequence[Item],
    schema: Schema,
    columns: Sequence[pa.Array],
    times: Int64s | None,
    rows: Mask,
) -> Computed:
    """Evaluates the items for the rows where `rows` is true; the results are null in the others."""
    if rows.all():
        return _compute(node, computed, schema, columns, times)
    chosen = pa.array(rows)
    some = _compute(node, computed, schema, [c.filter(chosen) for c in columns], None if times is None else times[rows])
    places = np.flatnonzero(rows)
    spread = np.cumsum(rows) - 1
    back = pa.array(spread, mask=~rows)
    failures = tuple((int(places[row]), failure) for row, failure in some.failures)
    return Computed(tuple(c.take(back) for c in some.columns), failures)


def _compute(
    node: str, computed: Sequence[Item], schema: Schema, columns: Sequence[pa.Array], times: Int64s | None
) -> Computed:
    frame = Frame(schema, tuple(columns), times, None)
    try:
        return Computed(tuple(evaluate(item.expr, [frame]) for item in computed))
    except ColumnFailure:
        return _row_by_row(node, computed, schema, columns, times)


def _row_by_row(
    node: str, computed: Sequence[Item], schema: Schema, columns: Sequence[pa.Array], times: Int64s | None
) -> Computed:
    function = items(node, computed, [schema])
    decoded = [to_values(c, t.type) for c, t in zip(columns, schema.key + schema.value, strict=True)]
    clock = [None] * len(columns[0]) if times is None else times.tolist()
    nothing = (None,) * len(computed)
    results, failures = [], []
    for row, (values, time) in enumerate(zip(zip(*decoded, strict=True), clock, strict=True)):
        try:
            results.append(function(values, None, time, None))
        except NodeFailure as failure:
            results.append(nothing)
            failures.append((row, failure))
    out = tuple(to_array(column, i.expr.type) for column, i in zip(zip(*results, strict=True), computed, strict=True))
    return Computed(out, tuple(failures))


def true_rows(column: pa.Array) -> Mask:
    """Where a boolean column is true: null is not."""
    if column.null_count:
        column = column.fill_null(False)
    mask: Mask = column.to_numpy(zero_copy_only=False)
    return mask


def nulled(columns: Sequence[pa.Array], present: Mask) -> tuple[pa.Array, ...]:
    """The columns, null where `present` is false."""
    if present.all():
        return tuple(columns)
    back = pa.array(np.arange(len(present)), mask=~present)
    return tuple(c.take(back) for c in columns)
