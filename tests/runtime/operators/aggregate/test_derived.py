"""Groups that are computed later hold what they would hold at once, however they come from each other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.operators.topologies import CALLS, THIRD, Builder
from vsc.plan.nodes import Aggregate, AggregateCall, Window
from vsc.plan.types import BIGINT, DOUBLE
from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.groups.derived import Derivations
from vsc.runtime.operators.aggregate.groups.folding import Folding
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.values import arrow_type

ROWS = 60
SPREAD = AggregateCall("variance", (THIRD,), False, DOUBLE, "variance(v / 3)")


@pytest.mark.parametrize("seed", range(10))
def test_groups_that_come_from_each_other(seed: int) -> None:
    rng = random.Random(seed)
    b = Builder()
    b.source("s", "stream")
    b.aggregate("a", "s", Window("session", 5, 0, 5), calls=(*CALLS, SPREAD))
    node = b.plan().node("a")
    assert isinstance(node.operation, Aggregate)
    folding, kv = Folding(node, node.operation), MemoryKV()
    one_by_one = folding.calls
    types = [arg.type for call in node.operation.calls for arg in call.args]
    args = [_column(rng, of) for of in types]
    time = np.array([rng.randrange(50) for _ in range(ROWS)], dtype=np.int64)
    later = Derivations(folding, args, time, range(1, ROWS + 1))
    groups: list[tuple[Group, int]] = [(one_by_one.empty(), later.empty())]
    for number, row in enumerate(one_by_one.rows(args, ROWS)):
        group, derived = rng.choice(groups[-3:] if rng.random() < 0.7 else groups)
        group = group.copy()
        if rng.random() < 0.2 and len(groups) > 1:
            other, other_derived = rng.choice(groups[1:])
            one_by_one.merge(group, other, kv, b"", b"")
            derived = later.merge(derived, other_derived, b"", 0, 0)
        if group.rows and rng.random() < 0.1:  # as it comes back from the store
            data = one_by_one.encode(group)
            group, (_, (derived,)) = one_by_one.decode(data), later.load([data])
        at = At(int(time[number]), number + 1)
        one_by_one.add(group, row, at, kv, b"")
        derived = later.add(derived, number, b"", 0)
        group.time = max(group.time, at.time)
        groups.append((group, derived))
    kept = groups[1:]  # nobody keeps an empty one
    found = map(one_by_one.decode, later.encode([group.time for group, _ in kept], [derived for _, derived in kept]))
    assert [_seen(group) for group in found] == [_seen(group) for group, _ in kept]


def _seen(group: Group) -> tuple[Any, ...]:
    return group.time, group.rows, group.cells


def _column(rng: random.Random, of: Any) -> pa.Array:
    values: list[Any] = [rng.choice((None, *range(-9, 9))) for _ in range(ROWS)]
    if of != BIGINT:
        values = [None if value is None else f"{value}" for value in values]
    return pa.array(values, pa.int64() if of == BIGINT else pa.string()).cast(arrow_type(of))
