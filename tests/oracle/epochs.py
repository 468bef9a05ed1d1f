"""The rows of an epoch in D12's order. Plain Python, sharing nothing with what it judges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from vsc.plan.nodes import Plan, Source

__all__ = ["EpochRow", "order_epoch"]


class EpochRow(NamedTuple):
    """A row that an epoch reads: from which partition of which source, at which offset, and its event time in ms."""

    source: str
    part: str
    offset: int
    row: Any
    timestamp: int | None


def order_epoch(plan: Plan, rows: Iterable[EpochRow]) -> list[EpochRow]:
    """The rows of one epoch in D12's order: as the test driver has to be fed, to do what a query does with them.

    A row without usable event time moves no clock and stays where it stands.
    """
    ranks = {n.name: n.operation.rank for n in plan.nodes if isinstance(n.operation, Source)}
    partitions: dict[tuple[str, str], list[EpochRow]] = {}
    for row in rows:
        partitions.setdefault((row.source, row.part), []).append(row)
    placed = []
    for (source, part), found in partitions.items():
        highest = -1
        for row in sorted(found, key=lambda r: r.offset):
            if row.timestamp is not None and row.timestamp >= 0:
                highest = max(highest, row.timestamp)
            placed.append(((highest, ranks[source], part, row.offset), row))
    return [row for _, row in sorted(placed, key=lambda p: p[0])]
