"""Calls of functions of the user's inside random expressions, against expressions that say the same without them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.functions import own_rules
from tests.random_topologies.expressions import TYPES, Scope, expression
from tests.random_topologies.rows import SCHEMA, random_rows
from tests.random_topologies.seeds import seeds
from vsc.compiler import compile_topology
from vsc.plan.expressions import Call, Expr, parts
from vsc.plan.nodes import Map
from vsc.runtime.expressions import ExpressionFailure, Frame, bind, compile_row, evaluate
from vsc.runtime.values import to_array, to_values

pytestmark = pytest.mark.long

MODULE = own_rules.__name__
DECLARED = f"""
function shown (n bigint) returns bigint from '{MODULE}:shown';
function not_two (n bigint) returns bigint from '{MODULE}:not_two';
function tagged (s string) returns string from '{MODULE}:tagged' vectorized;
function no_blank (s string) returns string from '{MODULE}:no_blank' vectorized;
"""
SAME = {
    "shown": "coalesce({0}, cast(-1 as bigint))",
    "not_two": "if({0} = 2, cast('x' as bigint), {0})",
    "tagged": "coalesce({0}, '?')",
    "no_blank": "if({0} = '', cast(cast({0} as int) as string), {0})",
}
CALLED = {"bigint": ("shown", "not_two"), "string": ("tagged", "no_blank")}


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", seeds("VSC_EXPRESSIONS", 4))
def test_random_expressions_with_calls(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, 40)
    columns = tuple(to_array([row[i] for row in rows], c.type) for i, c in enumerate(SCHEMA.value))
    frame = Frame(SCHEMA, columns, np.arange(len(rows), dtype=np.int64))
    called = {f"{f}({c.name})": SAME[f].format(c.name) for c in SCHEMA.value for f in CALLED.get(str(c.type), ())}
    plain = [(c.name, str(c.type)) for c in SCHEMA.value]
    types = {c.name: str(c.type) for c in SCHEMA.value}
    calls = [(call, types[call.partition("(")[2].rstrip(")")]) for call in called]
    count = 0
    for _ in range(40):
        text = expression(rng, Scope([*plain, *calls, *calls], False), rng.choice(TYPES), 3)
        other = text
        for call, same in called.items():
            other = other.replace(call, f"({same})")
        own, known = _typed(text), _typed(other)
        count += sum(isinstance(part, Call) and part.is_own for part in parts(own))
        _compare(text, own, known, rows, frame)
    assert count > 10


def _typed(text: str) -> Expr:
    columns = ", ".join(f"{c.name} {c.type}" for c in SCHEMA.value)
    plan = compile_topology(f"{DECLARED} stream s ({columns}) from memory (); stream r = map s select {text} as v;")
    bind(plan, [MODULE])
    operation = plan.node("r").operation
    assert isinstance(operation, Map)
    return operation.items[0].expr


def _compare(text: str, own: Expr, known: Expr, rows: list[tuple[Any, ...]], frame: Frame) -> None:
    function = compile_row(known, [SCHEMA])
    values: list[Any] = [None] * len(rows)
    failed = set()
    for number, row in enumerate(rows):
        try:
            values[number] = function(row, None, number, None)
        except ExpressionFailure:
            failed.add(number)
    found, failures = evaluate(own, [frame])
    assert repr(to_values(found, own.type)) == repr(values), text
    assert set(failures) == failed, text
