"""``python -m tests.random_topologies SEED``: the topology of a seed of `test_cuts` and the fewest rows that fail.

``SEED large``: the same of `test_engines`. Rows are left out, ever fewer at once, as long as the outcome still differs;
restarts stay.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.oracle import Played, difference, oracle, shipped
from tests.random_topologies.records import History, RecordSizes, history
from tests.random_topologies.shapes import ALL_KEYS, Generated
from tests.random_topologies.topology import Sizes, generate
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan

__all__ = ["Case"]


LARGE = RecordSizes(epochs=(1, 2), parts=(1, 2), rows=(200, 500), keys=6, bad=1, hot=0.3)
"""More records than any fixed cost of columns is worth, of many keys, one of which has a third of them.

Joins of two streams make the square of that, one behind another more than any test can wait for: there is one, of
`PAIRED` rows."""
PAIRED = (60, 150)
STEPS = ((0, 0, 1, 1, 2, 5), (0, 0, 0, 0, 0, 0, 0, 1), (1,), (0,) * 60 + (90,))
"""How event time goes on: as in small histories, with many equal times, evenly, and in bursts."""


@dataclass(frozen=True)
class Case:
    """All that a seed of `test_cuts`, or of `test_engines` if it is `large`, decides."""

    topology: Generated
    plan: Plan
    epochs: History
    partitions: int
    restarts: Sequence[bool]
    on_error: str = "drop"
    large: bool = False

    @classmethod
    def of(cls, seed: int, large: bool = False) -> Case:
        """The case of a seed."""
        rng = random.Random(seed)
        paired = 8 if seed % 4 == 3 else 0
        sizes = Sizes(keys=ALL_KEYS, failing=0.2, paired=paired, pairs=1) if large else Sizes(paired=paired)
        topology = generate(rng, sizes)
        plan = compile_topology(topology.text(), path=f"{seed}.vdsl")
        rows = PAIRED if paired else LARGE.rows
        records = replace(LARGE, steps=rng.choice(STEPS), rows=rows) if large else None
        epochs = history(rng, topology, records)
        partitions, restarts = rng.choice((1, 1, 2, 3)), [rng.random() < 0.5 for _ in epochs]
        return cls(topology, plan, epochs, partitions, restarts, "fail" if large and seed % 4 == 3 else "drop", large)

    def difference(self, epochs: History) -> str:
        """What differs between what is shipped and the oracle, nothing if all is equal."""
        return difference(self.shipped(epochs), self.oracle(epochs), self.partitions == 1)

    def oracle(self, epochs: History) -> Played:
        """What has to come out. Large histories are not cut: `test_cuts` shows that cuts do not matter."""
        return oracle(self.plan, epochs, self.topology.sinks, self.partitions, self.on_error, single=not self.large)

    def shipped(self, epochs: History) -> Played:
        """What comes out."""
        return shipped(self.plan, epochs, self.topology.sinks, self.partitions, self.on_error, self.restarts)

    def shrunk(self) -> History:
        """The fewest rows that still differ, found by leaving out some, ever fewer at once."""
        epochs, size = self.epochs, max(map(len, self.epochs))
        while size:
            left = self._smaller(epochs, size)
            epochs, size = (epochs, size // 2) if left is None else (left, min(size, max(map(len, left))))
        return epochs

    def _smaller(self, epochs: History, size: int) -> History | None:
        for number, epoch in enumerate(epochs):
            for start in range(0, len(epoch), size):
                left = [e[:start] + e[start + size :] if i == number else e for i, e in enumerate(epochs)]
                if self.difference(left):
                    return left
        return None


def main() -> None:
    """See the module."""
    case = Case.of(int(sys.argv[1]), sys.argv[2:] == ["large"])
    print(case.topology.text())
    if not case.difference(case.epochs):
        print("equal")
        return
    epochs = case.shrunk()
    print(f"{case.partitions} partitions, restarts {case.restarts}")
    for number, epoch in enumerate(epochs):
        for row in epoch:
            print(number, *row)
    print(case.difference(epochs))


if __name__ == "__main__":
    main()
