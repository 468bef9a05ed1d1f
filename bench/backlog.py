"""A backlog as users read it: ``vsc run`` with its defaults from start to end, Spark's ``ASOF JOIN`` and DuckDB's.

``python -m bench.backlog [--rows N] [--rounds N]``. All three read the same parquet files, each in a process of its
own, and take turns. A figure is rows a CPU second of all its processes: with the start, and without it. The start is
what the same command takes for the table and the first file of the stream, but for what that file's rows take.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.comparison import Floor
from bench.comparisons.stream_table_join import rows, vsc_versioned
from bench.processes import run
from bench.running import check_results
from bench.workload import Workload
from vsc.plan.words import counted

__all__ = ["PEERS", "Backlog", "Spent", "floors", "lines", "measure"]

ROWS, ROUNDS = 30_000_000, 3
VSC, SPARK, DUCKDB = "`vsc run`, its defaults", "Spark's `ASOF JOIN`, stateless, static table", "DuckDB's `ASOF JOIN`"
_A_FILE = 100_000
_MASTER = "local[2]"


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds and seconds of one run, and its result: rows, and how many found a partner, if it counts them."""

    cpu: float
    seconds: float
    result: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """The runs over all rows, and over the first file."""

    rows: int
    whole: tuple[Spent, ...]
    start: tuple[Spent, ...]

    @property
    def cpu(self) -> float:
        """CPU seconds of the median run, start included."""
        return median(one.cpu for one in self.whole)

    @property
    def start_cpu(self) -> float:
        """CPU seconds of a start, without the rows of the first file."""
        little = median(one.cpu for one in self.start)
        return max(0.0, little - max(0.0, self.cpu - little) * _A_FILE / max(1, self.rows - _A_FILE))

    @property
    def rate(self) -> float:
        """Rows a CPU second, start included."""
        return self.rows / self.cpu

    @property
    def rate_apart(self) -> float:
        """Rows a CPU second without the start."""
        return self.rows / max(self.cpu - self.start_cpu, 0.01)


def measure(count: int = ROWS, rounds: int = ROUNDS) -> dict[str, Backlog]:
    """The measurements by peer. Raises ValueError if two peers find different partners."""
    files = max(2, count // _A_FILE)
    found: dict[str, tuple[list[Spent], list[Spent]]] = {peer: ([], []) for peer in PEERS}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        whole, little = Path(name) / "whole", Path(name) / "little"
        rows.write(whole, Workload(table=200_000, batch=_A_FILE, warm_up=0, measured=files, files=1))
        (little / "payments").mkdir(parents=True)
        os.link(whole / "payments" / "0000.parquet", little / "payments" / "0000.parquet")
        (little / "rates").symlink_to(whole / "rates")
        for turn in range(rounds):
            for peer, command in PEERS.items():
                for folder, spent in zip((whole, little), found[peer], strict=True):
                    spent.append(_run(command, folder))
                    print(f"{turn} {peer}, {folder.name}: {asdict(spent[-1])}", flush=True)
    check_results({f"{peer} {n}": one.result for peer, runs in found.items() for n, one in enumerate(runs[0])})
    return {peer: Backlog(files * _A_FILE, tuple(runs[0]), tuple(runs[1])) for peer, runs in found.items()}


def lines(found: Mapping[str, Backlog]) -> list[str]:
    """A section for the page."""
    count, rounds = next((one.rows, len(one.whole)) for one in found.values())
    table = []
    for peer, one in found.items():
        each = ", ".join(f"{one.rows / run.cpu / 1000:,.0f}" for run in one.whole)
        beside = f"{found[VSC].rate / one.rate:.2f} | {found[VSC].rate_apart / one.rate_apart:.2f}"
        own = f"{one.rate / 1000:,.0f} k | {one.rate_apart / 1000:,.0f} k | {one.start_cpu:.1f}"
        table.append(f"| {peer} | {own} | {beside} | {each} |")
    return [
        "## A backlog by the defaults",
        "",
        f"{count:,} rows of a stream joined with 200,000 versions of 10,000 keys, from start to end, on {_MASTER}. "
        f"Rows are those a CPU second of all processes; the median of {counted(rounds, 'round')}, in which all take "
        "turns. vsc keeps state, order and a checkpoint; Spark has epochs of as many bytes, and no state; DuckDB has "
        "one query.",
        "",
        "| what | rows/CPU-s | without the start | start, CPU s | vsc is x times | without the start | rounds, k |",
        "|---|---:|---:|---:|---:|---:|---|",
        *table,
        "",
    ]


def floors(found: Mapping[str, Backlog]) -> list[Floor]:
    """Beside Spark's join."""
    return [
        Floor("A backlog by the defaults, CPU, beside Spark's `ASOF JOIN`", 1.5, found[VSC].rate / found[SPARK].rate)
    ]


def _run(command: Callable[[Path, Path], Sequence[str]], folder: Path) -> Spent:
    """Runs a peer over a folder; its last line of JSON has its result."""
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as own:
        ran = run(command(folder, Path(own)), Path(own) / "log")
        end = [json.loads(line) for line in ran.said.splitlines() if line.startswith('{"event": "finished"')][-1]
        given = end["output_rows"]
        return Spent(ran.cpu, ran.seconds, None if given is None else (given, given - end["missed"]))


def _vsc(folder: Path, own: Path) -> list[str]:
    topology = own / "topology.vdsl"
    topology.write_text(vsc_versioned.topology("format = 'parquet'"))
    words = [sys.executable, "-m", "vsc", "run", str(topology), "--checkpoint", str(own / "ck"), "--master", _MASTER]
    return [*words, "--var", f"folder={folder}", "--var", f"stream={folder}", "--progress", "json"]


def _child(peer: str) -> Callable[[Path, Path], list[str]]:
    return lambda folder, own: [sys.executable, "-m", "bench.backlog", "--child", peer, str(folder), str(own)]


PEERS: dict[str, Callable[[Path, Path], list[str]]] = {
    VSC: _vsc,
    SPARK: _child("spark"),
    DUCKDB: _child("duckdb"),
}


def _in_spark(folder: Path, own: Path) -> None:
    from bench.comparisons.stream_table_join import asof_join
    from bench.measuring import session
    from vsc.runtime.spark.connectors.file_rows import MAX_BYTES

    spark = session("asof join", {"spark.sql.join.asofJoin.enabled": "true"})
    spark.read.parquet(str(folder / "rates")).createOrReplaceTempView("rates")
    reader = spark.readStream.schema(asof_join.PAYMENTS).option("maxBytesPerTrigger", MAX_BYTES)
    reader.parquet(str(folder / "payments")).createOrReplaceTempView("payments")
    writer = spark.sql(asof_join.JOIN).writeStream.format("noop").option("checkpointLocation", str(own / "ck"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    print("\n" + json.dumps({"event": "finished", "output_rows": None}))


def _in_duckdb(folder: Path, own: Path) -> None:
    from bench.comparisons.stream_table_join.duckdb_asof import joined

    count, partners = joined(folder)
    print(json.dumps({"event": "finished", "output_rows": count, "missed": count - partners}))


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.backlog", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--child", nargs=3, metavar=("PEER", "FOLDER", "OWN"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        peer, folder, own = arguments.child
        {"spark": _in_spark, "duckdb": _in_duckdb}[peer](Path(folder), Path(own))
        return
    print("\n" + "\n".join(lines(measure(arguments.rows, arguments.rounds))))


if __name__ == "__main__":
    main()
