"""``python -m soak.steady [--epochs N]``: one run through many small epochs, whose cost must not grow.

An epoch reads a file of each source, with a second of event time; the state keeps about twenty such seconds. Every
hundred epochs it measures the CPU seconds of all processes, their memory, threads and open files, and the number of
files in the checkpoint, below the local folders and at the sink. It compares the first hundred epochs after `WARM_UP`
with the last hundred. Exit status: 0, or 1 if something grew. Wall-clock time is printed but not judged: the machine
may have other work.

The run has a JVM of 512 MiB, so that a memory leak shows. Spark removes compacted parts of its file log after 20
seconds instead of ten minutes, so that the removal happens during the run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.processes import cpu_seconds
from soak.job import Job, Life
from soak.subjects import Subject, dated

__all__ = ["STEADY", "Measure", "lines", "verdict"]

EPOCHS, HUNDRED, WARM_UP = 1000, 100, 200
_CONF = ("spark.driver.memory=512m", "spark.sql.streaming.fileSource.log.cleanupDelay=20s")
_STUCK_SECONDS = 300
_MORE = 5
"""Epochs after the last one that counts, so that the run is still at work when it is measured."""
_RATES, _PAYMENTS, _ACCOUNTS = 8, 40, 20
_MIB = 1 << 20

ALLOWED = {"CPU s": (1.25, 1.0), "MiB": (1.2, 64.0), "threads": (1.2, 10.0), "open files": (1.2, 20.0)}
"""By unit: the factor by which the last measure may exceed the first, and an allowance on top of that."""
_FILES = (1.2, 20.0)
"""The same for numbers of files."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a hundred epochs took (in seconds), and the numbers after them, by name; the name begins with the unit."""

    epoch: int
    seconds: tuple[float, ...]
    numbers: Mapping[str, float]


def _grown(first: Measure, last: Measure) -> list[str]:
    """What has grown from `first` to `last` by more than is allowed: a phrase for each."""
    found = []
    for name, number in last.numbers.items():
        times, more = next((bound for unit, bound in ALLOWED.items() if name.startswith(unit)), _FILES)
        before = first.numbers.get(name, 0.0)
        if number > times * before + more:
            found.append(f"{name}: {before:,.1f} by epoch {first.epoch}, {number:,.1f} by epoch {last.epoch}")
    return found


def verdict(measures: Sequence[Measure], epochs: int, status: int | None) -> list[str]:
    """What is wrong with a run of `epochs` epochs that ended with `status`: a phrase for each problem."""
    done = measures[-1].epoch if measures else 0
    if status or done < epochs - epochs % HUNDRED:
        return [f"the run ended with status {status} after {done:,} epochs and some, not {epochs:,}"]
    return _grown(measures[WARM_UP // HUNDRED], measures[-1])


def lines(measures: Sequence[Measure]) -> list[str]:
    """The table, with a column for each measure."""
    names = sorted({name for measure in measures for name in measure.numbers})
    rows = [
        ["p50 s", *(f"{median(measure.seconds):.2f}" for measure in measures)],
        ["p95 s", *(f"{quantiles(measure.seconds, n=20)[-1]:.2f}" for measure in measures)],
        *([name, *(f"{measure.numbers.get(name, 0):,.0f}" for measure in measures)] for name in names),
    ]
    head = ["by epoch", *(f"{measure.epoch:,}" for measure in measures)]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    return [
        row[0].ljust(widths[0])
        + "".join(cell.rjust(width + 2) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in [head, *rows]
    ]


def _write(folder: Path, epochs: int, seed: int) -> None:
    """Writes a file of each source for each epoch; each file covers the next second of event time."""
    shutil.copy(Path(__file__).with_suffix(".vdsl"), folder / "topology.vdsl")
    chance = np.random.default_rng(seed)
    for name in ("rates", "payments"):
        (folder / "in" / name).mkdir(parents=True)
    for number in range(epochs):
        for name, columns in _rows(number, chance):
            path = folder / f"in/{name}/{number:05}.parquet"
            pq.write_table(pa.table(columns), path)
            dated(path, number)


def _rows(number: int, chance: np.random.Generator) -> Iterator[tuple[str, dict[str, pa.Array]]]:
    def times(count: int) -> pa.Array:
        at = np.sort(chance.integers(number * 1000, number * 1000 + 1000, count))
        return pa.array(at * 1000, pa.int64()).view(pa.timestamp("us", "UTC"))

    currency = pa.array([f"c{key}" for key in range(_RATES)])
    yield "rates", {"currency": currency, "rate": pa.array(chance.random(_RATES)), "at": times(_RATES)}
    yield (
        "payments",
        {
            "id": pa.array(range(number * _PAYMENTS, (number + 1) * _PAYMENTS)),
            "account": pa.array([f"a{key}" for key in chance.integers(0, _ACCOUNTS, _PAYMENTS)]),
            "currency": currency.take(pa.array(chance.integers(0, _RATES, _PAYMENTS))),
            "amount": pa.array(chance.random(_PAYMENTS)),
            "at": times(_PAYMENTS),
        },
    )


STEADY = Subject("steady", {"totals": ("account",)}, False, _write)


def _measures(life: Life) -> Iterator[Measure]:
    """A measure after every hundred epochs, until the run has ended."""
    used, seconds = 0.0, list[float]()
    for event in _epochs(life):
        seconds.append(event["duration_ms"] / 1000)
        if len(seconds) % HUNDRED == 0:
            cpu = cpu_seconds(life.process.pid)
            yield Measure(len(seconds), tuple(seconds[-HUNDRED:]), {"CPU s": cpu - used, **_numbers(life)})
            used = cpu


def _epochs(life: Life) -> Iterator[dict[str, Any]]:
    """What the run reports about each epoch, as it does. Raises TimeoutError if it reports nothing but does not end."""
    text, since = "", time.monotonic()
    with life.job.log.open() as log:
        log.seek(life.offset)
        while True:
            ended = life.status is not None
            *whole, text = (text + log.read()).split("\n")
            for line in whole:
                since = time.monotonic()
                if line.startswith('{"event": "batch"'):
                    yield json.loads(line)
            if ended:
                return
            if time.monotonic() - since > _STUCK_SECONDS:
                raise TimeoutError(f"no epoch has ended for {_STUCK_SECONDS} s: see {life.job.log}")
            time.sleep(0.2)


def _numbers(life: Life) -> dict[str, float]:
    """Memory, threads, open files and files on disk."""
    root, found = psutil.Process(life.process.pid), dict[str, float]()
    for process in [root, *root.children(recursive=True)]:
        try:
            kind = "JVM" if process.name() == "java" else "driver" if process == root else "workers"
            own = {"MiB": process.memory_full_info().pss / _MIB, "threads": process.num_threads()}
            own["open files"] = process.num_fds()
        except psutil.NoSuchProcess:
            continue
        for unit, number in own.items():
            found[f"{unit}, {kind}"] = found.get(f"{unit}, {kind}", 0) + number
    folder = life.job.folder
    places = [*sorted(path for path in (folder / "ck").iterdir() if path.is_dir() and path.name != "vsc")]
    places += [path for path in sorted((folder / "ck/vsc").iterdir()) if path.is_dir()]
    places += [folder / name for name in ("local", "spark", "tmp")] + sorted((folder / "out").glob("*/_vsc-*"))
    for place in places:
        found[f"files, {place.relative_to(folder)}"] = sum(path.is_file() for path in place.rglob("*"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the soak."""
    parser = argparse.ArgumentParser(prog="python -m soak.steady", description="one run through many small epochs")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"how many, at least 400 (default: {EPOCHS:,})")
    given = parser.parse_args(arguments)
    if given.epochs < WARM_UP + 2 * HUNDRED:
        parser.error(f"--epochs {given.epochs}: {WARM_UP} warm up, then the first {HUNDRED} and the last are compared")
    folder = Path(tempfile.mkdtemp(prefix="vsc-soak-"))
    job = Job(STEADY, folder / "steady", conf=_CONF)
    job.prepare(given.epochs + _MORE, 1)
    life, measures = job.start(), list[Measure]()
    try:
        for measure in _measures(life):
            measures.append(measure)
            print(f"{measure.epoch:,} epochs, {measure.numbers['CPU s']:.0f} CPU s for the last {HUNDRED}", flush=True)
    finally:
        life.kill("tree")
    print("\n" + "\n".join(lines(measures)) + "\n")
    faults = verdict(measures, given.epochs, life.status)
    print("\n".join(faults) or "nothing has grown")
    if faults:
        print(f"what is left is in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
