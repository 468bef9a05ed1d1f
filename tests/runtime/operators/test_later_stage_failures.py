"""What the columnar engine refuses, and how it leaves things when an expression fails."""

from __future__ import annotations

import random

import pytest

from tests.oracle.engines import OnColumns, OneByOne
from tests.runtime.operators.topologies import (
    KEY,
    Builder,
    V,
    batches,
    collected,
    item,
    number,
    versioned,
)
from vsc.plan.expressions import Call
from vsc.plan.nodes import Column, Map, Plan, Schema
from vsc.plan.types import DOUBLE
from vsc.runtime.errors import ExpressionError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.state.kv import MemoryKV

HISTORY = [("t", "a", 1, (1, "x")), ("s", "a", 1, (0, "y")), ("t", "a", 2, (2, "x")), ("s", "a", 2, (3, "y"))]


def dividing() -> Plan:
    """A stream's map that divides by v; then a join, so that there is a store."""
    b = Builder()
    b.source("t", "table", versioned("t", 10))
    b.source("s", "stream")
    b.join("joined", "s", "t", left=True, as_of=True)
    share = item("v", Call("divide", (number(6), V), DOUBLE))
    b.add("shares", "stream", Map((share,)), ["s"], Schema((KEY,), (Column("v", DOUBLE),)))
    return b.plan()


def test_the_first_failure_is_raised_and_nothing_is_written() -> None:
    plan, kv = dividing(), MemoryKV()
    stage = LaterStage(plan, 1, kv, RunOptions(), frozenset({"joined"}))
    with pytest.raises(ExpressionError, match=r"'shares': .* failed on record 1 of"):
        stage.process(batches(list(enumerate(HISTORY)), random.Random(0)))
    assert list(kv.scan(b"", None)) == []


def test_records_that_fail_are_left_out() -> None:
    plan = dividing()
    observe = frozenset(plan.stages[1].nodes)
    found = []
    for engine in (OneByOne, OnColumns):
        task = engine(plan, 1, RunOptions(on_error="drop"), observe)
        results = [task.process(batches([(i, record)], random.Random(0))) for i, record in enumerate(HISTORY)]
        found.append((*collected(results), task.content()))
    assert found[0] == found[1]
    dropped = found[1][1].as_dict()["dropped_records"]
    assert dropped == {"shares": {"expression_failed": 1}}
