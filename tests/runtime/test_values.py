"""Values survive the way through Arrow, and users' values are checked on the way in."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from vsc.plan.types import parse_type
from vsc.runtime.values import arrow_type, displayed, from_python, to_array, to_python, to_values

ROUND_TRIPS: list[tuple[str, list[Any]]] = [
    ("boolean", [True, None, False]),
    ("tinyint", [-128, None, 127]),
    ("bigint", [-(2**63), None, 2**63 - 1]),
    ("float", [1.5, None, math.inf]),
    ("double", [-1e308, None, 0.5]),
    ("decimal(38,4)", [Decimal("9" * 34 + ".9999"), None, Decimal("-0.0001")]),
    ("string", ["", None, "\N{MUSICAL SYMBOL G CLEF}", "\0"]),
    ("binary", [b"", None, b"\xff"]),
    ("date", [-719162, None, 2932896]),
    ("timestamp", [-1, None, 2**62]),
    ("array<date>", [[1, None], None, []]),
    ("map<string,timestamp>", [{"a": 1, "b": None}, None, {}]),
    ("struct<a:int,b:array<struct<c:decimal(3,1)>>>", [(1, [(Decimal("1.5"),), None]), None, (None, None)]),
]


@pytest.mark.parametrize(("ddl", "values"), ROUND_TRIPS)
def test_round_trip_through_arrow(ddl: str, values: list[Any]) -> None:
    type = parse_type(ddl)
    array = to_array(values, type)
    assert array.type == arrow_type(type)
    assert to_values(array, type) == values
    assert to_values(array.slice(1), type) == values[1:]
    assert to_values(to_array([], type), type) == []
    assert to_values(pa.chunked_array([array, array]), type) == values * 2


def test_nan_is_not_null_and_minus_zero_keeps_its_sign() -> None:
    for ddl in ("float", "double"):
        nan, zero, null = to_values(to_array([math.nan, -0.0, None], parse_type(ddl)), parse_type(ddl))
        assert math.isnan(nan) and math.copysign(1, zero) == -1 and null is None


def test_python_values() -> None:
    type = parse_type("struct<at:timestamp,day:date,list:array<decimal(4,2)>>")
    value = {"at": datetime(2020, 1, 2, 3, 4, 5, 6, UTC), "day": date(1969, 12, 31), "list": [Decimal("1.50"), None]}
    inside = from_python(value, type)
    assert inside == (1577934245000006, -1, [Decimal("1.50"), None])
    assert to_python(inside, type) == value
    assert from_python(7, parse_type("timestamp")) == 7000
    assert str(from_python(10, parse_type("decimal(12,2)"))) == "10.00"
    widest = Decimal("-" + "9" * 36 + ".99")
    assert from_python(widest, parse_type("decimal(38,2)")) == widest
    assert from_python(0.1, parse_type("float")) == 0.10000000149011612


@pytest.mark.parametrize(
    ("value", "ddl"),
    [
        (128, "tinyint"),
        (True, "int"),
        (1.0, "bigint"),
        ("1", "double"),
        (b"x", "string"),
        ("x", "binary"),
        (datetime(2020, 1, 1), "timestamp"),
        (datetime(2020, 1, 1, tzinfo=UTC), "date"),
        (Decimal("1.234"), "decimal(9,2)"),
        (100, "decimal(4,2)"),
        (Decimal("NaN"), "decimal(4,2)"),
        ({"b": 1}, "struct<a:int>"),
        ({None: 1}, "map<int,int>"),
        (1e300, "float"),
        ("\ud800", "string"),
        (1, "array<int>"),
    ],
)
def test_wrong_values_are_refused(value: Any, ddl: str) -> None:
    with pytest.raises(ValueError, match=r"not a value of type|unknown field"):
        from_python(value, parse_type(ddl))


@pytest.mark.parametrize(("type", "value", "named"), [
    ("timestamp", 2**62, "timestamp 4611686018427387904 microseconds"), ("date", 2932897, "date 2932897 days"),
])  # fmt: skip
def test_a_time_that_python_cannot_say_is_named_and_displayed_as_its_number(type: str, value: int, named: str) -> None:
    with pytest.raises(OverflowError, match=f"{named} from 1970-01-01 is outside of the years 1 to 9999"):
        to_python(value, parse_type(type))
    assert displayed(value, parse_type(type)) == str(value)
    assert displayed(0, parse_type(type)) == to_python(0, parse_type(type))
