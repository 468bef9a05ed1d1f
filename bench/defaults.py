"""The defaults of ``vsc run`` against other values, one at a time: a backlog of JSON, joined with a versioned table.

``python -m bench.defaults [--rounds N]``. Each run is a separate process, measured from start to end. All take turns;
the table has medians, relative to the defaults. CPU seconds and peak memory (PSS) are those of all processes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.comparisons.stream_table_join import rows
from bench.comparisons.stream_table_join.vsc_versioned import topology
from bench.processes import Ended, run
from bench.workload import Workload
from vsc.runtime.spark.connectors.file_rows import MAX_BYTES
from vsc.runtime.spark.exchange.wire import ROWS_A_BATCH

WORKLOAD = Workload(table=200_000, batch=100_000, warm_up=0, measured=16, files=1)
_TOPOLOGY = topology("format = 'json', 'maxBytesPerTrigger' = '${bytes}'")
_RUN = (
    "import sys; from vsc.runtime.spark.session import session; session.ROWS_A_BATCH = int(sys.argv.pop(1)); "
    "from vsc.cli import main; sys.exit(main(sys.argv[1:]))"
)
"""``vsc run`` with another number of rows in the Arrow batches that Spark hands to Python; no option sets that."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run; anything not set has its default."""

    partitions: int = 4
    bytes: int = MAX_BYTES
    arrow: int = ROWS_A_BATCH
    conf: Mapping[str, str] = field(default_factory=dict)


SETTINGS = {
    "the defaults": Setting(),
    "1 partition": Setting(partitions=1),
    "2 partitions": Setting(partitions=2),
    "8 partitions": Setting(partitions=8),
    "32 MiB an epoch": Setting(bytes=32 << 20),
    "512 MiB an epoch": Setting(bytes=512 << 20),
    "Arrow batches of 2,048 rows": Setting(arrow=2048),
    "Arrow batches of 10,000 rows": Setting(arrow=10_000),
    "512 MiB for the JVM": Setting(conf={"spark.driver.memory": "512m"}),
    "4 GiB for the JVM": Setting(conf={"spark.driver.memory": "4g"}),
}


def lines(measured: Mapping[str, list[Ended]]) -> list[str]:
    """The table."""
    found = {
        name: [median(getattr(cost, part) for cost in costs) for part in ("seconds", "cpu", "memory")]
        for name, costs in measured.items()
    }
    base = next(iter(found.values()))
    cells = {name: [f"{n:,.0f} ({n / b:.2f})" for n, b in zip(own, base, strict=True)] for name, own in found.items()}
    return ["| run | s | CPU s | peak, MiB |", "|---|---:|---:|---:|"] + [
        f"| {name} | {' | '.join(own)} |" for name, own in cells.items()
    ]


def _command(setting: Setting, folder: Path, own: Path) -> list[str]:
    words = [sys.executable, "-c", _RUN, str(setting.arrow), "run", str(folder / "topology.vdsl")]
    words += ["--checkpoint", str(own / "ck"), "--master", "local[2]", "--partitions", str(setting.partitions)]
    variables = {"folder": folder, "stream": folder / "json", "bytes": setting.bytes}
    words += [
        "--progress",
        "lines",
        *(word for name, value in variables.items() for word in ("--var", f"{name}={value}")),
    ]
    return words + [word for key, value in setting.conf.items() for word in ("--conf", f"{key}={value}")]


def _write(folder: Path) -> None:
    import polars

    rows.write(folder, WORKLOAD)
    (folder / "topology.vdsl").write_text(_TOPOLOGY)
    (folder / "json" / "payments").mkdir(parents=True)
    for path in sorted((folder / "payments").iterdir()):
        written = polars.col("paid_at").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        polars.read_parquet(path).with_columns(written).write_ndjson(folder / "json" / "payments" / f"{path.stem}.json")


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.defaults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    found: dict[str, list[Ended]] = {what: [] for what in SETTINGS}
    order = deque(SETTINGS)
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        folder = Path(name)
        _write(folder)
        for number in range(arguments.rounds):
            order.rotate(3)  # so that none always comes first in a round, or always after the same one
            for what in order:
                with tempfile.TemporaryDirectory(prefix="vsc-bench-") as own:
                    command, log = _command(SETTINGS[what], folder, Path(own)), Path(own) / "log"
                    found[what].append(run(command, log, memory=True))
                ended = found[what][-1]
                print(
                    f"{number} {what}: {ended.seconds:.1f} s, {ended.cpu:.1f} CPU s, {ended.memory:.0f} MiB", flush=True
                )
    print("\n" + "\n".join(lines(found)))


if __name__ == "__main__":
    main()
