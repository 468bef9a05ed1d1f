"""Every operator on Spark, in one session with the plain versioned join: rows a second, growth, and floors.

``python -m bench.operators_on_spark [--rows N] [--json FILE] [NAME ...]``. The rows are those of `bench.operators`, in
parquet files; every operator has its own checkpoint and a noop sink. A rate is that of the median epoch without the
first two, by Spark's `triggerExecution`. Whether an operator slows down is judged by the CPU time of all processes,
which other work disturbs less. It compares the median of epochs 3 to 11 with that of the last nine, since a single
epoch of this size varies by a fifth either way. (A median leaves out the epochs in which the state protocol or Spark
writes a snapshot, about every eighth.)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.comparison import Floor
from bench.measuring import PARTITIONS, stream, vsc_session
from bench.operators import FLOORS, OPERATORS, PLAIN, columns_of, topology
from bench.processes import cpu_seconds
from bench.workload import FILES_A_BATCH, write_file
from vsc.compiler import compile_topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Timed", "floors", "in_process", "lines", "measure_all"]

BRANCH = "table b = aggregate s group by n select count(*) as c;"
BESIDE = {
    "unrelated branch alone": BRANCH,
    "plain versioned join with an unrelated branch": f"{OPERATORS[PLAIN]} {BRANCH}",
}
"""Statements that show that one does not slow another down: apart, and together."""
NOT_SLOWER = 0.9
EPOCHS = 27
"""Enough to compare nine epochs with nine others sixteen epochs later. Three epochs span a minute of event time."""
GROWING = ("collect_list", "collect_set")
"""Their results grow with every epoch."""
_FILES = {"s": 1.0, "r": 1.0, "t": 1.0, "u": 0.1, "gt": 0.1}
"""The sources, and each one's share of an epoch's rows."""
_SCHEMA = "k string, n bigint, x double, g string, at bigint"


@dataclass(frozen=True, slots=True)
class Timed:
    """The milliseconds of each epoch, and its CPU milliseconds. `rows`: those of all sources in one epoch."""

    rows: int
    epochs: tuple[int, ...]
    cpu: tuple[int, ...]

    @property
    def of_cpu(self) -> float:
        """Rows a second of CPU time in the median epoch."""
        return self.rows / median(self.cpu[2:]) * 1000

    @property
    def rate(self) -> float:
        """Rows a second in the median epoch."""
        return self.rows / median(self.epochs[2:]) * 1000

    @property
    def last(self) -> float:
        """The CPU time of epochs 3 to 11 divided by that of the last nine."""
        return median(self.cpu[2:11]) / median(self.cpu[-9:])


def measure_all(rows: int, names: Sequence[str], tell: Callable[[str], None]) -> dict[str, Timed]:
    """Measures the named operators and the plain join, which also runs first, to warm Spark up."""
    found: dict[str, Timed] = {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        folder = Path(name)
        for source, share in _FILES.items():
            _write(folder, source, int(rows * share))
        spark = vsc_session("operators")
        for number, operator in enumerate(["warming up", PLAIN, *names, *BESIDE, *_SPARK]):
            timed = found[operator] = _timed(spark, operator, folder, folder / f"checkpoint-{number}", rows)
            tell(f"{operator}: {timed.rate:,.0f} rows/s, epochs {timed.epochs} ms, CPU {timed.cpu} ms")
        spark.stop()
    found.pop("warming up")
    return found


def in_process(quick: bool) -> tuple[dict[str, Timed], float]:
    """Measures all operators in a separate process; also returns the load average before."""
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        result = Path(name) / "operators.json"
        command = [sys.executable, "-m", "bench.operators_on_spark", "--json", str(result)]
        subprocess.run([*command, "--rows", "2000"] if quick else command, check=True)
        written = json.loads(result.read_text())
    found = {name: Timed(t["rows"], tuple(t["epochs"]), tuple(t["cpu"])) for name, t in written["found"].items()}
    return found, written["load"]


def floors(found: Mapping[str, Timed]) -> list[Floor]:
    """The floors of every operator: its rate relative to the plain join, its last epochs relative to its first."""
    held, plain = [], found[PLAIN].rate
    for name in [n for n in OPERATORS if n in found and n != PLAIN]:
        least = FLOORS.get(name, 0.4)
        held.append(Floor(f"{name} beside the plain versioned join", least, found[name].rate / plain))
        if name not in GROWING:
            held.append(Floor(f"{name}: CPU of epochs 3 to 11, beside 19 to 27", NOT_SLOWER, found[name].last))
    branch, both = BESIDE
    apart = sum(median(found[name].epochs[2:]) for name in (PLAIN, branch))
    together = median(found[both].epochs[2:])
    held.append(Floor("join and unrelated branch together, beside apart", NOT_SLOWER, apart / together))
    return held


def lines(found: Mapping[str, Timed], load: float) -> list[str]:
    """The table."""
    plain = found[PLAIN]
    rows = [
        f"| {name} | {timed.rate:,.0f} | {timed.rate / plain.rate:.2f} | {_floor(name)} | {timed.last:.2f} | "
        f"{timed.of_cpu:,.0f} | {timed.of_cpu / plain.of_cpu:.2f} |"
        for name, timed in found.items()
    ]
    after = os.getloadavg()[0]
    return [
        "## Every operator",
        "",
        f"{EPOCHS} epochs of each, one after the other in one Spark session. The plain join reads {plain.rows:,} rows "
        "an epoch, a tenth of them its table's. CPU time is that of all processes: it says more where the machine is "
        f"busy. Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {load:.1f} "
        f"before and {after:.1f} after.",
        "",
        "| operator | rows/s | of the plain join | floor | CPU of epochs 3 to 11, beside 19 to 27 | rows a CPU-second "
        "| of the plain join |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _floor(name: str) -> str:
    return "" if name == PLAIN or name not in OPERATORS else str(FLOORS.get(name, 0.4))


def _write(folder: Path, source: str, rows: int) -> None:
    count = rows // FILES_A_BATCH
    for number in range(EPOCHS * FILES_A_BATCH):
        epoch, part = divmod(number, FILES_A_BATCH)
        columns = columns_of(
            epoch, count, rows if source not in ("u", "gt") else rows * 10, (sum(map(ord, source)), part)
        )
        names = ("k", "y", "at") if source in ("u", "gt") else ("k", "n", "x", "g", "at")
        write_file(folder / source, number, {name: pa.array(columns[name]) for name in names})


def _timed(spark: SparkSession, operator: str, folder: Path, checkpoint: Path, rows: int) -> Timed:
    if operator in _SPARK:
        frame, mode = _SPARK[operator](spark, folder)
        writer = frame.writeStream.outputMode(mode).format("noop").option("checkpointLocation", str(checkpoint))
        return _times(writer.trigger(availableNow=True).start(), rows)
    from vsc.runtime.spark import start

    name = operator if operator in OPERATORS or operator in BESIDE else PLAIN
    statements = BESIDE.get(name) or OPERATORS[name]
    sinks = "".join(f" sink {of} to noop ();" for of in ("o", "b") if f" {of} = " in statements)
    text, sources = re.subn(
        r"(\w+) (\([^()]*\)) from memory \(\)",
        r"\1 \2 from files (path = '${folder}/\1', format = 'parquet', 'maxFilesPerTrigger' = '${files}')",
        topology(name, statements),
    )
    assert sources
    read = sum(share for source, share in _FILES.items() if f" {source} (" in text)
    variables = {"folder": str(folder), "files": str(FILES_A_BATCH)}
    plan = compile_topology(text + sinks, path="bench.vdsl", variables=variables)
    query = start(plan, spark, checkpoint=str(checkpoint), variables=variables, partitions=PARTITIONS)
    return _times(query, int(rows * read))


def _times(query: StreamingQuery, rows: int) -> Timed:
    began, marks = cpu_seconds(os.getpid()), list[float]()
    while query.isActive:
        if len(_ended(query)) > len(marks):
            marks.append(cpu_seconds(os.getpid()))
        time.sleep(0.02)
    query.awaitTermination()
    epochs = tuple(int(p["durationMs"]["triggerExecution"]) for p in _ended(query))
    marks += [cpu_seconds(os.getpid())] * (len(epochs) - len(marks))
    if len(epochs) != EPOCHS or len(marks) != EPOCHS:
        raise RuntimeError(f"{len(epochs)} epochs instead of {EPOCHS}, {len(marks)} of them seen: {epochs}")
    return Timed(rows, epochs, tuple(round((b - a) * 1000) for a, b in pairwise([began, *marks])))


def _ended(query: StreamingQuery) -> list[Mapping[str, Any]]:
    return [p for p in query.recentProgress if p["numInputRows"]]


def _events(spark: SparkSession, folder: Path) -> DataFrame:
    from pyspark.sql import functions

    return stream(spark, folder / "s", _SCHEMA).withColumn("t", functions.timestamp_millis("at"))


def _sessions(spark: SparkSession, folder: Path) -> tuple[DataFrame, str]:
    from pyspark.sql import functions

    grouped = (
        _events(spark, folder).withWatermark("t", "5 seconds").groupBy(functions.session_window("t", "5 seconds"), "k")
    )
    return grouped.agg(functions.count("*").alias("c"), functions.sum("x").alias("x")), "append"


def _duplicates(spark: SparkSession, folder: Path) -> tuple[DataFrame, str]:
    return _events(spark, folder).withWatermark("t", "5 seconds").dropDuplicatesWithinWatermark(["k"]), "append"


_SPARK: dict[str, Callable[[Any, Path], tuple[Any, str]]] = {
    "Spark's `session_window`, append mode": _sessions,
    "Spark's `dropDuplicatesWithinWatermark`": _duplicates,
}


def main() -> None:
    """Measures and prints the table and the floors."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.operators_on_spark", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, beside the plain join")
    parser.add_argument("--rows", type=int, default=100_000, help="rows an epoch")
    parser.add_argument("--json", type=Path, help="writes what was measured, instead of printing it")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(OPERATORS))
    if unknown:
        parser.error(f"unknown operator {', '.join(unknown)}")
    load = os.getloadavg()[0]
    names = arguments.names or [name for name in OPERATORS if name != PLAIN]
    found = measure_all(arguments.rows, names, lambda text: print(text, flush=True))
    if arguments.json:
        arguments.json.write_text(json.dumps({"load": load, "found": {name: asdict(t) for name, t in found.items()}}))
        return
    print("\n".join(lines(found, load)))
    for floor in floors(found):
        print(f"{floor.name}: {floor.ratio:.2f}, at least {floor.least}: {'held' if floor.held else 'MISSED'}")


if __name__ == "__main__":
    main()
