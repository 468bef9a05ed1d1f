"""Which expressions Spark SQL may evaluate in the plan's stead."""

from __future__ import annotations

import pytest

from tests.expressions.nasty import typed
from vsc.runtime.expressions import can_fail, exact_in_spark, tried


@pytest.mark.parametrize(
    "text",
    [
        "i + k", "10 / k", "cast(s as int)", "case when k <> 0 then i / k else 0 end", "k <> 0 and i / k > 1",
        "coalesce(i / k, 0)", "upper(s)", "size(ai) > 1", "round(g * 2, 1)",
    ],
)  # fmt: skip
def test_exact(text: str) -> None:
    assert exact_in_spark(typed(text))


@pytest.mark.parametrize(
    "text",
    [
        "i / k > 1 or true",  # Spark sees that it is true
        "size(array(i / k)) > 0", "(struct(i / k, s)).s", "(i / k) is null", "i / k = i / k",
        "case when i / k > 1 then 1 else 1 end", "ms", "element_at(ai, k)",
    ],
)  # fmt: skip
def test_spark_may_leave_out_what_fails(text: str) -> None:
    assert not exact_in_spark(typed(text))


@pytest.mark.parametrize(
    "text",
    [
        "g * 2 + h", "f - f", "g / 2", "l % 3", "d + d", "d * i", "- d", "cast(l as decimal(20, 1))",
        "cast(e as double)", "try_cast(s as int) > 1",
    ],
)  # fmt: skip
def test_what_cannot_fail_by_its_types(text: str) -> None:
    assert not can_fail(typed(text))


@pytest.mark.parametrize(
    "text",
    [
        "l + 1", "g / h", "g / 0e0", "l % k", "e + e", "d / 3", "cast(l as decimal(18, 0))", "- i",
        "cast(d as decimal(10, 1))",
    ],
)  # fmt: skip
def test_what_can_fail_by_its_types(text: str) -> None:
    assert can_fail(typed(text))


@pytest.mark.parametrize("text", ["element_at(ai, k)", "size(array(ceil(g)))", "date_add(q, i)"])
def test_what_has_no_form_that_cannot_fail(text: str) -> None:
    assert tried(typed(text)) is None
