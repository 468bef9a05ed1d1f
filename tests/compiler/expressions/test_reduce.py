"""Calls whose lambdas see more than the elements of an array: ``reduce`` and ``transform_values``."""

from __future__ import annotations

import pytest

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type

SCHEMA = Schema((), (Column("a", parse_type("array<int>")), Column("m", parse_type("map<string,int>"))))


def findings(text: str) -> list[str]:
    expression = parse_expression(text).expression
    assert expression is not None
    return [
        f"{one.code} {one.message}"
        for one in type_expression(expression, Scope((ScopeInput("r", 0, SCHEMA),))).findings
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("reduce(a, 0, x -> x)", "VSC222 the lambda of `reduce` has two parameters"),
        ("reduce(a, 0, (s, x) -> s, (s, x) -> s)", "VSC222 the lambda of `reduce` has one parameter"),
        ("reduce(m, 0, (s, x) -> s)", "VSC221 `reduce` takes an array here, not a value of type map<string,int>"),
        (
            "reduce(a, 0, (s, x) -> s + 0.5)",
            "VSC221 the lambda of `reduce` gives a value of type decimal(12,1), and it starts with int",
        ),
        ("reduce(a, 0, 1)", "VSC221 `reduce` takes a lambda here"),
        ("transform_values(m, v -> v)", "VSC222 the lambda of `transform_values` has two parameters"),
        (
            "transform_values(a, (k, v) -> v)",
            "VSC221 `transform_values` takes a map here, not a value of type array<int>",
        ),
        (
            "get_json_object('{}', '$.a[*]')",
            "VSC225 `get_json_object` does not read the path '$.a[*]': `[*]` is not a step of a path",
        ),
        ("map('a')", "VSC222 `map` takes at least 2 arguments, not 1"),
        ("map('a', 1, 'b')", "VSC222 `map` takes keys and values in turn, not 3 arguments"),
        ("map(a, 1)", "VSC221 `map` takes keys without arrays and maps here, not a value of type array<int>"),
    ],
)
def test_what_is_refused(text: str, found: str) -> None:
    assert findings(text) == [found]


def test_lambdas_in_lambdas_see_the_outer_ones() -> None:
    assert findings("reduce(transform(a, x -> x + 1), 0, (s, x) -> s + reduce(a, x, (t, y) -> t + y + s))") == []
