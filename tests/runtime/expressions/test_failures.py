"""How expressions fail: whatever goes wrong is the failure of the expression, on its row only, and costs no time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate, json_text, text, text_kernels
from vsc.runtime.expressions.forms import Form
from vsc.runtime.expressions.functions import FUNCTIONS
from vsc.runtime.values import to_array, to_values

COLUMNS = {"s": "string", "p": "string", "l": "bigint", "d": "decimal(38,6)", "q": "date", "n": "int"}
SCHEMA = Schema((), tuple(Column(name, parse_type(ddl)) for name, ddl in COLUMNS.items()))


def typed(written: str) -> Expr:
    parsed = parse_expression(written)
    assert parsed.expression is not None, parsed.findings
    found = type_expression(parsed.expression, Scope((ScopeInput("r", 0, SCHEMA),)))
    assert found.expr is not None, found.findings
    return found.expr


def frame(*rows: dict[str, Any]) -> Frame:
    columns = tuple(to_array([row.get(c.name) for row in rows], c.type) for c in SCHEMA.value)
    return Frame(SCHEMA, columns, np.zeros(len(rows), dtype=np.int64))


def both(written: str, **values: Any) -> Any:
    """The value, or the reason of the failure, which a row and a column have to agree on."""
    expr, row = typed(written), tuple(values.get(name) for name in COLUMNS)
    found, failed = evaluate(expr, [frame(values)])
    try:
        value = compile_row(expr, [SCHEMA])(row, None, 0, None)
    except ExpressionFailure as failure:
        assert failed == {0: failure.reason} and found.null_count == 1
        return failure.reason
    assert not failed and repr(to_values(found, expr.type)) == repr([value])
    return value


# ----------------------------------------------------------------------------------------------- whatever is raised


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (ZeroDivisionError("of ours"), "[INTERNAL_ERROR] ZeroDivisionError: of ours"),
        (MemoryError(), "[OUT_OF_MEMORY] a value does not fit in memory"),
        (RecursionError(), "[NESTED_TOO_DEEPLY] a value is nested too deeply"),
        (pa.ArrowInvalid("no"), "[INTERNAL_ERROR] ArrowInvalid: no"),
        (OverflowError("x" * 200), f"[INTERNAL_ERROR] OverflowError: {'x' * 100}... (200 characters)"),
    ],
)
def test_every_exception_is_the_failure_of_its_row(
    raised: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def upper(value: str) -> str:
        if value == "bad":
            raise raised
        return value.upper()

    monkeypatch.setitem(FUNCTIONS, "upper", Form(lambda call: upper))
    texts = ["a"] * 1000
    texts[300] = texts[999] = "bad"
    found, failed = evaluate(typed("upper(s)"), [frame(*({"s": one} for one in texts))])
    assert failed == {300: reason, 999: reason}
    assert found.null_count == 2 and found[299].as_py() == "A"
    assert both("upper(s)", s="bad") == reason
    assert both("upper(s) is null", s="bad") == reason


def test_an_exception_in_a_kernel_leaves_it_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(call: object, args: object) -> object:
        raise IndexError("of a kernel")

    monkeypatch.setitem(FUNCTIONS, "upper", Form(lambda call: str.upper, kernel))
    assert both("upper(s)", s="a") == "A"


@pytest.mark.parametrize("written", ["upper(s)", "s || 'x'", "to_json(struct(s))", "s", "s like '%'", "length(s)"])
def test_a_text_that_is_not_utf_8_is_a_failure(written: str) -> None:
    data = pa.array([b"a", b"\xff", b"b"])
    texts = pa.Array.from_buffers(pa.string(), 3, data.buffers())
    others = tuple(pa.nulls(3, to_array([], c.type).type) for c in SCHEMA.value[1:])
    found, failed = evaluate(typed(written), [Frame(SCHEMA, (texts, *others), np.zeros(3, dtype=np.int64))])
    assert failed == {1: "[INVALID_UTF8_STRING] a text is not valid UTF-8"}
    assert found.null_count == 1 and found[1].as_py() is None


# ------------------------------------------------------------------------------------------------------ known values


@pytest.mark.parametrize(
    ("written", "values", "found"),
    [
        ("from_json(s, 'a string').a", {"s": r'{"a":"\ud83d"}'}, "?"),
        ("from_json(s, 'a string').a", {"s": r'{"a":"\ud83d\ude00"}'}, "😀"),
        ("from_json(s, 'a string').a", {"s": r'{"a":["\ude00"]}'}, r'["\uDE00"]'),
        ("from_json(s, 'map<string,int>')", {"s": r'{"\ud83d":1}'}, {"?": 1}),
        ("from_json(s, 'a bigint, b int')", {"s": '{"a":' + "9" * 5000 + ',"b":1}'}, (None, 1)),
        ("from_json(s, 'a string').a", {"s": '{"a":' + "9" * 5000 + "}"}, "9" * 5000),
        ("from_json(s, 'a binary, b int')", {"s": '{"a":"é","b":1}'}, (None, 1)),
        ("from_json(s, 'a timestamp, b int')", {"s": '{"a":18446744073710,"b":1}'}, (None, 1)),
        ("from_json(s, 'a string').a", {"s": '{"a":' + "[" * 190 + "]" * 190 + "}"}, "[" * 190 + "]" * 190),
        ("from_json(s, 'a string').a", {"s": '{"a":' + "[" * 200 + "]" * 200 + "}"}, None),
        ("from_json(s, 'a string').a", {"s": '{"a":"' + "[" * 500 + '"}'}, "[" * 500),
        ("try_cast(s as decimal(10,2))", {"s": "7e12345678"}, None),
        ("cast(s as decimal(10,2))", {"s": "7e-12345678"}, Decimal("0.00")),
        ("cast(s as decimal(2,0))", {"s": "0.4" + "9" * 3000}, Decimal(0)),
        ("cast(s as int)", {"s": "-" + "0" * 5000 + "7"}, -7),
        ("cast(l as timestamp)", {"l": 9223372036854}, 9223372036854000000),
        ("cast(d as timestamp)", {"d": Decimal("-9223372036854.775808")}, -(2**63)),
        ("cast(d as timestamp)", {"d": Decimal("0.999999")}, 999999),
        ("date_add(q, n)", {"q": 2**31 - 2, "n": 1}, 2**31 - 1),
        ("coalesce(array(), array(array(l)))", {"l": 1}, []),
        ("from_json(s, 'a binary').a", {"s": r'{"a": " aGk=\r\n"}'}, b"hi"),
        ("from_json(s, 'a binary').a", {"s": r'{"a": "YWJj\r\nZGVm\u0000"}'}, b"abcdef"),
        ("from_json(s, 'a binary').a", {"s": r'{"a": " "}'}, b""),
        ("from_json(s, 'a binary').a", {"s": r'{"a": "YW Jj"}'}, None),
        ("cast(cast(d as timestamp) as double)", {"d": Decimal("66284730702.717837")}, 66284730702.71784),
        ("try_cast(unbase64(s) as string)", {"s": "/w=="}, None),
        ("cast(unbase64(s) as string)", {"s": "w6k="}, "é"),
        ("from_json(s, 'a string')", {"s": " \t\r\n"}, None),
        ("from_json(s, 'a string')", {"s": " \x0b "}, (None,)),
        ("from_json(s, 'a string')", {"s": "\u00a0"}, (None,)),
    ],
)
def test_values_at_the_edge(written: str, values: dict[str, Any], found: object) -> None:
    assert both(written, **values) == found


@pytest.mark.parametrize(
    ("written", "values", "reason"),
    [
        ("cast(s as decimal(10,2))", {"s": "7e12345678"},
         "[NUMERIC_VALUE_OUT_OF_RANGE] 7E+12345678 cannot be represented as decimal(10,2)"),
        ("cast(s as decimal(10,2))", {"s": "1e9999999999"},
         "[CAST_INVALID_INPUT] the value '1e9999999999' of type string cannot be cast to decimal(10,2): it is "
         "malformed"),
        ("cast(s as decimal(38,2))", {"s": "1" * 38},
         f"[NUMERIC_VALUE_OUT_OF_RANGE] {'1' * 38} cannot be represented as decimal(38,2)"),
        ("cast(d as decimal(38,38))", {"d": Decimal("5376812.140000")},
         "[NUMERIC_VALUE_OUT_OF_RANGE] 5376812.140000 cannot be represented as decimal(38,38)"),
        ("cast(d as timestamp)", {"d": Decimal("18446744073710.000000")},
         "[CAST_OVERFLOW] the value 18446744073710.000000 of type decimal(38,6) cannot be cast to timestamp: overflow"),
        ("cast(l as timestamp)", {"l": -9223372036855},
         "[CAST_OVERFLOW] the value -9223372036855 of type bigint cannot be cast to timestamp: overflow"),
        ("date_add(q, n)", {"q": 1, "n": 2**31 - 1}, "[ARITHMETIC_OVERFLOW] int overflow"),
        ("datediff(q, date_add(q, n))", {"q": 2**31 - 1, "n": -(2**31)}, "[ARITHMETIC_OVERFLOW] int overflow"),
        ("cast(s as int)", {"s": "x" * 5000},
         f"[CAST_INVALID_INPUT] the value '{'x' * 100}... (5000 characters)' of type string cannot be cast to int: "
         "it is malformed"),
        ("cast(unbase64(s) as string)", {"s": "AP8="},
         "[INVALID_UTF8_STRING] a binary that is not valid UTF-8 cannot be cast to string: 00ff"),
        ("starts_with(unbase64(s), unbase64(p))", {"s": "/w==", "p": "/g=="},
         "[INVALID_UTF8_STRING] a binary that is not valid UTF-8 cannot be cast to string: ff"),
        ("s like p", {"s": "a", "p": "\\a"},
         "[INVALID_FORMAT] the like pattern '\\a' has an escape character that escapes nothing"),
    ],
)  # fmt: skip
def test_reasons(written: str, values: dict[str, Any], reason: str) -> None:
    assert both(written, **values) == reason


def test_a_decimal_that_does_not_fit_is_no_other_one() -> None:
    """Arrow alone makes other numbers of these, without a word."""
    for digits in range(30, 60):
        for written in ("1" * digits, "9" * digits, "9" * 20 + "." + "9" * digits):
            found = both("try_cast(s as decimal(38,6))", s=written)
            assert found is None or abs(found - Decimal(written)) < Decimal("0.000001")


@pytest.mark.parametrize("written", ["replace(s, 'a', p)", "replace(s, 'a', 'bcdef')", "s || p", "concat_ws('', s, p)"])
def test_a_text_that_is_too_long_is_a_failure(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text, text_kernels):
        monkeypatch.setattr(module, "MOST", 30)
    assert both(written, s="aaaa", p="bcd") in ("bcd" * 4, "bcdef" * 4, "aaaabcd")
    reason = both(written, s="a" * 15, p="b" * 16)
    assert reason.startswith("[VALUE_TOO_LONG] the result has ")
    assert reason.endswith(" characters or bytes, more than 30")
    found, failed = evaluate(typed(written), [frame({"s": "a", "p": "b"}, {"s": "a" * 15, "p": "b" * 16})])
    assert failed == {1: reason} and found.null_count == 1


# ------------------------------------------------------------------------------------------------------------ patterns


LIKES = [
    ("", "", True), ("", "%", True), ("a", "", False), ("\n", "_", True), ("ab", "%_", True), ("a", "%_%_%", False),
    ("abcab", "%ab", True), ("abcab", "ab%ab", True), ("aba", "ab%ba", False), ("xaxbx", "%a%b%", True),
    ("xbxax", "%a%b%", False), ("aXbaYc", "%a_c", True), ("aXbaYc", "a_b%", True), ("\U0001d11eß", "__", True),
    ("a%b", "a\\%b", True), ("aXb", "a\\%b", False), ("a\\b", "a\\\\b", True), ("a_b", "%\\_%", True),
    ("aab", "%a_", True), ("abab", "%a_a_%", True), ("aaab", "%_aab", True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "pattern", "found"), LIKES)
def test_like(value: str, pattern: str, found: bool) -> None:
    assert both("s like p", s=value, p=pattern) is found
    assert both(f"s like '{pattern}'", s=value) is found


def steps(function: Callable[[], object]) -> int:
    """How many lines of Python a call takes: time without a clock."""
    count = 0

    def trace(*args: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "pattern", ["%a" * 30 + "c", "%a_" * 30 + "c", "%" + "a_" * 200 + "c%", "%" * 61, "a" + "%a" * 30]
)
def test_like_is_linear(pattern: str) -> None:
    matches = text.like_matcher(pattern)
    assert steps(lambda: matches("a" * 8000)) < 2.5 * steps(lambda: matches("a" * 4000)) + 1000
    assert both("s like p", s="a" * 100_000, p=pattern) is ("c" not in pattern)


def test_split_is_linear() -> None:
    """Python's own regular expressions would take longer than anyone waits."""
    value = "a" * 100_000 + "c"
    assert both(f"split(s, '{'a*' * 60}b')", s=value) == [value]


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        (r"\s", "a\x0bb c", ["a", "b", "c"]),
        (r"[\s\-,]+", "a -,b", ["a", "b"]),
        (".", "a\n\u2028b", ["", "\n\u2028", ""]),
        ("[.]", "a.b", ["a", "b"]),
        ("]", "a]b", ["a", "b"]),
        ("[^a-c]", "abxc", ["ab", "c"]),
        (r"\\|\|", "a\\b|c", ["a", "b", "c"]),
        ("é|\U0001d11e", "aéb\U0001d11ec", ["a", "b", "c"]),
        ("a|ab", "xabx", ["x", "bx"]),
        (r"\d+", "a1b22c٣", ["a", "b", "c٣"]),
    ],
)
def test_split(pattern: str, value: str, found: list[str]) -> None:
    assert both(f"split(s, '{pattern}')", s=value) == found
    assert both(f"split(s, '{pattern}', 2)", s=value)[0] == found[0]


@pytest.mark.parametrize("written", ['"' + '\\"' * 50_000 + "'", "'" + "\\'" * 50_000, "'\"" * 50_000, "[" * 100_000])
def test_json_is_read_in_linear_time(written: str) -> None:
    assert json_text.reader(parse_type("struct<a:string>"))(written) == (None,)


@pytest.mark.parametrize("target", ["double", "decimal(10,2)", "int", "date", "timestamp", "boolean"])
@pytest.mark.parametrize("written", ["9" * 300_000 + "x", "0x" + "f" * 300_000, "2020-01-01 00:00:00" + "1" * 300_000])
def test_casts_read_in_linear_time(target: str, written: str) -> None:
    assert both(f"try_cast(s as {target})", s=written) in (None, 18262)


@pytest.mark.parametrize(
    ("written", "pattern", "found"),
    [
        ("regexp_like(s, p)", "^a", True),
        ("regexp_like(s, p)", None, None),
        (
            "regexp_like(s, p)",
            "(",
            "[INVALID_PARAMETER_VALUE.PATTERN] `regexp_like` does not take a `(` without its `)`",
        ),
        ("regexp_extract(s, p, 2)", "(a)(.)", "1"),
        ("regexp_extract(s, p, 2)", "(a)", "[INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX]"),
        ("regexp_replace(s, p, '<$0>')", "[0-9]", "a<1>b<2>"),
        ("regexp_replace(s, '[0-9]', p)", "$1", "[INVALID_PARAMETER_VALUE.PATTERN]"),
        ("regexp_replace(s, p, '')", "z*", "[INVALID_PARAMETER_VALUE.PATTERN]"),
        ("split(s, p)", "1", ["a", "b2"]),
        ("split(s, p)", "", ["a", "1", "b", "2"]),
        ("split(s, p)", "b|$", "[INVALID_PARAMETER_VALUE.PATTERN]"),
        ("date_format(timestamp_seconds(0), p)", "yyyy", "1970"),
        ("date_format(timestamp_seconds(0), p)", "q", "[INVALID_DATETIME_PATTERN]"),
        ("to_timestamp(s, p)", "'a1b2", "[INVALID_DATETIME_PATTERN]"),
        ("try_to_timestamp(s, p)", "yyyy", None),
        ("try_to_timestamp(s, p)", "q", "[INVALID_DATETIME_PATTERN]"),
        ("from_unixtime(0, p)", "HH", "00"),
    ],
)
def test_a_pattern_of_a_column_is_read_for_each_row(written: str, pattern: str | None, found: Any) -> None:
    given = both(written, s="a1b2", p=pattern)
    assert given.startswith(found) if isinstance(found, str) else given == found
