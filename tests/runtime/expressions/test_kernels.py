"""Each kernel against the row function over random columns of nasty values, and proof that kernels are what runs."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runtime.expressions.nasty import ROWS, SCHEMA, typed
from tests.runtime.expressions.test_columns import assert_agrees, frame
from vsc.plan.expressions import Call, Literal
from vsc.plan.types import parse_type
from vsc.runtime.expressions import columns
from vsc.runtime.expressions.hashing import hasher
from vsc.runtime.expressions.text import java_double, java_float


def nasty(ddl: str) -> st.SearchStrategy[Any]:
    if ddl in ("tinyint", "smallint", "int", "bigint"):
        limit = 1 << ({"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[ddl] - 1)
        edge = st.sampled_from([-limit, 1 - limit, -1, 0, 1, 2, limit - 1])
        return st.none() | edge | st.integers(-limit, limit - 1)
    if ddl in ("float", "double"):
        least = 5e-324 if ddl == "double" else 0.0
        edge = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 2.0**31, 2.0**63, least])
        return st.none() | edge | st.floats(width=32 if ddl == "float" else 64)
    if ddl.startswith("decimal"):
        precision, scale = map(int, ddl[8:-1].split(","))
        digits = st.integers(1 - 10**precision, 10**precision - 1)
        return st.none() | digits.map(lambda n: Decimal(f"{n}E-{scale}"))
    simple = {
        "boolean": st.booleans(),
        "string": st.sampled_from(
            ["", "a", "ab", "%", "\U0001d11e", "ß", " x ", "1", "-7", "1.5", "99999999999999999999"]
        )
        | st.text(max_size=4),
        "binary": st.binary(max_size=3),
        "text of a time": st.sampled_from(TIMES),
        "array<int>": st.lists(st.none() | st.integers(-3, 3), max_size=3),
        "date": st.integers(-800000, 3000000),
        "timestamp": st.sampled_from([0, -1, 999, 1000, 2**63 - 1, -(2**63)]) | st.integers(-(2**56), 2**56),
    }
    if ddl in simple:
        return st.none() | simple[ddl]
    return st.just(None)


TIMES = (
    "2020-01-02", "1969-12-31 23:59:59", "2020-02-29T12:30:00.5", "2020-02-30", "0001-01-01 00:00:00.123456",
    "2020-01-02 03:04:05Z", "2020-01-02 24:00:00", "9999-12-31T23:59:59.999999Z", "1900-02-28 10:11", "x",
)  # fmt: skip
ROW = st.tuples(*(nasty("text of a time" if c.name == "u" else str(c.type)) for c in SCHEMA.value))

_KERNELS = """
y + y; w - w; w * y; i + k; i * k; l + m; l - m; i % k; l % m; -i; -g; abs(l); f + f; f * f; g + h; g - h; g * h
g / h; d + d; d * d; d - d; i = k; l < m; g = h; g < h; g <= h; g > h; g >= h; g <> h; f < f; s < p; s = p; x < x
b < c; d > d; q <= q; t <> t; b and c; b or c; not b; b is null; i in (1, 2, null); g in (0e0, 1.5); s || p; x || x
substring(s, 2); substring(s, 1, 2); upper(s); lower(s); trim(s); length(s); length(x); starts_with(s, 'a')
contains(s, 'a'); ends_with(s, 'b'); hour(t); minute(t); second(t); year(q); month(q); day(q); unix_millis(t)
timestamp_millis(m); t + 1 hour; t - 1 day; date_trunc('hour', t); date_trunc('day', t); cast(y as bigint)
cast(l as int); cast(i as double); cast(l as double); cast(l as float); cast(g as float); cast(f as double)
cast(g as int); cast(g as bigint); cast(i as string); cast(b as int); cast(n as int); cast(n as bigint)
cast(d as double); cast(i as decimal(12,2)); cast(l as decimal(20,0)); cast(d as decimal(38,10))
cast(d as decimal(11,2)); cast(q as timestamp); cast(t as date); cast(i as boolean)
case when b then l + 1 when c then i else k end; if(k = 0, 0, i / k); coalesce(i, k, 0); coalesce(i / k, 0)
concat_ws('-', s, p); concat_ws(p, s, n); concat_ws('', s, 'x', i); replace(s, 'a', '%'); replace(s, '', 'x')
split(s, 'a'); split(s, ' ', 2); split(s, 'a', 1); split(s, '[a]')
regexp_like(s, '[a-c]$'); regexp_extract(s, '(a)(.)', 2); regexp_extract(s, '.*$', 0); regexp_replace(s, '[^a]', '-$0')
from_unixtime(m); from_unixtime(l, 'HH dd.MM.yyyy'); sort_array(ai); array_contains(ai, k); map_keys(ms)
unbase64(s); conv(n, 10, 2); s like 'a%'; s like '%_b'; s like '%\\%%'
abs(d); -d; abs(e); ceil(g); floor(h); ceil(f); floor(i); ceil(d); try_divide(g, h); try_divide(i, k)
round(g, 2); round(h); round(g, 15); round(f, 1); round(d, 1); round(d); round(d, 5); round(e, 3); round(i, 1)
greatest(i, k, 3); least(s, p); greatest(g, h); least(d, e); greatest(q, q + 1); least(b, c); greatest(x, x)
date_add(q, k); datediff(q, '2020-01-01'); date_trunc('week', t); date_trunc('month', t); date_trunc('quarter', t)
date_trunc('year', t); date_trunc('microsecond', t); cast(q as string); cast(t as string); cast(d as string)
cast(e as string); cast(u as timestamp); cast(u as date); cast(n as double); cast(n as decimal(12,2)); cast(d as int)
cast(e as bigint); cast(g as decimal(20,3)); cast(h as decimal(6,2)); cast(d as decimal(6,1)); cast(e as decimal(30,2))
to_timestamp(u, 'yyyy-MM-dd'); to_date(u, 'yyyy-MM-dd HH:mm'); ai[0]; element_at(ai, 2); array(i, k, 1); array(s, p)
ltrim(s); rtrim(s); dayofweek(q); quarter(q); timestamp_seconds(m); unix_seconds(t); try_to_timestamp(u, 'yyyy-MM-dd')
struct(s, i as n, 1); array(st, st); struct(hour(t) as h, ai)
from_utc_timestamp(t, 'Europe/Berlin'); to_utc_timestamp(t, 'America/Havana'); hour(t, '+05:30'); day(t, 'Asia/Tokyo')
date_trunc('hour', t, 'Australia/Lord_Howe'); date_trunc('day', t, 'America/Havana'); date_trunc('week', t, 'Cuba')
date_format(t, 'dd.MM.yyyy HH:mm'); date_format(t, 'yyyy h a X', 'America/St_Johns'); date_format(t, 'yyyyMM', 'Cuba')
b and i / k > 0; b or l + m > 0; (k <> 0) and (i / k > 1) and c; d * g; case when g > 1 then d end
"""
KERNEL_EXPRESSIONS = [text for line in _KERNELS.splitlines() if line for text in line.split("; ")]


@pytest.mark.quick(8)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROW, min_size=1, max_size=6))
@pytest.mark.parametrize("text", KERNEL_EXPRESSIONS)
def test_kernels_agree_with_rows(text: str, rows: list[tuple[Any, ...]]) -> None:
    assert_agrees(text, rows)


HARMLESS = [2, 1, 0, 4]
"""Numbers of rows without values at their limits."""


@pytest.mark.parametrize(
    "text",
    [
        "k + 1", "k * k", "h + g", "g > h", "b and c", "s || p", "trim(s)", "unix_millis(t)", "t + 1 hour",
        "k in (1, 2)", "concat_ws('-', s, 'x')",
        "case when k <> 0 then 6 / k else 0 end", "coalesce(k, 7)", "cast(k as bigint) + m", "cast(d as double) * h",
        "round(i / 7, 1)", "round(d, 1)", "ceil(i / 2)", "abs(d)", "-d", "greatest(k, 2)", "try_divide(g, h)",
        "replace(s, 'a', 'b')", "split(s, ',')", "regexp_like(s, 'a$')", "regexp_extract(s, '^(a|b)', 1)",
        "regexp_extract(s, 'a$|b', 0)",
        "regexp_replace(s, '[ab]', '$0-')", "from_unixtime(m, 'dd.MM.yyyy HH:mm')", "s like 'a%'",
        "date_add(q, k)", "datediff(q, q)", "cast(d as bigint)",
        "date_trunc('month', t)", "cast(q as string)", "cast(t as string)", "cast(d as string)", "array(k)[0]",
        "cast(i / 7 as decimal(12,2))", "cast(d as decimal(12,1))", "cast(cast(q as string) as date)", "array(k, 1)",
        "cast(cast(t as string) as timestamp)", "cast('1' || k as double)", "cast('1' || k as decimal(9,2))",
        "to_date(cast(q as string), 'yyyy-MM-dd')", "struct(k, s)", "element_at(array(s, 'x'), 2)",
        "hour(t)", "hour(t, 'Europe/Berlin')", "date_trunc('day', t)", "date_trunc('week', t, 'Asia/Tokyo')",
        "date_trunc('day', t, 'Asia/Tokyo')", "to_utc_timestamp(t, 'Cuba')", "date_format(t, 'yyyy', 'Cuba')",
        "s is null", "k % 3", "st.a", "size(ai)", "event_time()", "1 + 2",
    ],
)  # fmt: skip
def test_kernels_are_what_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError(f"evaluated row by row: {text}")

    monkeypatch.setattr(columns, "_row_by_row", refuse)
    monkeypatch.setattr(columns, "mapped", refuse)
    rows = [(*ROWS[i][:6], k, *ROWS[i][7:]) for i, k in zip(HARMLESS, (1, 0, None, 3), strict=True)]
    values, failed = columns.evaluate(typed(text), [frame(rows)])
    assert len(values) == 4 and failed == {}


def test_slices_and_two_inputs() -> None:
    left, right = frame(ROWS), frame(ROWS[::-1])
    sliced = columns.Frame(SCHEMA, tuple(c.slice(1, 3) for c in left.columns))
    assert columns.evaluate(typed("cast(d as double)"), [sliced])[0].to_pylist() == [1.5, -9999999999.99, 9999999999.99]
    times = Call("event_time", (Literal(1, parse_type("int")),), parse_type("timestamp"))
    absent = columns.Frame(SCHEMA, right.columns, np.arange(8), np.arange(8) < 7)
    found, _ = columns.evaluate(times, [left, absent])
    assert found.view(pa.int64()).to_pylist() == [None] * 7 + [7000]


def test_numbers_as_java_prints_them() -> None:
    assert [java_double(x) for x in (1.0, 1e7, 9999999.5, 1e-3, 1.2e-5, -0.0, 123456789.5, 5e-324, 100.0)] == [
        "1.0", "1.0E7", "9999999.5", "0.001", "1.2E-5", "-0.0", "1.234567895E8", "4.9E-324", "100.0",
    ]  # fmt: skip
    assert [java_float(x) for x in (1.100000023841858, 3.4028234663852886e38, 16777216.0, 2.0**-149)] == [
        "1.1", "3.4028235E38", "1.6777216E7", "1.4E-45",
    ]  # fmt: skip


def test_hashes_recorded_from_spark() -> None:
    def of(ddl: str, value: Any) -> int:
        return hasher(parse_type(ddl))(value, 42)

    assert of("int", 1) == -6698625589789238999
    assert of("bigint", 1) == -7001672635703045582
    assert of("string", "abc") == 1423657621850124518
    assert of("string", "a long string with more than thirty two bytes in it") == -643197022074637489
    assert of("double", 1.5) == 7738255526519901366
    assert of("float", 1.5) == 6163473420726370430
    assert of("decimal(38,10)", Decimal("1.0000000000")) == -2853959725596059730
    assert of("array<int>", [1, 2]) == -8133857028838179022
    assert of("struct<a:int,b:string>", (1, "a")) == 8205864924878002737
