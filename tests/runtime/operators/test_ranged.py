"""Calls over ranges of rows give what they give row by row, whatever the values and the ranges."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from vsc.compiler import compile_topology
from vsc.plan.operations import AggregateCall, WithinAggregate
from vsc.runtime.operators.within_aggregate.calls import by_row
from vsc.runtime.operators.within_aggregate.ranged import ranged
from vsc.runtime.operators.within_aggregate.ranges import Pieces
from vsc.runtime.values import to_array

VALUES: dict[str, list[Any]] = {
    "tinyint": [-128, 127, 0, 1],
    "bigint": [-(2**63), 2**63 - 1, 2**62, -1, 0, 5],
    "decimal(10, 2)": [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.01")],
    "decimal(38, 0)": [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(2**63), Decimal(-(2**62)), Decimal(3)],
    "double": [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.5],
    "double ": [5e-324, 2.2e-308, 1e300, 0.1, 2.0**52, 2.0**53 - 1, 3.0, -0.0],
    "double  ": [0.25, 3.0, -17.5, 2.0**40, -0.0],
    "float": [0.5, -1.5, 2.0],
    "string": ["", "a", "B", "é", "aa"],
    "binary": [b"", b"\0", b"\xff"],
    "boolean": [True, False],
    "date": [-1, 0, 20_000],
    "timestamp": [-1, 0, 10**15],
    "array<int>": [[], [1], [1, 2], [None]],
}
CALLS = (
    "count(v)",
    "count(*)",
    "sum(v)",
    "avg(v)",
    "min(v)",
    "max(v)",
    "min_by(v, w)",
    "max_by(v, w)",
    "first(v)",
    "last(v)",
)


def call_of(text: str, of: str) -> AggregateCall:
    plan = compile_topology(
        f"stream s (k string, v {of}, w int, at timestamp) from memory () key k timestamp at;"
        f"stream o = join s as l with s as r within (before = 1 day) select {text} as x; sink o to memory ();",
        path="t.vdsl",
    )
    operation = plan.node("o").operation
    assert isinstance(operation, WithinAggregate)
    return operation.calls[0]


def random_pieces(rng: random.Random, rows: int) -> Pieces:
    starts, low, high = list[int](), list[int](), list[int]()
    for _ in range(rng.randint(1, 12)):
        starts.append(len(low))
        ends = sorted(rng.randint(0, rows) for _ in range(2 * rng.choice([1, 1, 2, 3])))
        low += ends[::2]
        high += ends[1::2]
    return Pieces(*(np.array(part, dtype=np.int64) for part in (starts, low, high)))


@pytest.mark.parametrize("of", VALUES)
def test_a_call_over_ranges_is_the_call_row_by_row(of: str) -> None:
    rng = random.Random(of)
    numeric = not of.startswith(("string", "binary", "boolean", "date", "timestamp", "array"))
    for text in CALLS:
        if text in ("sum(v)", "avg(v)") and not numeric:
            continue
        call = call_of(text, of)
        for _ in range(10):
            rows = rng.choice([0, 1, 5, 30])
            chosen = rng.sample(VALUES[of], rng.randint(1, len(VALUES[of])))
            columns = [
                [rng.choice([*chosen, None]) for _ in range(rows)],
                [rng.choice([1, 2, None]) for _ in range(rows)],
            ]
            args = [to_array(values, arg.type) for values, arg in zip(columns, call.args, strict=False)]
            pieces = random_pieces(rng, rows)
            wanted = by_row(call, args, np.arange(rows, dtype=np.int64), pieces)
            found = ranged(call, args, pieces)
            if found is None:
                assert text in ("sum(v)", "avg(v)") and of in ("double", "double ", "float")
                continue
            assert (repr(found[0].to_pylist()), found[1]) == (repr(wanted[0].to_pylist()), wanted[1]), text
            assert found[0].type == wanted[0].type


@pytest.mark.parametrize(
    ("values", "exact"),
    [([1.0, 2.5, None, -1e9], True), ([0.1, 0.2], False), ([2.0**51, 2.0**51], False)],
)
def test_doubles_are_summed_at_once_if_no_sum_is_rounded(values: list[float | None], exact: bool) -> None:
    call = call_of("sum(v)", "double")
    column = to_array(values, call.args[0].type)
    pieces = Pieces(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.full(1, len(values)))
    found = ranged(call, [column], pieces)
    assert (found is not None) == exact
    if found is not None:
        assert found[0].to_pylist() == [sum(value for value in values if value is not None)]
