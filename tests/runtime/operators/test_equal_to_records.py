"""Whole columns against record by record: the same records, in the same and other cuts, give the same of everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.engines import OnColumns, OneByOne
from tests.oracle.stores import bytes_kept
from tests.runtime.operators.topologies import (
    Record,
    batches,
    collected,
    groups,
    joins,
    meeting,
    table_joins,
    tables,
    windows,
)
from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions

pytestmark = pytest.mark.slow

KEYS = ["a", "a\0", "b", ""]
LIMITS = [(0, 0), (2, 2), (3, 6), (6, 1), (100, 100)]
"""History retention and grace."""
TOPOLOGIES = (joins, tables, table_joins, meeting, groups, windows)
LARGE = (groups, windows)
"""Topologies of many nodes with many columns, which take their time."""
TIMES = [0, 1, 2, 3, 4, 5, 6, 9, 12, 30, 31]


@st.composite
def histories(draw: st.DrawFn, sources: list[str], most: int = 30) -> list[Record]:
    value = st.none() | st.tuples(st.none() | st.integers(0, 5), st.none() | st.sampled_from(KEYS))
    one = st.tuples(st.sampled_from(sources), st.sampled_from(KEYS[:3]), st.sampled_from(TIMES), value)
    return draw(st.lists(one, min_size=1, max_size=most))


@st.composite
def cuts(draw: st.DrawFn, length: int) -> list[range]:
    marks = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=3))})
    return [range(a, b) for a, b in pairwise(marks)]


def run(stage: Any, history: list[Record], parts: list[range], shuffle: random.Random) -> list[Any]:
    return [stage.process(batches([(i, history[i]) for i in part], shuffle)) for part in parts]


def assert_equal(
    plan: Plan, history: list[Record], observe: frozenset[str], parts: tuple[list[range], list[range]], seed: int
) -> None:
    shuffle, options = random.Random(seed), RunOptions(on_error="drop")
    records = OneByOne(plan, 1, options, observe)
    one_by_one = collected(run(records, history, parts[0], shuffle))
    kept = []
    for cut in parts:
        columns = OnColumns(plan, 1, options, observe)
        in_columns = collected(run(columns, history, cut, shuffle))
        assert in_columns[0] == one_by_one[0]
        assert in_columns[1] == one_by_one[1]
        assert columns.content() == records.content()
        kept.append(bytes_kept(plan, 1, columns.kv))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_equal_in_every_result_metric_and_state(topology: Callable[[int, int], Plan], data: st.DataObject) -> None:
    plan = topology(*data.draw(st.sampled_from(LIMITS)))
    stage = plan.stages[1]
    history = data.draw(histories([i.node for i in stage.inputs]))
    observe = frozenset(data.draw(st.sets(st.sampled_from(stage.nodes))) or stage.nodes)
    parts = data.draw(cuts(len(history))), data.draw(cuts(len(history)))
    assert_equal(plan, history, observe, parts, data.draw(st.integers(0, 9)))


@pytest.mark.parametrize(
    ("topology", "seed"),
    [
        (t, seed)
        for t in (joins, tables, table_joins, meeting, groups, windows)
        for seed in range(10 if t in LARGE else 30)
    ],
)
def test_equal_over_long_histories(topology: Callable[[int, int], Plan], seed: int) -> None:
    rng = random.Random(seed)
    plan = topology(*LIMITS[seed % len(LIMITS)])
    sources = [i.node for i in plan.stages[1].inputs]
    clock, history = 0, []
    for _ in range(160):
        clock += rng.choice((0, 0, 1, 1, 2, 7))
        row = None if rng.random() < 0.3 else (rng.choice((None, *range(6))), rng.choice((None, *KEYS)))
        time = max(0, clock - rng.choice((0, 0, 1, 2, 3, 5, 8, 20)))
        history.append((rng.choice(sources), rng.choice(KEYS[:3]), time, row))
    marks = [sorted({0, 160, *rng.sample(range(160), rng.randrange(5))}) for _ in range(2)]
    parts = [range(a, b) for a, b in pairwise(marks[0])], [range(a, b) for a, b in pairwise(marks[1])]
    assert_equal(plan, history, frozenset(plan.stages[1].nodes), parts, seed)
