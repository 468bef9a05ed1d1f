"""What one old partition of a stage reports, for the rows that exist once per new partition."""

from __future__ import annotations

from dataclasses import dataclass, field

from vsc.runtime.metrics import Metrics

__all__ = ["Told"]

Home = tuple[int, bytes]
"""A store of the new plan: its stage and its root."""
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """Of one old stage and partition, by new store: the meta row, and the counts of its rows by new partition.

    `waiting`: by new stage and partition, the next sequence number and how many records wait. `homeless`: by node name,
    the records that wait for a node that no longer exists. `filled`: how many records made from tables' rows go to a
    new stage and partition; `lost`: which of them were dropped.
    """

    stage: int
    partition: int
    metas: dict[Home, bytes] = field(default_factory=dict)
    counts: dict[tuple[Home, int], Counts] = field(default_factory=dict)
    waiting: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    homeless: dict[str, int] = field(default_factory=dict)
    filled: dict[tuple[int, int], int] = field(default_factory=dict)
    lost: Metrics = field(default_factory=Metrics)
