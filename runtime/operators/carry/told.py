"""What one old partition of a stage says of itself, for those rows of which there is one a new partition."""

from __future__ import annotations

from dataclasses import dataclass, field

from vsc.runtime.metrics import Metrics

__all__ = ["Told"]

Home = tuple[int, bytes]
"""A store of the new plan: its stage and its root."""
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """Of one old stage and partition, by the new store: the meta row, and by new partition what of its rows is counted.

    `waiting`: by new stage and partition the next sequence and how many records wait. `homeless`: the records that wait
    for a node that is nowhere any more, by its name. `filled`: how many records of tables' rows are given to a new
    stage and partition; `lost`: what was dropped of them.
    """

    stage: int
    partition: int
    metas: dict[Home, bytes] = field(default_factory=dict)
    counts: dict[tuple[Home, int], Counts] = field(default_factory=dict)
    waiting: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    homeless: dict[str, int] = field(default_factory=dict)
    filled: dict[tuple[int, int], int] = field(default_factory=dict)
    lost: Metrics = field(default_factory=Metrics)
