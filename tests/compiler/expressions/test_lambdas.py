"""Lambdas at compile time: what their parameters mean, what their results are, and where they may not stand."""

from __future__ import annotations

import pytest

from vsc.compiler import compile_topology
from vsc.compiler.driver import check_source
from vsc.compiler.expressions import Scope, ScopeInput, Typed, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan import dump, load
from vsc.plan.codec import PlanError
from vsc.plan.expressions import Call, Column, Lambda, Literal, Parameter
from vsc.plan.nodes import Column as SchemaColumn
from vsc.plan.nodes import Schema
from vsc.plan.types import INT, parse_type

COLUMNS = {"id": "bigint", "n": "array<int>", "tags": "array<string>", "lines": "array<struct<sku:string,qty:int>>",
           "nested": "array<array<int>>", "m": "map<string,int>"}  # fmt: skip
SCHEMA = Schema((), tuple(SchemaColumn(name, parse_type(ddl)) for name, ddl in COLUMNS.items()))
SOURCE = f"stream s ({', '.join(f'{name} {ddl}' for name, ddl in COLUMNS.items())}) from files (path = 'in', " + (
    "format = 'json') key id;\n"
)


def check(text: str) -> Typed:
    parsed = parse_expression(text)
    assert parsed.expression is not None, parsed.findings
    return type_expression(parsed.expression, Scope((ScopeInput("s", 0, SCHEMA),)))


def topology(expression: str) -> str:
    return f"{SOURCE}stream t = map s select {expression} as r;\nsink t to noop ();\n"


def findings(expression: str) -> list[tuple[str, str, str]]:
    """The code, the place and the message of each finding."""
    source, found = check_source(f"let fee = 2;\n{topology(expression)}", "t.vdsl", {})
    line = source.text.splitlines()[2]
    return [(one.code, line[one.column - 1 : one.end_column - 1], one.message) for one in found]


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("transform(n, x -> x + 1)", "array<int>"),
        ("transform(n, (x, i) -> x / i)", "array<double>"),
        ("transform(lines, l -> l.sku || id)", "array<string>"),
        ("transform(nested, x -> transform(x, y -> struct(y, size(x) as z)))", "array<array<struct<y:int,z:int>>>"),
        ("filter(lines, l -> l.qty > id)", "array<struct<sku:string,qty:int>>"),
        ("filter(tags, (tag, i) -> i < 3)", "array<string>"),
        ("exists(map_values(m), x -> x > 1)", "boolean"),
        ("forall(n, x -> null)", "boolean"),
    ],
)
def test_types(text: str, type: str) -> None:
    found = check(text)
    assert found.findings == () and found.expr is not None
    assert str(found.expr.type) == type


def test_a_parameter_is_known_by_its_place_alone() -> None:
    array = Column(0, "n", SCHEMA.value[1].type)
    x, i, y = Parameter(0, 0, INT), Parameter(1, 0, INT), Parameter(0, 1, INT)
    body = Call("add", (x, i), INT)
    assert check("transform(n, (a, b) -> a + b)").expr == Call("transform", (array, Lambda(body, 0)), array.type)
    inner = Call("transform", (array, Lambda(Call("add", (x, y), INT), 1)), array.type)
    nested = check("transform(n, x -> transform(n, y -> x + y))").expr
    assert isinstance(nested, Call) and nested.args[1] == Lambda(inner, 0)


@pytest.mark.parametrize("name", ["id", "s", "n", "`n`"])
def test_a_parameter_hides_columns_and_inputs(name: str) -> None:
    found = check(f"transform(lines, {name} -> {name}.qty)").expr
    assert isinstance(found, Call) and isinstance(found.args[1], Lambda)
    assert found.args[1].body == Call("get_field", (Parameter(0, 0, SCHEMA.value[3].type.element),  # type: ignore[union-attr]
                                                    Literal("qty", parse_type("string"))), INT)  # fmt: skip


def test_the_innermost_parameter_of_a_name_is_meant() -> None:
    assert (
        check("transform(n, x -> transform(n, x -> x))").expr == check("transform(n, x -> transform(n, y -> y))").expr
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("transform(tags, upper)", ("VSC221", "upper", "`transform` takes a lambda here")),
        ("transform(id, x -> x)",
         ("VSC221", "id", "`transform` takes an array here, not a value of type bigint")),
        ("filter(tags, x -> x)", ("VSC227", "x", "the lambda of `filter` takes a boolean, not a value of type string")),
        ("exists(n, (x, i) -> true)", ("VSC222", "(x, i) -> true", "the lambda of `exists` has one parameter")),
        ("filter(n, (x, x) -> true)", ("VSC111", "x", "both parameters are called `x`")),
        ("filter(n, fee -> true)", ("VSC111", "fee", "`fee` is a constant, and cannot be the parameter of a lambda")),
        ("upper(x -> x)", ("VSC221", "x -> x", "a lambda stands here")),
        ("x -> x", ("VSC005", "->", "only a lambda has a `->`")),
        ("transform(n, (x) -> x)", ("VSC005", "->", "the only parameter of a lambda has no parentheses")),
        ("transform(n)", ("VSC222", "transform(n)", "`transform` takes 2 arguments, not 1")),
        ("transform(n, x -> 1 / 0)", ("VSC333", "1 / 0", "a division by zero: this always fails")),
        ("filter(n, x -> x = null)", ("VSC331", "= null", "`= null` is never true")),
        ("filter(n, x -> sum(id) > 1)",
         ("VSC115", "sum(id)", "`sum` is an aggregate function, and this expression sees one row at a time")),
    ],
)  # fmt: skip
def test_what_is_wrong_has_one_finding(expression: str, expected: tuple[str, str, str]) -> None:
    assert findings(expression) == [expected]


def test_a_parameter_is_gone_after_its_lambda() -> None:
    assert findings("array(transform(n, x -> x), array(x))") == [("VSC110", "x", "there is no column `x`")]


def test_a_plan_holds_a_lambda() -> None:
    plan = compile_topology(topology("transform(n, (x, i) -> filter(n, y -> y > x + i))"), path="t.vdsl")
    assert load(dump(plan)) == plan


@pytest.mark.parametrize(
    ("was", "now", "mistake"),
    [
        ('"parameter": 0, "depth": 1', '"parameter": 0, "depth": 2', "no lambda has this parameter of type int"),
        ('"parameter": 1, "depth": 0', '"parameter": 2, "depth": 0', "no lambda has this parameter of type int"),
        ('"call": "transform"', '"call": "concat"', "a lambda stands here"),
        ('"call": "size"', '"call": "transform"', "transform does not take 1 arguments"),
    ],
)
def test_an_edited_plan_with_a_lambda_that_does_not_fit_is_refused(was: str, now: str, mistake: str) -> None:
    text = dump(
        compile_topology(topology("transform(n, (x, i) -> exists(n, y -> y > x + i + size(n)))"), path="t.vdsl")
    )
    assert was in text
    with pytest.raises(PlanError, match=mistake):
        load(text.replace(was, now))
