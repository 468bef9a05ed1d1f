"""Assigns the boxes of a drawing to rows, from top to bottom, and orders each row.

A box stands below everything that it reads. A box without inputs stands as close as possible above its readers. A row
wider than `WIDEST` is split. An arrow that passes a row has a *lane* in it; arrows of the same look from the same box
share a lane. Then the rows are ordered so that few arrows cross.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil

from vsc.compiler.emit.drawing import Arrow, Box, Drawing, columns_of
from vsc.plan.record import record

__all__ = ["GAP", "LANE", "LINE", "MARGIN", "PADDING", "WIDEST", "Rows", "Slot", "height", "in_rows", "room", "width"]

WIDEST = 1400
"""The maximum width of a picture in pixels, unless hundreds of arrows pass one row."""
GAP = 22
"""Pixels between the slots of a row."""
LINE, PADDING, _CHARACTER, LANE, MARGIN = 15, 10, 7.3, 2, 24
_SWEEPS = 6

Slot = str
"""The id of a box, or of a lane (made of the box where its arrows start, their look, and the row)."""


@record
class Rows:
    """`rows` has the slots of each row from left to right, `bands` the band of each row.

    `ways` has, for each arrow, the slots that it passes, one per row. `widths` has the width of every slot.
    """

    rows: tuple[tuple[Slot, ...], ...]
    bands: tuple[int, ...]
    ways: tuple[tuple[Slot, ...], ...]
    widths: Mapping[Slot, float]


def width(box: Box) -> float:
    """The width in pixels that the longest line needs."""
    return max(map(columns_of, box.lines)) * _CHARACTER + 2 * PADDING


def height(box: Box) -> float:
    """The height in pixels that the lines need."""
    return len(box.lines) * LINE + PADDING


def in_rows(drawing: Drawing) -> Rows:
    """Arranges a drawing in rows."""
    band = {box.id: box.band for box in drawing.boxes}
    widths = {box.id: width(box) for box in drawing.boxes}
    ranks = _ranks(drawing, band)
    places = sorted({(band[id_], rank) for id_, rank in ranks.items()})
    rows = [[box.id for box in drawing.boxes if (box.band, ranks[box.id]) == place] for place in places]
    while True:
        laned, ways = _with_lanes(rows, drawing.arrows)
        widths.update((slot, LANE) for row in laned for slot in row if slot not in widths)
        split = [
            part
            for row, all_of_it in zip(rows, laned, strict=True)
            for part in (_split(row, widths) if len(row) > 1 and _total(all_of_it, widths) > room() else [row])
        ]
        if split == rows:
            return Rows(_ordered(laned, ways), tuple(band[row[0]] for row in rows), ways, widths)
        rows = split


def room() -> float:
    """The width that a row can use, in pixels."""
    return WIDEST - 2 * MARGIN


def _total(row: Sequence[Slot], widths: Mapping[Slot, float]) -> float:
    return sum(widths[slot] + GAP for slot in row) - GAP


def _split(row: list[str], widths: Mapping[Slot, float]) -> list[list[str]]:
    parts = max(2, ceil(_total(row, widths) / room()))
    size = ceil(len(row) / parts)
    return [row[start : start + size] for start in range(0, len(row), size)]


def _ranks(drawing: Drawing, band: Mapping[str, int]) -> dict[str, int]:
    """How far down each box stands in its band."""
    inside = [arrow for arrow in drawing.arrows if band[arrow.start] == band[arrow.end]]
    read: dict[str, list[str]] = {box.id: [] for box in drawing.boxes}
    readers: dict[str, list[str]] = {box.id: [] for box in drawing.boxes}
    for arrow in inside:
        read[arrow.end].append(arrow.start)
        readers[arrow.start].append(arrow.end)
    ranks: dict[str, int] = {}
    for box in drawing.boxes:
        ranks[box.id] = max((ranks[start] + 1 for start in read[box.id]), default=0)
    for box in drawing.boxes:
        if not read[box.id] and readers[box.id]:
            ranks[box.id] = min(ranks[end] for end in readers[box.id]) - 1
    return ranks


def _with_lanes(
    rows: Sequence[Sequence[str]], arrows: Sequence[Arrow]
) -> tuple[list[list[Slot]], tuple[tuple[Slot, ...], ...]]:
    row_of = {id_: number for number, row in enumerate(rows) for id_ in row}
    laned = [dict.fromkeys(row) for row in rows]
    ways = []
    for arrow in arrows:
        lanes = [(f"{arrow.start} {arrow.look} {n}", n) for n in range(row_of[arrow.start] + 1, row_of[arrow.end])]
        for lane, number in lanes:
            laned[number][lane] = None
        ways.append((arrow.start, *(lane for lane, _ in lanes), arrow.end))
    return [list(row) for row in laned], tuple(ways)


# --------------------------------------------------------------------------------------------------------------- order


def _ordered(rows: list[list[Slot]], ways: Sequence[Sequence[Slot]]) -> tuple[tuple[Slot, ...], ...]:
    """Reorders the rows for few crossings: each slot moves close to the mean place of the slots it is linked with."""
    links = set(pair for way in ways for pair in pairwise(way))
    above: dict[Slot, list[Slot]] = {}
    below: dict[Slot, list[Slot]] = {}
    for start, end in sorted(links):
        above.setdefault(end, []).append(start)
        below.setdefault(start, []).append(end)
    best = rows = [list(row) for row in rows]
    fewest = _crossings(best, below)
    for sweep in range(_SWEEPS):
        rows = [list(row) for row in rows]
        down = sweep % 2 == 0
        numbers = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for number in numbers:
            place = {slot: n for n, slot in enumerate(rows[number - 1 if down else number + 1])}
            rows[number] = _nearest(rows[number], above if down else below, place)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return tuple(map(tuple, best))


def _nearest(row: list[Slot], links: Mapping[Slot, list[Slot]], place: Mapping[Slot, int]) -> list[Slot]:
    """The row, sorted by the mean place of the slots that each is linked with; slots without links stay in place."""
    means = {slot: sum(place[other] for other in links[slot]) / len(links[slot]) for slot in row if slot in links}
    moving = iter(sorted(means, key=lambda slot: means[slot]))
    return [next(moving) if slot in means else slot for slot in row]


def _crossings(rows: Sequence[Sequence[Slot]], below: Mapping[Slot, list[Slot]]) -> int:
    count = 0
    for upper, lower in pairwise(rows):
        place = {slot: number for number, slot in enumerate(lower)}
        seen: list[int] = []
        for slot in upper:
            ends = sorted(place[end] for end in below.get(slot, ()))
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count
