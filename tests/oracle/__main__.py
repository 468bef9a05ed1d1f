"""``python -m tests.oracle [FIRST:LAST]``: what is really compared, over random topologies and the recordings.

For each operation of the plan: in how many stages that have it whole columns were at work, and in how many all ran
record by record, so that the oracle was compared with itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.conformance.recordings import load, play_at_once
from tests.generated.case import Case
from tests.oracle.engines import Ran
from vsc.plan.nodes import Plan

RECORDED = Path(__file__).parent.parent / "conformance" / "recorded"


class _Compared:
    """Counts stages by the operations in them."""

    def __init__(self) -> None:
        self.columns: Counter[str] = Counter()
        self.records: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()

    def add(self, plan: Plan, ran: Ran) -> None:
        """Takes in a run of what is shipped."""
        self.taken.update(columns=ran.columns.total(), records=ran.records.total(), returned=ran.returned.total())
        for stage in plan.stages[1:]:
            into = self.columns if ran.columns[stage.id] else self.records
            if ran.columns[stage.id] or ran.records[stage.id]:
                into.update({_name(plan, name) for name in stage.nodes} | {"(stages)"})

    def text(self) -> str:
        """The table."""
        lines = [f"{'':24}on columns  by record"]
        for name in sorted(self.columns | self.records):
            lines.append(f"{name:24}{self.columns[name]:10}{self.records[name]:11}")
        lines.append(", ".join(f"{what}: {count} records" for what, count in self.taken.items()))
        return "\n".join(lines)


def _name(plan: Plan, name: str) -> str:
    operation = plan.node(name).operation
    window = getattr(operation, "window", None)
    grace = " with grace" if getattr(operation, "grace", None) is not None else ""
    return f"{operation.op}{grace}{'' if window is None else ' ' + window.kind}"


def main() -> None:
    """See the module."""
    first, _, last = (sys.argv[1] if sys.argv[1:] else "40").rpartition(":")
    for large in (False, True):
        compared = _Compared()
        for seed in range(int(first or 0), int(last)):
            case = Case.of(seed, large)
            compared.add(case.plan, case.shipped(case.epochs).ran)
        print(f"\n{'large' if large else 'small'} topologies {first or 0}:{last}\n{compared.text()}")
    compared = _Compared()
    for path in sorted(RECORDED.glob("*.json")):
        recording = load(path)
        for case_ in recording.cases:
            compared.add(*play_at_once(recording, case_))
    print(f"\nrecordings\n{compared.text()}")


if __name__ == "__main__":
    main()
