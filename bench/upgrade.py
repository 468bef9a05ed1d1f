"""An upgrade of a big state: ``python -m bench.upgrade [--versions N] [--partitions N]``.

A versioned table takes versions from files; an upgrade spreads them over twice as many partitions, under another name;
then the new query begins. Seconds, rows and MB a second, and the seconds of the first batch, which takes the seeds in.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measuring import session
from bench.workload import stamps, write_file

__all__ = ["main"]

FILES = 4
KEYS = 100_000
TOPOLOGY = """
table {name} (k string, n bigint, at timestamp) from files (path = '${{folder}}', format = 'parquet') key k timestamp at
materialize versioned (retention = 365 days);
sink {name} to noop ();
"""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.upgrade")
    parser.add_argument("--versions", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    from vsc.compiler import compile_topology
    from vsc.runtime.spark import start
    from vsc.runtime.spark.upgrade import Upgrade, upgrade

    with tempfile.TemporaryDirectory() as place:
        folder, spark = Path(place), session("upgrade")
        _write(folder / "in", arguments.versions)
        variables = {"folder": str(folder / "in")}
        old, new = (compile_topology(TOPOLOGY.format(name=name)) for name in ("old", "new"))
        given = {"checkpoint": folder / "old", "variables": variables, "partitions": arguments.partitions}
        start(old, spark, **given).awaitTermination()
        job = Upgrade(new, str(folder / "old"), str(folder / "new"), variables, 2 * arguments.partitions)
        began = time.perf_counter()
        moved = upgrade(job, spark, print)
        print(f"carried over {moved}; in all {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        start(new, spark, checkpoint=folder / "new", variables=variables).awaitTermination()
        print(f"first batch: {time.perf_counter() - began:.1f} s")
        spark.stop()


def _write(folder: Path, versions: int) -> None:
    """Versions of keys at random, a second apart."""
    random = np.random.default_rng(7)
    for number in range(FILES):
        rows = versions // FILES
        keys = random.integers(0, KEYS, rows)
        times = (np.arange(rows) + number * rows) * 1000
        columns = {"k": [f"key-{key:08d}" for key in keys], "n": pa.array(random.integers(0, 1 << 40, rows))}
        write_file(folder, number, {**columns, "at": stamps(times)})


if __name__ == "__main__":
    main()
