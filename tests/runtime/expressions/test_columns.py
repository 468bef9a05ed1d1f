"""Whole columns against single rows: the same values, and the same first failing row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.runtime.expressions.nasty import EXPRESSIONS, ROWS, SCHEMA, typed
from vsc.plan.expressions import Expr
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate
from vsc.runtime.expressions.lazy import never_fails
from vsc.runtime.values import arrow_type, to_array, to_values


def shown(value: Any) -> str:
    return "NaN" if isinstance(value, float) and math.isnan(value) else repr(value)


def frame(rows: list[tuple[Any, ...]], absent: list[bool] | None = None) -> Frame:
    columns = tuple(to_array([row[i] for row in rows], c.type) for i, c in enumerate(SCHEMA.value))
    times = np.arange(len(rows), dtype=np.int64)
    return Frame(SCHEMA, columns, times, None if absent is None else np.array(absent))


def by_rows(expr: Expr, rows: list[tuple[Any, ...] | None]) -> tuple[list[Any], dict[int, str]]:
    """The values of the rows, null where one fails, and why it does."""
    function = compile_row(expr, [SCHEMA])
    values: list[Any] = [None] * len(rows)
    failed = {}
    for i, row in enumerate(rows):
        try:
            values[i] = function(row, None, None if row is None else i, None)
        except ExpressionFailure as failure:
            failed[i] = failure.reason
    return values, failed


def assert_agrees(text: str, rows: list[tuple[Any, ...]], absent: list[bool] | None = None) -> None:
    expr = typed(text)
    seen = [None if absent is not None and absent[i] else row for i, row in enumerate(rows)]
    values, failed = by_rows(expr, seen)
    assert not (failed and never_fails(expr)), text
    assert_gives(text, rows, absent, values, failed)
    fine = [i for i in range(len(rows)) if i not in failed]
    if failed:  # the same without them: now nothing keeps the kernels from answering
        left = None if absent is None else [absent[i] for i in fine]
        assert_gives(text, [rows[i] for i in fine], left, by_rows(expr, [seen[i] for i in fine])[0], {})


def assert_gives(
    text: str, rows: list[tuple[Any, ...]], absent: list[bool] | None, values: list[Any], failed: dict[int, str]
) -> None:
    expr = typed(text)
    found, failures = evaluate(expr, [frame(rows, absent)])
    assert found.type == arrow_type(expr.type), text
    assert [shown(v) for v in to_values(found, expr.type)] == [shown(v) for v in values], text
    assert failures == failed, text


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_columns_agree_with_rows(text: str) -> None:
    assert_agrees(text, ROWS)


def test_absent_records_are_null() -> None:
    absent = [i % 2 == 0 for i in range(len(ROWS))]
    for text in ("i", "coalesce(s, 'none')", "b is null", "case when i > 0 then s else 'x' end", "event_time()"):
        assert_agrees(text, ROWS, absent)


def test_no_rows() -> None:
    for text in ("i + 1", "case when b then 1 / i end", "coalesce(1 / i, 2)", "s || 'x'", "1 / 0", "md5(s)", "ai[0]"):
        found, failed = evaluate(typed(text), [frame([])])
        assert len(found) == 0 and failed == {}
        assert found.type == arrow_type(typed(text).type)


def test_an_event_time_in_nanoseconds_has_no_timestamp() -> None:
    expr, late = typed("year(event_time())"), 1_700_000_000_000_000_000
    one = frame(ROWS[:2])
    found, failed = evaluate(expr, [Frame(one.schema, one.columns, np.array([0, late]), one.absent)])
    assert (found.to_pylist(), failed) == ([1970, None], {1: "[ARITHMETIC_OVERFLOW] long overflow"})
    with pytest.raises(ExpressionFailure, match=r"\[ARITHMETIC_OVERFLOW\] long overflow"):
        compile_row(expr, [SCHEMA])(ROWS[0], None, late, None)


@pytest.mark.parametrize("function", ["ceil", "floor"])
def test_a_number_that_is_none_rounds_to_zero(function: str) -> None:
    for text in (f"{function}(g)", f"{function}(f)"):
        assert to_values(evaluate(typed(text), [frame([ROWS[3]])])[0], typed(text).type) == [0]
        assert compile_row(typed(text), [SCHEMA])(ROWS[3], None, None, None) == 0
    for value in ("g", "h"):  # an infinity each
        with pytest.raises(
            ExpressionFailure, match=rf"\[ARITHMETIC_OVERFLOW\] {function} of -?inf does not fit a bigint"
        ):
            compile_row(typed(f"{function}({value})"), [SCHEMA])(ROWS[7], None, None, None)


def test_rows_that_fail_are_few_among_many() -> None:
    """They are found by halves; whatever can go on as columns does."""
    rows = [ROWS[0]] * 3000
    rows[1], rows[1700], rows[2999] = ROWS[2], ROWS[2], ROWS[2]  # i is the least of its type there
    found, failed = evaluate(typed("-i"), [frame(rows)])
    assert failed == dict.fromkeys((1, 1700, 2999), "[ARITHMETIC_OVERFLOW] int overflow")
    assert found.null_count == 3 and found.drop_null().unique().to_pylist() == [0]
