"""Random expressions over random rows: whole columns give what single rows give, and fail where these fail first."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.random_topologies.rows import SCHEMA, random_expressions, random_rows
from tests.random_topologies.seeds import seeds
from vsc.plan.expressions import Expr
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate
from vsc.runtime.values import arrow_type, to_array, to_values

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", seeds("VSC_EXPRESSIONS", 4))
def test_columns_agree_with_rows(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 12)
    for text, expr in random_expressions(rng, 60):
        assert_agrees(text, expr, rows)


def assert_agrees(text: str, expr: Expr, rows: list[tuple[Any, ...]]) -> None:
    function = compile_row(expr, [SCHEMA])
    columns = tuple(to_array([row[i] for row in rows], c.type) for i, c in enumerate(SCHEMA.value))
    values: list[Any] = [None] * len(rows)
    failed = {}
    for number, row in enumerate(rows):
        try:
            values[number] = function(row, None, number, None)
        except ExpressionFailure as failure:
            failed[number] = failure.reason
    found, failures = evaluate(expr, [Frame(SCHEMA, columns, np.arange(len(rows), dtype=np.int64))])
    assert found.type == arrow_type(expr.type), text
    assert repr(to_values(found, expr.type)) == repr(values), text
    assert failures == failed, text
