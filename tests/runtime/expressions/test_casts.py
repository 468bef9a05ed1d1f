"""Casts whose value no timestamp can be: they fail, where Spark gives some other time."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from vsc.plan.types import TIMESTAMP, parse_type
from vsc.runtime.expressions import ExpressionFailure
from vsc.runtime.expressions.casts import caster

LAST = Decimal("9223372036854.775807")
"""The last second that a timestamp has."""


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("decimal(20,0)", Decimal(18446744073710)), ("decimal(38,0)", Decimal(10**37)),
        ("decimal(20,6)", LAST + Decimal("0.000001")), ("decimal(20,6)", -LAST - Decimal("0.000002")),
        ("bigint", 9223372036855), ("bigint", -(2**63)), ("double", 1e13),
    ],
)  # fmt: skip
def test_seconds_beyond_all_timestamps_fail(type: str, value: Any) -> None:
    with pytest.raises(ExpressionFailure, match=r"CAST_OVERFLOW|overflow"):
        caster(parse_type(type), TIMESTAMP)(value)
    assert caster(parse_type(type), TIMESTAMP, safe=True)(value) is None


@pytest.mark.parametrize(
    ("type", "value", "micros"),
    [
        ("decimal(20,6)", LAST, 2**63 - 1), ("decimal(20,6)", -LAST - Decimal("0.000001"), -(2**63)),
        ("decimal(38,10)", Decimal("1767607200.1234569999"), 1_767_607_200_123_456), ("bigint", 5, 5_000_000),
        ("decimal(38,6)", Decimal("-1.5"), -1_500_000), ("bigint", 9223372036854, 9_223_372_036_854_000_000),
    ],
)  # fmt: skip
def test_all_others_are_timestamps(type: str, value: Any, micros: int) -> None:
    assert caster(parse_type(type), TIMESTAMP)(value) == micros
