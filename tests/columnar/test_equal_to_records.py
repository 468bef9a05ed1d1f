"""Whole columns against record by record: the same records, in the same and in other cuts, give the same of everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.topologies import Record, batches, collected, joins, state, tables
from vsc.plan.nodes import Plan
from vsc.runtime.operators.columnar import ColumnarStage, supports
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.task import StageTask
from vsc.runtime.state.kv import MemoryKV

KEYS = ["a", "a\0", "b", ""]
TIMES = [0, 1, 2, 3, 4, 5, 6, 9, 12, 30, 31]


@st.composite
def histories(draw: st.DrawFn, sources: list[str], most: int = 30) -> list[Record]:
    value = st.none() | st.tuples(st.none() | st.integers(0, 5), st.none() | st.sampled_from(KEYS))
    one = st.tuples(st.sampled_from(sources), st.sampled_from(KEYS[:3]), st.sampled_from(TIMES), value)
    return draw(st.lists(one, min_size=1, max_size=most))


@st.composite
def cuts(draw: st.DrawFn, length: int) -> list[range]:
    marks = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=3))})
    return [range(a, b) for a, b in zip(marks, marks[1:], strict=False)]


def run(stage: Any, history: list[Record], parts: list[range], shuffle: random.Random) -> list[Any]:
    return [stage.process(batches([(i, history[i]) for i in part], shuffle)) for part in parts]


@pytest.mark.parametrize("topology", [joins, tables])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equal_in_every_result_metric_and_state(topology: Callable[[int, int], Plan], data: st.DataObject) -> None:
    retention, grace = data.draw(st.sampled_from([(0, 0), (2, 2), (3, 6), (6, 1), (100, 100)]))
    plan = topology(retention, grace)
    stage = plan.stages[1]
    assert supports(plan, stage)
    history = data.draw(histories([i.node for i in stage.inputs]))
    observe = frozenset(data.draw(st.sets(st.sampled_from(stage.nodes))) or stage.nodes)
    shuffle = random.Random(data.draw(st.integers(0, 9)))
    kv, other = MemoryKV(), MemoryKV()
    options = RunOptions(on_error="drop")
    records = StageTask(plan, 1, kv, options, observe, engine="records")
    one_by_one = collected(run(records, history, data.draw(cuts(len(history))), shuffle))
    columns = ColumnarStage(plan, 1, other, options, observe)
    in_columns = collected(run(columns, history, data.draw(cuts(len(history))), shuffle))
    assert in_columns[0] == one_by_one[0]
    assert in_columns[1] == one_by_one[1]
    assert state(plan, other, TIMES) == state(plan, kv, TIMES)
