"""Random expressions over random rows: Spark SQL gives what single rows give.

Set ``VSC_EXPRESSIONS`` to run more (``50``) or others (``100:120``) than the usual; the number is the seed.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from tests.random_topologies.rows import SCHEMA, random_expressions, random_rows
from tests.random_topologies.seeds import seeds
from tests.runtime.expressions.spark_text import spark_sql
from vsc.plan.expressions import Expr
from vsc.runtime.expressions import ExpressionFailure, compile_row
from vsc.runtime.values import arrow_type, to_array, to_values

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("seed", seeds("VSC_EXPRESSIONS", 1))
def test_spark_agrees_with_rows(spark: Any, seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 12)
    table = frame(spark, rows)
    expected = []
    for text, expr in random_expressions(rng, 150):
        with suppress(ExpressionFailure):
            expected.append((text, expr, by_rows(expr, rows)))
    found = computed(table, [expr for _, expr, _ in expected])
    for (text, expr, wanted), column in zip(expected, found, strict=True):
        values = to_values(column.combine_chunks().cast(arrow_type(expr.type)), expr.type)
        assert repr(values) == repr(wanted), text


def by_rows(expr: Expr, rows: list[tuple[Any, ...]]) -> list[Any]:
    function = compile_row(expr, [SCHEMA])
    return [function(row, None, None, None) for row in rows]


def frame(spark: Any, rows: list[tuple[Any, ...]]) -> Any:
    columns = [to_array([row[i] for row in rows], c.type) for i, c in enumerate(SCHEMA.value)]
    data = spark.createDataFrame(pa.table([pa.array(range(len(rows))), *columns], names=["#", *names()]))
    return data.coalesce(1).sortWithinPartitions("#")


def names() -> list[str]:
    return [c.name for c in SCHEMA.value]


def computed(table: Any, exprs: list[Expr]) -> list[pa.ChunkedArray]:
    texts = [f"{spark_sql(e, lambda c: f'`{c.name}`')} AS `{i}`" for i, e in enumerate(exprs)]
    return list(table.selectExpr(*texts).toArrow().columns)
