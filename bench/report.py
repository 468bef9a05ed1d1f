"""Renders the results as a page of Markdown: what was measured, where, with which releases, and which floors hold."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.comparison import Comparison, Floor
from bench.measuring import Measured
from bench.stage import StageRates

__all__ = ["Compared", "comparison_lines", "floor_lines", "machine", "ratios", "render", "store_floors"]

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "rocksdict", "duckdb", "polars")

Compared = tuple[Comparison, Mapping[str, Measured]]
"""A comparison and its measurements by peer."""


def ratios(compared: Sequence[Compared]) -> list[Floor]:
    """The floors of the comparisons."""
    found = []
    for comparison, measured in compared:
        vsc, *others = comparison.peers
        for peer in others:
            if peer.least is not None:
                ratio = measured[vsc.module].rate / measured[peer.module].rate
                found.append(Floor(f"{comparison.title} beside {peer.title}", peer.least, ratio))
    return found


def store_floors(rates: Mapping[str, float]) -> list[Floor]:
    """The floors of the store."""
    put, get = rates["raw rocksdict: put"], rates["raw rocksdict: get"]
    many = [value for name, value in rates.items() if name.startswith("RocksDB: put_many")]
    return [
        Floor("Store: put_many beside raw put", 0.5, max(many) / put),
        Floor("Store: get_many as of beside raw get", 0.5, rates["RocksDB: get_many as of"] / get),
    ]


def render(
    first: Sequence[str],
    compared: Sequence[Compared],
    stage: StageRates,
    store_lines: list[str],
    floors: Sequence[Floor],
    load: float,
) -> str:
    """The whole page, the section `first` before all others.

    `load` is the load average before anything was measured: above 0.5 the machine was not idle.
    """
    return "\n".join(
        [
            "# Results",
            "",
            f"Written by `make bench`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. {machine()} "
            f"Load average before: {load:.1f}.",
            "",
            "Everywhere: parquet in, noop out, checkpoint on, RocksDB for state, `local[2]`, a JVM for each row of a "
            "table, one after the other on the same files. A rate is rows by Spark's `triggerExecution`, over the "
            "batches after those that warm up; a CPU second is one of any of the peer's processes.",
            "",
            *first,
            *floor_lines(floors),
            *comparison_lines(compared),
            "## The stage alone",
            "",
            "The stream-table join in one process on one core: sort, encode keys, RocksDB, decode, result columns.",
            "",
            "| what | rows/s |",
            "|---|---:|",
            f"| load the table | {stage.load:,.0f} |",
            f"| stream rows, batch by batch | {stage.stream:,.0f} |",
            "",
            "Where a batch's time goes (own time, profiled): "
            + ", ".join(f"`{place}` {share:.0%}" for place, share in stage.places)
            + ".",
            "",
            "## Store",
            "",
            *store_lines,
            "",
        ]
    )


def comparison_lines(compared: Sequence[Compared]) -> list[str]:
    """A section for each comparison."""
    return [line for comparison, measured in compared for line in _section(comparison, measured)]


def floor_lines(floors: Sequence[Floor]) -> list[str]:
    """The table of the floors; empty without floors."""
    if not floors:
        return []
    rows = [f"| {f.name} | {f.least} | {f.ratio:.2f} | {'held' if f.held else '**missed**'} |" for f in floors]
    return ["## Floors", "", "| vsc is x times as fast | least | measured | |", "|---|---:|---:|---|", *rows, ""]


def _section(comparison: Comparison, measured: Mapping[str, Measured]) -> list[str]:
    rate = measured[comparison.peers[0].module].rate
    rows = []
    for peer in comparison.peers:
        found = measured[peer.module]
        batches = ", ".join(f"{batch:,}" for batch in found.batches)
        rows.append(
            f"| {peer.title} | {found.rate:,.0f} | {rate / found.rate:.2f} | {found.cpu_rate:,.0f} | {batches} |"
        )
    head = [
        "| what | rows/s | vsc is x times as fast | rows/CPU-s | batches, rows/s |",
        "|---|---:|---:|---:|---|",
    ]
    return [f"## {comparison.title}", "", f"{comparison.about} {_amount(comparison)}", "", *head, *rows, ""]


def _amount(comparison: Comparison) -> str:
    work = comparison.workload
    text = f"Batches of {work.batch:,} rows, {work.warm_up} to warm up and {work.measured} measured"
    if work.table:
        text = f"{work.table:,} rows of the table; then b{text[1:]}"
    few = [
        f"{peer.title}: batches of {peer.few.batch:,}, {peer.few.warm_up} and {peer.few.measured}"
        for peer in comparison.peers
        if peer.few is not None
    ]
    if few:
        text += f" ({'; '.join(few)})"
    rounds = f" The median of {comparison.rounds} rounds, in which one runs after the other." * (comparison.rounds > 1)
    return f"{text}.{rounds}"


def machine() -> str:
    """The machine and the releases, in two sentences."""
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
