"""Lambdas over whole columns: computed for all elements at once, whatever the arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.expressions.nasty import ROWS, SCHEMA, typed
from vsc.runtime.expressions.columns import Columns, Frame, evaluate
from vsc.runtime.values import to_array, to_values

ARRAYS = [[], [1], [1, None, 3], None, [None], [5, 4]]


def frame(arrays: list[Any], k: int = 2) -> Frame:
    """Rows of which `ai` is one of the arrays, and `k` is `k`."""
    columns = []
    for place, column in enumerate(SCHEMA.value):
        given = {"ai": arrays, "k": [k] * len(arrays)}.get(column.name, [ROWS[0][place]] * len(arrays))
        columns.append(to_array(given, column.type))
    return Frame(SCHEMA, columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("transform(ai, x -> x * k)", [[], [2], [2, None, 6], None, [None], [10, 8]]),
        ("transform(ai, (x, i) -> i)", [[], [0], [0, 1, 2], None, [0], [0, 1]]),
        ("filter(ai, x -> x > 1)", [[], [], [3], None, [], [5, 4]]),
        ("filter(ai, (x, i) -> i = 0)", [[], [1], [1], None, [None], [5]]),
        ("exists(ai, x -> x = 3)", [False, False, True, None, None, False]),
        ("exists(ai, x -> x = 1)", [False, True, True, None, None, False]),
        ("forall(ai, x -> x = 1)", [True, True, False, None, None, False]),
        ("forall(ai, x -> x > 0)", [True, True, None, None, None, True]),
        ("transform(ai, x -> transform(ai, y -> y + x))",
         [[], [[2]], [[2, None, 4], [None, None, None], [4, None, 6]], None, [[None]], [[10, 9], [9, 8]]]),
        ("case when k > 5 then array(1) else filter(ai, x -> x / (k - 2 + 1) > 1) end",
         [[], [], [3], None, [], [5, 4]]),
    ],
)  # fmt: skip
def test_no_row_is_computed_alone(text: str, expected: list[Any]) -> None:
    expr = typed(text)
    for start, stop in ((0, 6), (2, 6), (3, 4), (0, 0)):
        found = Columns([frame(ARRAYS).slice(start, stop)], stop - start).array(expr)
        found.validate(full=True)
        assert to_values(found, expr.type) == expected[start:stop]


def test_an_element_that_fails_is_its_row_s_failure() -> None:
    found, failed = evaluate(typed("transform(ai, x -> 10 / (x - 3))"), [frame(ARRAYS)])
    assert list(failed) == [2] and failed[2].startswith("[DIVIDE_BY_ZERO]")
    assert found.to_pylist()[1] == [-5.0] and found.to_pylist()[2] is None


@pytest.mark.parametrize(
    ("text", "expected"), [("exists(ai, x -> 10 / (x - 3) < 0)", True), ("forall(ai, x -> 10 / (x - 3) > 0)", False)]
)
def test_elements_after_the_one_that_decides_are_not_looked_at(text: str, expected: bool) -> None:
    found, failed = evaluate(typed(text), [frame([[1, None, 3]])])
    assert (found.to_pylist(), failed) == ([expected], {})


def test_a_large_column_agrees_with_its_rows() -> None:
    rng = np.random.default_rng(5)
    arrays = [None if n == 5 else rng.integers(0, 9, n).tolist() for n in rng.integers(0, 6, 5000)]
    expr = typed("transform(filter(ai, (x, i) -> x > i), x -> x + k)")
    found, failed = evaluate(expr, [frame(arrays, 3)])
    assert failed == {}
    assert to_values(found, expr.type) == [
        None if items is None else [x + 3 for i, x in enumerate(items) if x > i] for items in arrays
    ]


def test_of_more_elements_than_are_looked_at_together_the_rows_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vsc.runtime.expressions.lambdas._MOST", 100)
    expr = typed("transform(ai, x -> x + k)")
    found, failed = evaluate(expr, [frame([[1, 2, 3]] * 1000)])
    assert failed == {} and to_values(found, expr.type) == [[3, 4, 5]] * 1000
