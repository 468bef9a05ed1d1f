"""``python -m bench [--quick] [--output FILE] [COMPARISON ...]``: measures everything, prints the page and writes it.

With names of comparisons, it measures and prints only these.

The exit status is 1 if a floor is missed. ``--quick`` only shows that the benchmarks run: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bench import backlog, operators_on_spark, report, stage, state_size, store, tiny_epochs, upgrade
from bench.comparisons import NAMES, comparison
from bench.running import run
from bench.workload import KEYS


def main() -> int:
    """Runs the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="vsc beside its peers")
    parser.add_argument("names", nargs="*", metavar="COMPARISON", help=f"only these, and no page: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few rows: does it run?")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results.md")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no comparison {', '.join(unknown)}")
    load = os.getloadavg()[0]
    compared = [(entry, run(entry, arguments.quick)) for entry in map(comparison, arguments.names or NAMES)]
    floors = report.ratios(compared)
    if arguments.names:
        print("\n" + "\n".join(report.comparison_lines(compared) + report.floor_lines(floors)))
    else:
        late = backlog.measure(*(200_000, 1) if arguments.quick else (backlog.ROWS, backlog.ROUNDS))
        workload = comparison("stream_table_join").workload
        alone = stage.measure(workload.quick() if arguments.quick else workload)
        stored = store.measure(workload.table, KEYS)
        sizes = state_size.measure(arguments.quick)
        every, busy = operators_on_spark.in_process(arguments.quick)
        tiny = tiny_epochs.measure_all(5) if arguments.quick else tiny_epochs.measure_all()
        floors += backlog.floors(late) + operators_on_spark.floors(every) + tiny_epochs.floors(tiny)
        floors += report.store_floors(stored.rates) + state_size.floors(sizes)
        own = [*stored.lines(workload.table, KEYS), "", *state_size.lines(sizes)]
        own += ["", *operators_on_spark.lines(every, busy), "", *tiny_epochs.lines(tiny)]
        own += ["", *upgrade.lines(upgrade.measure(arguments.quick))]
        page = report.render(backlog.lines(late), compared, alone, own, floors, load)
        print("\n" + page)
        arguments.output.write_text(page)
    return 0 if arguments.quick or all(floor.held for floor in floors) else 1


if __name__ == "__main__":
    raise SystemExit(main())
