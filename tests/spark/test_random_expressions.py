"""Random expressions over random rows: Spark SQL gives what single rows give, and fails where one of them fails.

Set ``VSC_EXPRESSIONS`` to run more (``50``) or others (``100:120``) than the usual; the number is the seed.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from tests.generated.rows import SCHEMA, random_expressions, random_rows
from tests.generated.seeds import seeds
from vsc.plan.expressions import Call, Expr
from vsc.plan.types import BOOLEAN, Field, StructType
from vsc.runtime.expressions import ExpressionFailure, Tried, compile_row, exact_in_spark, spark_sql, tried
from vsc.runtime.values import arrow_type, to_array, to_values

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", seeds("VSC_EXPRESSIONS", 1))
def test_spark_agrees_with_rows(spark: Any, seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 12)
    table = frame(spark, rows)
    expected, failing = [], []
    for text, expr in random_expressions(rng, 150):
        try:
            expected.append((text, expr, by_rows(expr, rows)))
        except ExpressionFailure:
            failing.append((text, expr))
    found = computed(table, [expr for _, expr, _ in expected])
    for (text, expr, wanted), column in zip(expected, found, strict=True):
        values = to_values(column.combine_chunks().cast(arrow_type(expr.type)), expr.type)
        assert repr(values) == repr(wanted), text
    exact = [(text, expr) for text, expr in failing if exact_in_spark(expr)][:5]
    for text, expr in exact:
        with pytest.raises(Exception, match=r"SQLSTATE|verflow"):
            computed(table, [expr])
            pytest.fail(f"Spark does not fail: {text}")


@pytest.mark.parametrize("seed", seeds("VSC_EXPRESSIONS", 1))
def test_forms_that_cannot_fail(spark: Any, seed: int) -> None:
    """Where a row is not in doubt, it has the value of the expression; it is wherever the expression fails."""
    rng = random.Random(seed)
    rows = random_rows(rng, 12)
    forms = [(text, expr, form) for text, expr in random_expressions(rng, 150) if (form := tried(expr)) is not None]
    exprs = [Call("struct", (form.expr, *form.doubts), struct_of(form)) for _, _, form in forms]
    for (text, expr, form), column in zip(forms, computed(frame(spark, rows), exprs), strict=True):
        found = to_values(column.combine_chunks().cast(arrow_type(struct_of(form))), struct_of(form))
        function = compile_row(expr, [SCHEMA])
        for row, (value, *doubts) in zip(rows, found, strict=True):
            try:
                wanted = function(row, None, None, None)
            except ExpressionFailure:
                assert any(doubts), f"{text} fails on {row}"
            else:
                assert any(doubts) or repr(value) == repr(wanted), f"{text} on {row}"
    assert len(forms) > 100


def struct_of(form: Tried) -> StructType:
    return StructType((Field("v", form.expr.type), *(Field(f"d{i}", BOOLEAN) for i in range(len(form.doubts)))))


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
