"""D12's order over batches, against Python's sort: runs, rows in any order, numbers of any size."""

from __future__ import annotations

import random

import numpy as np
import pytest

from vsc.plan.nodes import Schema
from vsc.runtime.records import Batch, Order, Origin, processing_order

NO_COLUMNS = Schema((), ())


def batch(rows: list[tuple[int, int, int, int]], origins: tuple[Origin, ...]) -> Batch:
    time, origin, offset, path = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    order = Order(time, origin.astype(np.int32), offset, path.reshape(-1, 1))
    return Batch(NO_COLUMNS, origins, order, time, np.ones(len(rows), np.bool_), (), ())


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shuffled", [False, True])
def test_the_order_is_that_of_the_tuples(seed: int, shuffled: bool) -> None:
    rng = random.Random(seed)
    origins = tuple(Origin("s", rng.randrange(2), str(i)) for i in range(3))
    rows = []
    for origin in range(3):
        clock = 0
        for offset in range(300):
            clock += rng.choice((0, 0, 3))
            rows.append((clock, origin, offset, 1))
    size = rng.choice((100, 150, 450))
    batches = [batch(rows[at : at + size], origins) for at in range(0, len(rows), size)]
    if shuffled:
        rng.shuffle(rows)
        batches = [batch(rows[:500], origins), batch(rows[500:], origins)]
    else:
        rng.shuffle(batches)
    given = [
        tuple(r)
        for b in batches
        for r in zip(b.order.time.tolist(), b.order.origin.tolist(), b.order.offset.tolist(), strict=True)
    ]
    expected = sorted(range(len(given)), key=lambda i: (given[i][0], origins[given[i][1]].sort_key, given[i][2]))
    assert processing_order(batches).tolist() == expected


@pytest.mark.parametrize("widest", [4, 20, 40, 62, 63])
def test_the_order_is_that_of_the_tuples_however_large_they_are(widest: int) -> None:
    rng = random.Random(widest)
    origins = tuple(Origin("s", 0, str(i)) for i in range(3))
    edges = [-(2**widest), -1, 0, 1, 2**widest - 1]

    def number() -> int:
        return int(rng.choice([*edges, rng.randrange(-(2**widest), 2**widest)]))

    rows = [(number(), rng.randrange(3), number(), number()) for _ in range(400)]
    expected = sorted(range(len(rows)), key=lambda i: rows[i])
    assert processing_order([batch(rows[:150], origins), batch(rows[150:], origins)]).tolist() == expected


def test_rows_that_compare_equal_stay_as_they_came() -> None:
    origins = (Origin("s", 0, ""),)
    ascending = [(0, 0, i, 1) for i in range(100)]
    overlapping = [(0, 0, i, 1) for i in range(99, 200)]
    assert processing_order([batch(overlapping, origins), batch(ascending, origins)]).tolist() == [
        *range(101, 200), 0, 200, *range(1, 101),
    ]  # fmt: skip
