"""From the start of ``vsc run`` to its result: the payments example, compared with Spark's own count on the same files.

``python -m bench.start [--rounds N] [--conf K=V,K=V ...]``. Each run has its own process and JVM; each ``--conf`` adds
a way to run vsc, with these settings. All take turns; the table has medians. CPU seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.processes import run

__all__ = ["Start", "lines"]

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "payments"
SPARK = "Spark's `groupBy.count`"
_COLUMNS = "id string, account string, currency string, amount decimal(12, 2), paid_at timestamp"


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from start to end of the process, seconds of its first epoch, and CPU seconds."""

    whole: float
    first: float
    cpu: float


def lines(measured: dict[str, list[Start]]) -> list[str]:
    """The table, by what was run."""
    spark = median(start.first for start in measured[SPARK])
    rows = []
    for what, starts in measured.items():
        whole, first, cpu = (median(getattr(start, name) for start in starts) for name in ("whole", "first", "cpu"))
        rows.append(f"| {what} | {whole:.1f} | {cpu:.1f} | {first:.1f} | {first / spark:.2f} |")
    return [
        "| what | start to end, s | CPU s | first epoch, s | beside Spark's |",
        "|---|---:|---:|---:|---:|",
        *rows,
    ]


def _vsc(folder: Path, conf: Sequence[str]) -> list[str]:
    run = [sys.executable, "-m", "vsc", "run", str(EXAMPLE / "topology.vdsl"), "--checkpoint", str(folder / "ck")]
    run += ["--master", "local[2]", "--progress", "json"]
    run += ["--var", f"data={EXAMPLE / 'data'}", "--var", f"out={folder / 'out'}"]
    return run + [word for setting in conf for word in ("--conf", setting)]


def _measured(command: Sequence[str], folder: Path) -> Start:
    """Runs a command. The last line of its output with ``batch`` 0 has the duration of the first epoch."""
    ran = run(command, folder / "log")
    events = [json.loads(line) for line in ran.said.splitlines() if line.startswith('{"event"')]
    first = [event["duration_ms"] / 1000 for event in events if event.get("batch") == 0]
    return Start(ran.seconds, first[-1], ran.cpu)


def _count(folder: Path) -> None:
    """The peer: a count by key, in a session set up as ``vsc run`` does it, as far as Spark can do that by itself."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.streaming.stateStore.providerClass", store)
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    frame = spark.readStream.schema(_COLUMNS).json(str(EXAMPLE / "data" / "payments")).groupBy("currency").count()
    writer = frame.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(folder / "ck"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = query.recentProgress[0]["durationMs"]["triggerExecution"]
    spark.stop()
    print("\n" + json.dumps({"event": "batch", "batch": 0, "duration_ms": took}))


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--conf", nargs="*", default=[], metavar="K=V,K=V")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        _count(arguments.count)
        return
    found: dict[str, list[Start]] = defaultdict(list)
    for number in range(arguments.rounds):
        for what in (SPARK, "vsc run", *arguments.conf):
            with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
                folder = Path(name)
                conf = what.split(",") if what in arguments.conf else []
                own = [sys.executable, "-m", "bench.start", "--count", name] if what == SPARK else _vsc(folder, conf)
                found[what].append(_measured(own, folder))
            print(f"{number} {what}: {found[what][-1]}", flush=True)
    print("\n" + "\n".join(lines(found)))


if __name__ == "__main__":
    main()
