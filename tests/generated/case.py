"""``python -m tests.generated SEED``: the topology of a seed of `test_cuts` and, if it fails, the fewest rows that do.

Rows are left out one by one as long as the outcome still differs; restarts stay.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.generated.records import History, history
from tests.generated.running import difference, run_single, run_whole
from tests.generated.shapes import Generated
from tests.generated.topology import generate
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators import task

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """All that a seed of `test_cuts` decides."""

    topology: Generated
    plan: Plan
    epochs: History
    partitions: int
    restarts: Sequence[bool]

    @classmethod
    def of(cls, seed: int) -> Case:
        """The case of a seed."""
        rng = random.Random(seed)
        topology = generate(rng)
        plan = compile_topology(topology.text(), path=f"{seed}.vdsl")
        epochs = history(rng, topology)
        return cls(topology, plan, epochs, rng.choice((1, 1, 2, 3)), [rng.random() < 0.5 for _ in epochs])

    def difference(self, epochs: History) -> str:
        """What differs between whole epochs and single rows, nothing if all is equal."""
        expected, metrics = run_single(self.plan, epochs, self.topology.sinks, self.partitions)
        found, counted = run_whole(self.plan, epochs, self.topology.sinks, self.partitions, self.restarts)
        differs = difference(found, expected, self.partitions == 1)
        if not differs and counted.as_dict() != metrics.as_dict():
            return f"metrics: found {counted.as_dict()}, expected {metrics.as_dict()}"
        return differs

    def shrunk(self) -> History:
        """The fewest rows that still differ, found by leaving out one after the other."""
        epochs = self.epochs
        smaller = True
        while smaller:
            smaller = False
            for number, epoch in enumerate(epochs):
                for row in epoch:
                    left = [[r for r in e if r is not row] if i == number else e for i, e in enumerate(epochs)]
                    if self.difference(left):
                        epochs, smaller = left, True
                        break
        return epochs


def main() -> None:
    """See the module."""
    task._ENOUGH = 1
    case = Case.of(int(sys.argv[1]))
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
