"""Aggregates of hostile values: what is shipped gives what the oracle gives, and what has no result is dropped.

200 rows for each function, over streams, windows, sessions and tables; ``VSC_HOSTILE_ROWS=10000`` takes more.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from soak.hostile import hostile
from tests.oracle import difference, oracle, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import TopologyError, compile_topology
from vsc.plan.functions import AGGREGATES
from vsc.plan.nodes import Plan
from vsc.plan.types import DataType, parse_type
from vsc.runtime.values import to_python

ROWS = int(os.environ.get("VSC_HOSTILE_ROWS", "200"))
BATCH = 25
TYPES = (
    "boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "decimal(38,0)",
    "string", "binary", "date", "timestamp", "array<string>", "struct<a:int,b:string>",
)  # fmt: skip
SHAPES = (
    "stream", "table", "window tumbling (size = 10 ms, grace = 1 day)", "window session (gap = 5 ms, grace = 1 day)",
)  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("function", [*AGGREGATES, "count(distinct"])
def test_the_engines_agree_on_hostile_values(function: str) -> None:
    random = Random(function)
    for _ in range(-(-ROWS // (2 * BATCH))):
        text, plan, of, by = topology(random, function)
        pool = [value(random, of) for _ in range(6)]
        rows = [
            {"id": random.randrange(6), "k": random.randrange(2), "v": random.choice(pool), "w": value(random, by)}
            for _ in range(2 * BATCH)
        ]
        epochs = [epoch(random, rows[:BATCH], 0), epoch(random, rows[BATCH:], BATCH)]
        wrong = difference(shipped(plan, epochs, ["a"]), oracle(plan, epochs, ["a"]), True)
        assert not wrong, f"{text}\n{wrong}"


def topology(random: Random, function: str) -> tuple[str, Plan, DataType, DataType]:
    """A topology with the function, and the types of its arguments."""
    args = {
        "min_by": "v, w",
        "max_by": "v, w",
        "approx_percentile": "v, 0.4",
        "collect_last": "v, 3",
        "collect_top": f"v, 3 by w{random.choice(('', ' desc'))}",
    }
    call = f"{function} v)" if "(" in function else f"{function}({args.get(function, 'v')})"
    while True:
        of, by, shape = random.choice(TYPES), random.choice(TYPES), random.choice(SHAPES)
        kind, window = (shape, "") if shape in ("stream", "table") else ("stream", shape)
        text = f"""
        {kind} s (id int, k int, v {of}, w {by}, at bigint) from memory () key id timestamp at;
        table a = aggregate s group by k {window} select {call} as r;
        sink a to memory ();
        """
        try:
            return text, compile_topology(text, path="hostile.vdsl"), parse_type(of), parse_type(by)
        except TopologyError:
            continue  # such as a sum of texts


def value(random: Random, of: DataType) -> Any:
    """A value as users write it; null for a time that Python does not have."""
    found = hostile(random, of)
    if found == 0 and str(of) in ("float", "double"):
        found = 0.0  # which of two equal zeros `max` of a table gives is not said
    try:
        return to_python(found, of)
    except OverflowError:
        return None


def epoch(random: Random, rows: list[dict[str, Any]], first: int) -> list[EpochRow]:
    times = [random.randrange(60) for _ in rows]
    return [
        EpochRow("s", "", first + i, {**r, "at": at}, at) for i, (r, at) in enumerate(zip(rows, times, strict=True))
    ]
