"""Places the slots of each row: as close as possible to the slots that they are linked with.

Slots do not overlap and stay within the width of the picture. Arrows that pass several rows are kept straight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from vsc.compiler.emit.rows import GAP, LANE, Rows, Slot, room

__all__ = ["middles"]

_ROUNDS = 24
_LANE_WEIGHT = 8
"""The weight of a lane, where a box has weight 1."""


def middles(rows: Rows) -> dict[Slot, float]:
    """The centre of every slot, in pixels from the left edge of the rows."""
    above: dict[Slot, list[Slot]] = {slot: [] for row in rows.rows for slot in row}
    below: dict[Slot, list[Slot]] = {slot: [] for slot in above}
    for start, end in dict.fromkeys(pair for way in rows.ways for pair in pairwise(way)):
        above[end].append(start)
        below[start].append(end)
    widest = max([room(), *(_packed(row, rows.widths)[1] for row in rows.rows)])
    at = {slot: middle for row in rows.rows for slot, middle in zip(row, _packed(row, rows.widths)[0], strict=True)}
    for turn in range(_ROUNDS):
        down, last = turn % 2 == 0, turn >= _ROUNDS - 2
        for row in rows.rows if down else rows.rows[::-1]:
            near = {
                slot: [*(above[slot] if down or last else ()), *(below[slot] if last or not down else ())]
                for slot in row
            }
            wanted = [_mean(slot, near[slot], at, rows.widths) for slot in row]
            at.update(zip(row, _spread(row, wanted, rows.widths, widest), strict=True))
    return at


def _mean(slot: Slot, near: Sequence[Slot], at: Mapping[Slot, float], widths: Mapping[Slot, float]) -> float:
    """The weighted mean position of the slots that a slot is linked with; lanes weigh more, so that they line up."""
    weights = [_weight(slot, widths) * _weight(other, widths) for other in near]
    return sum(at[o] * w for o, w in zip(near, weights, strict=True)) / sum(weights) if near else at[slot]


def _weight(slot: Slot, widths: Mapping[Slot, float]) -> int:
    return _LANE_WEIGHT if widths[slot] == LANE else 1


def _packed(row: Sequence[Slot], widths: Mapping[Slot, float]) -> tuple[list[float], float]:
    """The centres of the slots when packed to the left, and where the last one ends."""
    ends = list(accumulate(widths[slot] + GAP for slot in row))
    return [end - GAP - widths[slot] / 2 for slot, end in zip(row, ends, strict=True)], ends[-1] - GAP


def _spread(row: Sequence[Slot], wanted: Sequence[float], widths: Mapping[Slot, float], widest: float) -> list[float]:
    """The centres closest to `wanted` (by weighted least squares) that keep the order, the gaps and the bounds.

    Measured as offsets from the packed positions, order and gaps are kept if the offsets never decrease. So this is an
    isotonic regression: pool adjacent violators, then clip.
    """
    packed, total = _packed(row, widths)
    pools: list[tuple[float, int, int]] = []  # per pool: the mean, the weight, the number of slots
    for slot, want, least in zip(row, wanted, packed, strict=True):
        mean, weight, count = want - least, _weight(slot, widths), 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean, weight, count = (before * heavy + mean * weight) / (heavy + weight), heavy + weight, many + count
        pools.append((mean, weight, count))
    free = [min(max(mean, 0.0), widest - total) for mean, _, count in pools for _ in range(count)]
    return [least + extra for least, extra in zip(packed, free, strict=True)]
