"""What groups come to, against a loop over their records; ranks and integers against Python's own."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from vsc.plan.types import BIGINT, BINARY, BOOLEAN, DOUBLE, STRING, DataType, DecimalType
from vsc.runtime.operators.aggregate.functions.integers import bytes_of, decimals, integers_of, unscaled
from vsc.runtime.operators.aggregate.functions.order import comparable, ranks
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.values import to_array

FLOATS = [0.0, -0.0, 0.1, 0.2, 0.3, 1e300, -1e300, 1e-300, math.inf, -math.inf, math.nan]
EDGES = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**15 - 1, 2**15, -(2**15), 2**55, -(2**55), 2**62 - 1, 1 - 2**62]


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@pytest.mark.parametrize("groups", [1, 3, 40, 70_000])
def test_floats_are_added_one_after_the_other(groups: int) -> None:
    rng = random.Random(groups)
    group = [min(rng.randrange(groups), rng.randrange(groups)) for _ in range(400)]
    values = [rng.choice(FLOATS) if rng.random() < 0.1 else rng.random() for _ in group]
    start = [rng.random() for _ in range(groups)]
    segments = Segments(np.array(group), groups)
    running, total = segments.float_sums(np.array(values)[segments.order], np.array(start))
    seen, sums = [], list(start)
    for g, value in zip(group, values, strict=True):
        sums[g] += value
        seen.append(sums[g])
    assert bits(running[segments.unsorted()]) == bits(seen)
    assert bits(total) == bits(sums)


@pytest.mark.parametrize("last_of_equal", [False, True])
@pytest.mark.parametrize("scale", [1, 2**58])
def test_the_winner_is_the_first_or_the_last_of_the_highest(last_of_equal: bool, scale: int) -> None:
    rng = random.Random(7)
    groups, count = 5, 300
    group = [rng.randrange(groups - 1) for _ in range(count)]  # the last group has no record
    rank, counts = [rng.randrange(-9, 9) * scale for _ in group], [rng.random() < 0.7 for _ in group]
    start, known = [rng.randrange(-9, 9) * scale for _ in range(groups)], [g % 2 == 0 for g in range(groups)]
    segments = Segments(np.array(group), groups)
    order = segments.order
    winner, ended = segments.winners(
        np.array(rank)[order], np.array(counts)[order], np.array(start), np.array(known), last_of_equal
    )
    best: list[tuple[int, int] | None] = [(start[g], g) if known[g] else None for g in range(groups)]
    seen = []
    for i, g in enumerate(group):
        now = best[g]
        if counts[i] and (now is None or rank[i] > now[0] or (last_of_equal and rank[i] == now[0])):
            best[g] = rank[i], groups + int(segments.unsorted()[i])
        found = best[g]
        seen.append(g if found is None else found[1])
    assert winner[segments.unsorted()].tolist() == seen
    assert ended.tolist() == [g if b is None else b[1] for g, b in enumerate(best)]


def test_sums_do_not_overflow() -> None:
    segments = Segments(np.array([0, 0]), 1)
    running, total = segments.sums(np.array([2**60, 2**60]), np.array([1]))
    assert (running.tolist(), total.tolist()) == ([2**60 + 1, 2**61 + 1], [2**61 + 1])
    for values, start in (([2**62, 2**62], 2**62), ([-(2**63), -(2**63)], -1), ([1, 1], 2**70)):
        running, total = segments.sums(np.array(values), np.array([start]))
        assert running.tolist() == [start + values[0], start + sum(values)]
        assert total.tolist() == [start + sum(values)]


def test_integers_have_the_bytes_of_the_record_by_record_engine() -> None:
    encoded = bytes_of(np.array(EDGES))
    assert encoded.to_pylist() == [
        n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True) if n else b"" for n in EDGES
    ]
    assert integers_of(encoded).tolist() == EDGES
    assert integers_of(encoded.slice(3, 5)).tolist() == EDGES[3:8]
    assert integers_of(pa.array([None, b"\x80", (2**62).to_bytes(8, "little")], pa.binary())).tolist() == [
        0, -128, 2**62,
    ]  # fmt: skip
    large = [2**64, 0, -(2**80), 2**62, -(2**63)]
    assert bytes_of(np.array(large, dtype=object)).to_pylist() == [
        n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True) if n else b"" for n in large
    ]
    assert integers_of(bytes_of(np.array(large, dtype=object))).tolist() == large
    assert bytes_of(np.array([2**62, -(2**63)])).to_pylist() == [
        (2**62).to_bytes(8, "little"), (-(2**63)).to_bytes(9, "little", signed=True)
    ]  # fmt: skip


def test_decimals_of_any_width_are_numbers() -> None:
    of = pa.decimal128(38, 2)
    for texts in (["1.25", None, "-7.00"], ["9" * 36 + ".99", None, "-" + "9" * 36 + ".98", "184467440737095516.16"]):
        column = pa.array([None if text is None else Decimal(text) for text in texts], of)
        numbers = unscaled(column)
        assert numbers.tolist() == [0 if text is None else int(text.replace(".", "")) for text in texts]
        null = np.array([text is None for text in texts])
        assert decimals(numbers, null, of).equals(column)
        assert unscaled(column.slice(2)).tolist() == numbers.tolist()[2:]


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (BIGINT, [3, -(2**63), 2**63 - 1, 0]),
        (DOUBLE, FLOATS),
        (BOOLEAN, [True, False]),
        (STRING, ["a", "", "é", "\U0001f600", "a\0", "Z", "￿"]),
        (BINARY, [b"a", b"", b"\xff", b"a\0"]),
        (DecimalType(30, 2), [Decimal("1.50"), Decimal("-9999999999999999999999999999.99"), Decimal("0.00")]),
    ],
)
def test_ranks_are_ordered_as_values(data_type: DataType, values: list[Any]) -> None:
    order = comparable(data_type)
    for ascending in (True, False):
        found = ranks(to_array([None, *values], data_type), data_type, ascending).tolist()[1:]
        for one, rank in zip(values, found, strict=True):
            for other, other_rank in zip(values, found, strict=True):
                above = order(one) > order(other) if ascending else order(one) < order(other)
                assert (rank > other_rank) == above, (one, other)
