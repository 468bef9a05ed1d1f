"""What a comparison is: one workload, vsc, and the peers that do the same on the same files.

A comparison is a package in `bench.comparisons`. Its ``__init__`` holds `COMPARISON`; its module ``rows`` has
``write(folder, workload)``, which makes the files; each peer is a module with ``measure(folder, workload)``, which
gives a `bench.measuring.Measured`. Its name in `bench.comparisons.NAMES` does the rest: it is run, its table is on the
page, and its floors are held.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.workload import Workload

__all__ = ["Comparison", "Floor", "Peer"]


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to do it: its module in the comparison's package, and its row of the table.

    `least`: vsc must be at least so many times as fast. `few`: what a slow one is measured over instead of all.
    """

    module: str
    title: str
    least: float | None = None
    few: Workload | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`name` is the package, `about` says in a sentence what the rows are. The first of `peers` is vsc.

    In each of the `rounds` every peer that takes the whole workload runs once; its figures are those of its median run.
    """

    name: str
    title: str
    about: str
    workload: Workload
    peers: tuple[Peer, ...]
    rounds: int = 1

    def workload_of(self, peer: Peer, quick: bool) -> Workload:
        """What `peer` is measured over; with `quick` very little."""
        found = peer.few or self.workload
        return found.quick() if quick else found


@dataclass(frozen=True, slots=True)
class Floor:
    """A ratio that must not be fallen below."""

    name: str
    least: float
    ratio: float

    @property
    def held(self) -> bool:
        """Whether it was not."""
        return self.ratio >= self.least
