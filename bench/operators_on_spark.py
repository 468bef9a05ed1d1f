"""Every operator on Spark, in one session with the plain versioned join: rows a second, growth, and floors.

``python -m bench.operators_on_spark [--rows N] [--json FILE] [NAME ...]``. The rows are those of `bench.operators`, in
parquet files; every operator has a checkpoint of its own and a noop sink. A rate is that of the median epoch without
the first two, by Spark's `triggerExecution`. `bench.growth` shows whether an operator slows down, in the CPU time of
all processes, which other work disturbs less, in two rounds.
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
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.comparison import Floor
from bench.growth import AHEAD, EPOCHS, PAIRS, WARM_UP, Fed, growth
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
_GROWTH = f"CPU of {PAIRS} epochs, beside {AHEAD} epochs later"
_ROUNDS = 2
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
    growth: tuple[float, ...] = ()
    """What `growth` found in each round, where it was looked for."""

    @property
    def of_cpu(self) -> float:
        """Rows a second of CPU time in the median epoch."""
        return self.rows / median(self.cpu[WARM_UP:]) * 1000

    @property
    def rate(self) -> float:
        """Rows a second in the median epoch."""
        return self.rows / median(self.epochs[WARM_UP:]) * 1000

    @property
    def last(self) -> float | None:
        """The CPU time of early epochs divided by that of later ones; None where that was not measured."""
        return median(self.growth) if self.growth else None


def measure_all(rows: int, names: Sequence[str], tell: Callable[[str], None]) -> dict[str, Timed]:
    """Measures the named operators and the plain join, which also runs first, to warm Spark up."""
    found: dict[str, Timed] = {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        folder = Path(name)
        for source, share in _FILES.items():
            _write(folder, source, int(rows * share))
        spark = vsc_session("operators")
        for number, operator in enumerate(["warming up", PLAIN, *names, *BESIDE, *_SPARK]):
            timed = _timed(spark, operator, folder, folder / f"checkpoint-{number}", rows)
            if operator in OPERATORS and operator not in GROWING:
                rounds = [_grown(spark, operator, folder, f"{number}-{one}", rows) for one in range(_ROUNDS)]
                timed = replace(timed, growth=tuple(rounds))
            found[operator] = timed
            tell(f"{operator}: {timed.rate:,.0f} rows/s, {timed}")
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
    return {name: Timed(**timed) for name, timed in written["found"].items()}, written["load"]


def floors(found: Mapping[str, Timed]) -> list[Floor]:
    """The floors of every operator: its rate relative to the plain join, its last epochs relative to its first."""
    held, plain = [], found[PLAIN].rate
    for name in [n for n in OPERATORS if n in found and n != PLAIN]:
        least = FLOORS.get(name, 0.4)
        held.append(Floor(f"{name} beside the plain versioned join", least, found[name].rate / plain))
        last = found[name].last
        if last is not None:
            held.append(Floor(f"{name}: {_GROWTH}", NOT_SLOWER, last))
    branch, both = BESIDE
    apart = sum(median(found[name].epochs[WARM_UP:]) for name in (PLAIN, branch))
    together = median(found[both].epochs[WARM_UP:])
    held.append(Floor("join and unrelated branch together, beside apart", NOT_SLOWER, apart / together))
    return held


def lines(found: Mapping[str, Timed], load: float) -> list[str]:
    """The table."""
    plain = found[PLAIN]
    rows = [
        f"| {name} | {timed.rate:,.0f} | {timed.rate / plain.rate:.2f} | {_floor(name)} | {_last(timed)} | "
        f"{timed.of_cpu:,.0f} | {timed.of_cpu / plain.of_cpu:.2f} |"
        for name, timed in found.items()
    ]
    after = os.getloadavg()[0]
    return [
        "## Every operator",
        "",
        f"{EPOCHS} epochs of each, one after the other in one Spark session; then two queries that take "
        f"turns, one {AHEAD} epochs ahead, {_ROUNDS} times: they show growth. The plain join reads {plain.rows:,} rows "
        "an epoch, a tenth of them its table's. CPU time is that of all processes: it says more where the machine is "
        f"busy. Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {load:.1f} "
        f"before and {after:.1f} after.",
        "",
        f"| operator | rows/s | of the plain join | floor | {_GROWTH} | rows a CPU-second | of the plain join |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _floor(name: str) -> str:
    return "" if name == PLAIN or name not in OPERATORS else str(FLOORS.get(name, 0.4))


def _last(timed: Timed) -> str:
    return "" if timed.last is None else f"{timed.last:.2f}"


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
        return _times(writer.trigger(availableNow=True).start(), checkpoint / "commits", rows)
    text, sources = _topology(operator)
    query = _start(spark, text, folder, checkpoint)
    return _times(query, checkpoint / "commits", int(rows * sum(_FILES[source] for source in sources)))


def _grown(spark: SparkSession, operator: str, folder: Path, name: str, rows: int) -> float:
    text, sources = _topology(operator)
    of_file = {source: int(rows * _FILES[source]) // FILES_A_BATCH for source in sources}
    early, late = (Fed(folder, folder / f"{one}-{name}", of_file) for one in ("early", "late"))
    return growth(
        early, late,
        lambda fed: _start(spark, text, fed.into, fed.into / "checkpoint", trigger="500 ms", on_epoch=fed.heard),
    )  # fmt: skip


def _topology(operator: str) -> tuple[str, list[str]]:
    """The topology, with a folder of files for each source and noop sinks; and its sources."""
    name = operator if operator in OPERATORS or operator in BESIDE else PLAIN
    statements = BESIDE.get(name) or OPERATORS[name]
    sinks = "".join(f" sink {of} to noop ();" for of in ("o", "b") if f" {of} = " in statements)
    text, count = re.subn(
        r"(\w+) (\([^()]*\)) from memory \(\)",
        r"\1 \2 from files (path = '${folder}/\1', format = 'parquet', 'maxFilesPerTrigger' = '${files}')",
        topology(name, statements),
    )
    sources = [source for source in _FILES if f" {source} (" in text]
    assert len(sources) == count
    return text + sinks, sources


def _start(spark: SparkSession, text: str, folder: Path, checkpoint: Path, **more: Any) -> StreamingQuery:
    from vsc.runtime.spark import start

    variables = {"folder": str(folder), "files": str(FILES_A_BATCH)}
    plan = compile_topology(text, path="bench.vdsl", variables=variables)
    return start(plan, spark, checkpoint=str(checkpoint), variables=variables, partitions=PARTITIONS, **more)


def _times(query: StreamingQuery, commits: Path, rows: int) -> Timed:
    """Notes the CPU time at each commit. The query's progress is read once, at the end: it grows with every epoch."""
    began, marks = cpu_seconds(os.getpid()), dict[int, float]()
    while query.isActive:
        for epoch in _committed(commits) - marks.keys():
            marks[epoch] = cpu_seconds(os.getpid())
        time.sleep(0.02)
    query.awaitTermination()
    ended = [p for p in query.recentProgress if p["numInputRows"]]
    if len(ended) != EPOCHS or any(p["batchId"] not in marks for p in ended[:-1]):
        raise RuntimeError(f"{len(ended)} epochs instead of {EPOCHS}, of which {sorted(marks)} were seen")
    used = [began, *(marks.get(p["batchId"], cpu_seconds(os.getpid())) for p in ended)]
    epochs = tuple(int(p["durationMs"]["triggerExecution"]) for p in ended)
    return Timed(rows, epochs, tuple(round((b - a) * 1000) for a, b in pairwise(used)))


def _committed(commits: Path) -> set[int]:
    return {int(name) for name in (os.listdir(commits) if commits.is_dir() else ()) if name.isdigit()}


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
