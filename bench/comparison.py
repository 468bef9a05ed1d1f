"""A comparison: one workload, vsc, and the peers that do the same on the same files.

A comparison is a package in `bench.comparisons`. Its ``__init__`` has `COMPARISON`. Its module ``rows`` has
``write(folder, workload)``, which writes the files. Each peer is a module with ``measure(folder, workload)``, which
returns a `bench.measuring.Measured`. Its name in `bench.comparisons.NAMES` does the rest: it is run, its table is on
the page, and its floors are checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.workload import Workload

__all__ = ["Comparison", "Floor", "Peer"]


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to do it: its module in the comparison's package, and its title in the table.

    `least`: vsc must be at least this many times as fast. `few`: for a slow peer, the workload instead of the whole.
    """

    module: str
    title: str
    least: float | None = None
    few: Workload | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`name` is the package; `about` describes the rows in a sentence. The first of `peers` is vsc.

    Every peer that takes the whole workload runs once in each of `rounds` rounds. Its figures are those of its median
    run.
    """

    name: str
    title: str
    about: str
    workload: Workload
    peers: tuple[Peer, ...]
    rounds: int = 1

    def workload_of(self, peer: Peer, quick: bool) -> Workload:
        """The workload of `peer`; with `quick`, very little."""
        found = peer.few or self.workload
        return found.quick() if quick else found


@dataclass(frozen=True, slots=True)
class Floor:
    """The least value that a ratio must have."""

    name: str
    least: float
    ratio: float

    @property
    def held(self) -> bool:
        """Whether the ratio reaches it."""
        return self.ratio >= self.least
