"""``python -m bench [--quick] [--output FILE]``: measures everything, prints the page and writes it.

The exit status is 1 when a floor is missed. ``--quick`` is to see that the benchmarks run: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bench import join, report, stage, store
from bench.workload import KEYS, Workload

FULL = Workload(), Workload(warm_up=1, measured=1)
QUICK = Workload(20_000, 20_000, 1, 2), Workload(20_000, 20_000, 1, 1)


def main() -> int:
    """Runs the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="vsc beside its peers")
    parser.add_argument("--quick", action="store_true", help="few rows: does it run?")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results.md")
    arguments = parser.parse_args()
    workload, few = QUICK if arguments.quick else FULL
    load = os.getloadavg()[0]
    joins = join.run(workload, few)
    alone = stage.measure(workload)
    stored = store.measure(workload.versions, KEYS)
    lines = stored.lines(workload.versions, KEYS)
    page = report.render(workload, few, joins, alone, stored.rates, lines, load)
    print("\n" + page)
    arguments.output.write_text(page)
    return 0 if arguments.quick or all(floor.held for floor in report.floors(joins, stored.rates)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
