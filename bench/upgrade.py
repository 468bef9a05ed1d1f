"""An upgrade of a large state: ``python -m bench.upgrade [--versions N] [--partitions N]``.

A versioned table reads versions from files. An upgrade spreads them over twice as many partitions, under another name.
Then the new query starts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measuring import session
from bench.workload import stamps, write_file

__all__ = ["Upgraded", "lines", "measure"]

FILES = 4
KEYS = 100_000
VERSIONS = 2_000_000
PARTITIONS = 2
TOPOLOGY = """
table {name} (k string, n bigint, at timestamp) from files (path = '${{folder}}', format = 'parquet') key k timestamp at
materialize versioned (retention = 365 days);
sink {name} to noop ();
"""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What was carried over from `partitions` partitions to twice as many: versions, rows of the store, bytes of seeds.

    `moving`, `whole` and `first` are the seconds of the job that moved them, of the whole upgrade, and of the first
    batch, which takes them in.
    """

    versions: int
    partitions: int
    rows: int
    bytes: int
    moving: float
    whole: float
    first: float

    @property
    def mb_a_second(self) -> float:
        """MB of seeds a second, in the job that writes them."""
        return self.bytes / 1e6 / self.moving


def measure(quick: bool, partitions: int = PARTITIONS, versions: int = VERSIONS) -> Upgraded:
    """Measures in a separate process. `quick`: only few versions."""
    many = ["--partitions", str(partitions), "--versions", str(20_000 if quick else versions)]
    command = [sys.executable, "-m", "bench.upgrade", "--child", *many]
    print("an upgrade ...", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Upgraded(**json.loads(done.stdout.splitlines()[-1]))


def lines(found: Upgraded) -> list[str]:
    """The section."""
    before, after = found.partitions, 2 * found.partitions
    return [
        "## Upgrade",
        "",
        f"`vsc upgrade` of a versioned table under another name, from {before} partitions to {after}. The seconds are "
        "those of the job that moves the rows, of the whole upgrade in a session that is there, and of the first batch "
        "of the new query, which takes them in.",
        "",
        "| versions | rows of the store | MB written | moving, s | MB/s | versions/s | whole, s | first batch, s |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
        f"| {found.versions:,} | {found.rows:,} | {found.bytes / 1e6:,.1f} | {found.moving:,.1f} | "
        f"{found.mb_a_second:,.1f} | {found.versions / found.moving:,.0f} | {found.whole:,.1f} | {found.first:,.1f} |",
        "",
    ]


def _measured(versions: int, partitions: int) -> Upgraded:
    from vsc.compiler import compile_topology
    from vsc.runtime.spark import start
    from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as place:
        folder, spark = Path(place), session("upgrade")
        _write(folder / "in", versions)
        variables = {"folder": str(folder / "in")}
        old, new = (compile_topology(TOPOLOGY.format(name=name)) for name in ("old", "new"))
        start(old, spark, checkpoint=folder / "old", variables=variables, partitions=partitions).awaitTermination()
        job = Upgrade(new, str(folder / "old"), str(folder / "new"), variables, 2 * partitions)
        began = time.perf_counter()
        moved = upgrade(prepare(job), spark, lambda _: None)
        whole = time.perf_counter() - began
        assert moved is not None
        began = time.perf_counter()
        start(new, spark, checkpoint=folder / "new", variables=variables).awaitTermination()
        first = time.perf_counter() - began
        spark.stop()
    return Upgraded(versions, partitions, moved.rows, moved.bytes, moved.seconds, whole, first)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.upgrade")
    parser.add_argument("--versions", type=int, default=VERSIONS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(asdict(_measured(arguments.versions, arguments.partitions))))
    else:
        print("\n".join(lines(measure(False, arguments.partitions, arguments.versions))))


def _write(folder: Path, versions: int) -> None:
    """Writes versions of random keys, a second apart."""
    random = np.random.default_rng(7)
    for number in range(FILES):
        rows = versions // FILES
        keys = random.integers(0, KEYS, rows)
        times = (np.arange(rows) + number * rows) * 1000
        columns = {"k": [f"key-{key:08d}" for key in keys], "n": pa.array(random.integers(0, 1 << 40, rows))}
        write_file(folder, number, {**columns, "at": stamps(times)})


if __name__ == "__main__":
    main()
