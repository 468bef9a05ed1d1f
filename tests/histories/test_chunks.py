"""How the entries of a complete history are divided into chunks."""

from __future__ import annotations

import random

import numpy as np

from vsc.runtime.operators.aggregate.groups import past


def test_chunks_are_of_one_group_bounded_and_hold_all_entries_of_a_time() -> None:
    rng = random.Random(3)
    rows = sorted((rng.randrange(3), rng.randrange(400)) for _ in range(2000))
    rows += [(3, 7)] * 600  # of one time
    group, time = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    starts = past._starts(group, time).tolist()
    assert starts[0] == 0
    for begin, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        assert len({number for number, _ in rows[begin:end]}) == 1
        assert end - begin < past._MOST_ENTRIES + 20 or len(set(rows[begin:end])) == 1
    assert all(rows[begin - 1] < rows[begin] for begin in starts[1:])
    assert len(starts) == 3 * 3 + 1
