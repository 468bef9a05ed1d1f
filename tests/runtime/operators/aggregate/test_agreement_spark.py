"""Aggregates of a stream and of a table give what Spark SQL gives over the same rows, in one query."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.release]
pytest.importorskip("pyspark")

COLUMNS = "id string, k string, n int, x double, d decimal(9,2), b boolean"
CALLS = [
    "count(n)", "count(distinct n)", "sum(n)", "avg(n)", "sum(d)", "avg(d)", "min(x)", "max(x)", "min_by(d, n)",
    "bool_and(b)", "bool_or(b)", "variance(n)", "stddev(n)", "variance(x)", "stddev(x)", "stddev(d)",
    "approx_percentile(n, 0.5)", "approx_percentile(n, 0.2)", "approx_percentile(d, 0.95)", "approx_percentile(n, 0)",
    "approx_percentile(x, 1)", "approx_percentile(d, 0.25)",
]  # fmt: skip
INF, NAN = math.inf, math.nan
GROUPS: dict[str, list[tuple[Any, ...]]] = {
    "some": [(1, 0.5, Decimal("1.25"), True), (2, 2.5, Decimal("-7.00"), None), (4, -1.0, None, True)],
    "other": [(-(2**31), 1e9, Decimal("0.01"), False), (2**31 - 1, 1e9 + 1, Decimal("0.02"), True),
              (0, 1e9 + 2, Decimal("9999999.99"), None)],
    "one": [(7, 7.0, Decimal("7.00"), False)],
    "null": [(None, None, None, None), (None, None, None, None)],
    "one and null": [(7, 7.0, None, None), (None, None, Decimal("1.00"), True)],
    "infinite": [(1, INF, None, False), (2, 1.0, None, False)],
    "one infinite": [(1, -INF, None, None)],
    "not a number": [(3, NAN, None, True), (4, 1.0, None, None), (5, INF, None, None)],
    "equal": [(5, 0.1, Decimal("0.10"), True)] * 3,
    "large": [(1, 1e150, None, None), (2, -1e150, None, None)],
}  # fmt: skip
ROWS = [(f"{k} {i}", k, *row) for k, rows in GROUPS.items() for i, row in enumerate(rows)]


def _ours(source: str) -> dict[str, dict[str, Any]]:
    items = ", ".join(f"{call} as c{i}" for i, call in enumerate(CALLS))
    text = f"{source} s ({COLUMNS}) from memory () key id;\ntable a = aggregate s group by k select {items};"
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    with TopologyTestDriver(text) as driver:
        for row in ROWS:
            driver.pipe("s", dict(zip(names, row, strict=True)), timestamp=0)
        return {record.key["k"]: dict(record.value or {}) for record in driver.read("a")}


def _same(mine: Any, theirs: Any) -> bool:
    """Whether they are equal; doubles up to the order in which Spark adds them."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return (mine != mine and theirs != theirs) or math.isclose(mine, theirs, rel_tol=1e-12)
    return type(mine) is type(theirs) and bool(mine == theirs)


def test_the_same_results(spark: Any) -> None:
    from pyspark.sql import functions as F

    calls = [F.expr(call).alias(f"c{i}") for i, call in enumerate(CALLS)]
    found = spark.createDataFrame(ROWS, COLUMNS).coalesce(1).groupBy("k").agg(*calls).collect()
    theirs = {row["k"]: row.asDict() for row in found}
    wrong = [
        f"{call} of {k!r} over a {source}: ours {mine[k][f'c{i}']}, Spark {theirs[k][f'c{i}']}"
        for source in ("stream", "table")
        for mine in (_ours(source),)
        for k in GROUPS
        for i, call in enumerate(CALLS)
        if not _same(mine[k][f"c{i}"], theirs[k][f"c{i}"])
    ]
    assert not wrong, "\n".join(wrong)
