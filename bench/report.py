"""The results as one page of Markdown: what was measured, where, with which versions, and which floors hold."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.measuring import Measured
from bench.stage import StageRates
from bench.workload import KEYS, Workload

__all__ = ["Floor", "floors", "render"]

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "rocksdict")
_TITLES = {
    "vsc": "vsc: versioned stream-table join, state kept",
    "asof_join": "Spark's `ASOF JOIN`, stateless, static table",
    "handwritten": "`transformWithState` by hand",
}


@dataclass(frozen=True, slots=True)
class Floor:
    """A ratio that must not be fallen below."""

    name: str
    least: float
    ratio: float

    @property
    def held(self) -> bool:
        """Whether it was not."""
        return self.ratio >= self.least


def floors(joins: Mapping[str, Measured], store: Mapping[str, float]) -> list[Floor]:
    """The floors of the project, with what was measured."""
    rate = joins["vsc"].rate
    put, get = store["raw rocksdict: put"], store["raw rocksdict: get"]
    many = [value for name, value in store.items() if name.startswith("RocksDB: put_many")]
    return [
        Floor("join beside the stateless ASOF JOIN", 0.7, rate / joins["asof_join"].rate),
        Floor("join beside the hand-written one", 15.0, rate / joins["handwritten"].rate),
        Floor("store, put_many beside raw put", 0.5, max(many) / put),
        Floor("store, get_many as of beside raw get", 0.5, store["RocksDB: get_many as of"] / get),
    ]


def render(
    workload: Workload,
    few: Workload,
    joins: Mapping[str, Measured],
    stage: StageRates,
    store: Mapping[str, float],
    store_lines: list[str],
    load: float,
) -> str:
    """The whole page. `load` is the load average before anything was measured: above 0.5 the machine was not idle."""
    return "\n".join(
        [
            "# Results",
            "",
            f"Written by `make bench`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. {_machine()} "
            f"Load average before: {load:.1f}.",
            "",
            "## Stream-table join",
            "",
            f"{workload.versions:,} versions over {KEYS:,} keys, then {workload.rows:,} stream rows in "
            f"{workload.measured} batches of {workload.batch:,}, event times all over the history; parquet in, noop "
            "out, checkpoint on, `local[2]`, a JVM for each row of the table, one after the other. A rate is rows by "
            f"Spark's `triggerExecution`; the first {workload.warm_up} batches warm up and do not count (hand-written: "
            f"{few.warm_up} and {few.measured}, of {few.batch:,} rows).",
            "",
            *_join_lines(joins),
            "",
            "## The stage alone",
            "",
            "The same join in one process on one core: sort, encode keys, RocksDB, decode, result columns.",
            "",
            "| what | rows/s |",
            "|---|---:|",
            f"| load the table | {stage.load:,.0f} |",
            f"| stream rows, batches of {workload.batch:,} | {stage.stream:,.0f} |",
            "",
            "Where a batch's time goes (own time, profiled): "
            + ", ".join(f"`{place}` {share:.0%}" for place, share in stage.places)
            + ".",
            "",
            "## Store",
            "",
            *store_lines,
            "",
            "## Floors",
            "",
            "| floor | least | measured | |",
            "|---|---:|---:|---|",
            *(f"| {f.name} | {f.least} | {f.ratio:.2f} | {_word(f)} |" for f in floors(joins, store)),
            "",
        ]
    )


def _join_lines(joins: Mapping[str, Measured]) -> list[str]:
    rate = joins["vsc"].rate
    lines = ["| what | rows/s | vsc is x times as fast | batches, rows/s |", "|---|---:|---:|---|"]
    for name, title in _TITLES.items():
        found = joins[name]
        batches = ", ".join(f"{batch:,}" for batch in found.batches)
        lines.append(f"| {title} | {found.rate:,.0f} | {rate / found.rate:.2f} | {batches} |")
    return lines


def _word(floor: Floor) -> str:
    return "held" if floor.held else "**missed**"


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Machine: {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}. "
        f"Python {platform.python_version()}, {_java()}, {packages}."
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None:
        return "no Java"
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    return said.replace('"', "").replace("openjdk version", "OpenJDK")
