"""Long flat expressions: 5,000 terms do not count as nesting, from the text to the values of both evaluations."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from tests.runtime.operators.driving import rows
from vsc.compiler import check_topology, compile_topology
from vsc.plan import dump, load
from vsc.plan.expressions import Call, Expr
from vsc.plan.nodes import Map, Plan
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.slow

MANY = 5_000
SOURCE = "stream s (k bigint, n int, x double, m decimal(12, 2), t string) from memory () key k;\n"
LONG = [
    ("or", " or ".join(f"n = {i}" for i in range(MANY)), [True, False, None]),
    ("and", " and ".join(f"n <> {i}" for i in range(MANY)), [False, True, None]),
    ("||", " || ".join(["t"] * MANY), ["ab" * MANY, "" * MANY, None]),
    ("+", " + ".join(["n"] * MANY), [7 * MANY, -MANY, None]),
    ("-", " - ".join(["n"] * MANY), [7 - 7 * (MANY - 1), MANY - 2, None]),
    ("+ of doubles", " + ".join(["x"] * MANY), [0.5 * MANY, float("inf"), None]),
    ("*", " * ".join(["x"] * MANY), [0.0, float("inf"), None]),
    ("case", "case " + " ".join(f"when n = {i} then {i + 1}" for i in range(MANY)) + " else -5 end", [8, -5, -5]),
    ("case x", "case n " + " ".join(f"when {i} then 'v{i}'" for i in range(MANY)) + " end", ["v7", None, None]),
    ("in", f"n in ({', '.join(map(str, range(MANY)))})", [True, False, None]),
    ("coalesce", f"coalesce({'n, ' * MANY}3)", [7, -1, 3]),
]
ROWS = [(1, 7, 0.5, None, "ab"), (2, -1, float("inf"), None, ""), (3, None, None, None, None)]


def _topology(text: str) -> str:
    return f"{SOURCE}stream r = map s select {text} as v;\nsink r to memory ();"


def _map(text: str) -> tuple[Plan, Expr]:
    plan = compile_topology(_topology(text))
    written = dump(plan)
    assert load(written) == plan == pickle.loads(pickle.dumps(plan))
    (operation,) = [node.operation for node in plan.nodes if isinstance(node.operation, Map)]
    return plan, operation.items[0].expr


@pytest.mark.parametrize(("text", "values"), [case[1:] for case in LONG], ids=[case[0] for case in LONG])
def test_five_thousand_terms(text: str, values: list[object]) -> None:
    plan, expr = _map(text)
    schema = next(node.schema for node in plan.nodes if node.name == "s")
    function = compile_row(expr, [schema])
    assert [function(row, None, None, None) for row in ROWS] == values
    types = [pa.int64(), pa.int32(), pa.float64(), pa.decimal128(12, 2), pa.string()]
    columns = tuple(pa.array(list(c), t) for c, t in zip(zip(*ROWS, strict=True), types, strict=True))
    assert evaluate(expr, [Frame(schema, columns)])[0].to_pylist() == values
    with TopologyTestDriver(_topology(text)) as driver:
        for k, n, x, _, t in ROWS[::2]:
            driver.pipe("s", {"k": k, "n": n, "x": x, "t": t}, timestamp=k)
        assert [value["v"] for _, value, _ in rows(driver, "r")] == values[::2]


def test_a_chain_of_one_operator_is_one_call_as_long_as_its_types_stay() -> None:
    _, expr = _map("n + n + n")
    assert isinstance(expr, Call) and (expr.function, len(expr.args), str(expr.type)) == ("add", 3, "int")
    _, expr = _map("n + n + k + k")
    assert isinstance(expr, Call) and (len(expr.args), str(expr.type)) == (3, "bigint")
    _, expr = _map("n - n + n")
    assert isinstance(expr, Call) and [str(a) for a in (expr.function, len(expr.args))] == ["add", "2"]
    _, expr = _map(" + ".join(["m"] * MANY))  # a digit more with each, up to 38
    depth, function = 0, expr
    while isinstance(function, Call):
        depth, function = depth + 1, function.args[0]
    assert depth == 26 and str(expr.type) == "decimal(38,2)"


def test_a_step_of_a_chain_fails_or_is_null_as_if_it_stood_alone() -> None:
    _, expr = _map("n + n + cast(t as int)")
    schema = next(node.schema for node in compile_topology(SOURCE + "sink s to memory ();").nodes)
    function = compile_row(expr, [schema])
    assert function((1, None, None, None, "no number"), None, None, None) is None  # what is behind a null is not asked
    with pytest.raises(ExpressionFailure, match="int overflow"):
        function((1, 2**30, None, None, None), None, None, None)  # nor is a null behind an overflow
    assert function((1, 2, None, None, None), None, None, None) is None
    assert function((1, 2, None, None, "5"), None, None, None) == 9


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("abs(" * 101 + "n" + ")" * 101, "VSC228", "the expression is nested too deeply"),
        ("n + (" * 101 + "n" + ")" * 101, "VSC015", "this is nested more than 128 levels deep"),
        ("n" + " + n - n" * 150, "VSC228", "too many calculations in a row each need the result of the one before"),
        ("(" * 1100 + "n" + ")" * 1100, "VSC015", "this is nested more than 128 levels deep"),
    ],
    ids=["calls", "parentheses", "plus and minus", "far too deep"],
)  # fmt: skip
def test_what_is_nested_is_refused(text: str, code: str, message: str) -> None:
    found = check_topology(_topology(text))
    assert [(d.code, d.message) for d in found if d.severity == "error"] == [(code, message)]


def test_a_deep_plan_can_be_written_and_read() -> None:
    text = "n" + " + n - n" * 74
    assert _map(text)[0].nodes
