"""``make demo``: the flights example on Spark, step by step, and what is to be learned from it.

Runs ``vsc run`` as a user would type it, on all cores, into ``out/flights``; then reads the files that it wrote. The
comparison with an unversioned table is of two results of the same run, flight by flight. Exit status: ``vsc run``'s.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

HERE = Path(__file__).parent
FLIGHT = ["carrier", "flight", "origin", "departed_at"]
"""What tells one flight from all others."""

SHOWN = {
    "carrier": "carrier",
    "flight": "flight",
    "route": "route",
    "departed_at": "departed",
    "observed_at": "weather of",
    "temp": "°F",
    "observed_at_newest": "without history",
    "temp_newest": "°F",
}
"""Columns of the sample and their titles."""

NEXT = [
    "Next",
    "  source .venv/bin/activate                                     vsc is a command then",
    "  vsc compile examples/flights/topology.vdsl --emit topology    what vsc makes of the topology",
    "  vsc inspect FOLDER                                            a source statement for files of your own",
    "  docs/guide.md, docs/coming-from-sql.md                        the first hour, and your words in vsc",
]
"""Where to go on."""


@dataclass(frozen=True, slots=True)
class Run:
    """One ``vsc run``: its exit status, the seconds it took, and the last line of its progress."""

    status: int
    seconds: float
    finished: Mapping[str, Any]
    batch_ms: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the newest row would have answered, against the row as of departure; `temp` is the largest difference, °F."""

    flights: int
    without_weather: int
    wrong: int
    temp: float


def main() -> int:
    """Runs the example from the top of the checkout and prints what came out."""
    out = Path("out") / "flights"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        "vsc",
        "run",
        str(HERE.relative_to(Path.cwd()) / "topology.vdsl"),
        "--checkpoint",
        str(out / "checkpoint"),
    ]
    command += ["--var", f"data={HERE.relative_to(Path.cwd()) / 'data'}", "--var", f"out={out}"]
    print(
        "1 of 3: vsc reads a year of flights, in the order in which they landed, and hourly weather. It joins each\n"
        "        flight with the weather at its airport at departure; and, to compare, with a table without history.\n"
        "        Spark takes some seconds to start, and then a minute or so.\n\n"
        f"$ {shlex.join(command)}\n",
        flush=True,
    )
    run = _run(command)
    if run.status != 0:
        return run.status
    print("2 of 3: read both results, and line them up flight by flight", flush=True)
    departures, guesses = (ds.dataset(out / name, format="parquet").to_table() for name in ("departures", "guesses"))
    both = lined_up(departures, guesses)
    print(f"3 of 3: twelve flights of the year\n\n{_sample(both)}\n\n{learned(run, compare(both))}")
    return 0


def lined_up(departures: pa.Table, guesses: pa.Table) -> pa.Table:
    """Both results of each flight in one row; columns of the table without history end in ``_newest``."""
    both = departures.join(guesses, keys=FLIGHT, join_type="full outer", right_suffix="_newest")
    if both.num_rows != departures.num_rows or both.num_rows != guesses.num_rows:
        raise ValueError(f"{departures.num_rows} departures and {guesses.num_rows} guesses are not of the same flights")
    return both


def compare(both: pa.Table) -> Comparison:
    """Counts the flights for which the two joins found different observations."""
    same = pc.fill_null(pc.equal(both["observed_at"], both["observed_at_newest"]), False)
    neither = pc.and_(pc.is_null(both["observed_at"]), pc.is_null(both["observed_at_newest"]))
    wrong = pc.invert(pc.or_(same, neither))
    off = pc.max(pc.abs(pc.subtract(both["temp"], both["temp_newest"]))).as_py()
    missing = pc.sum(pc.is_null(both["observed_at"])).as_py()
    return Comparison(both.num_rows, missing or 0, pc.sum(wrong).as_py() or 0, off or 0.0)


def _run(command: Sequence[str]) -> Run:
    """Runs `command` by this interpreter, telling of each epoch as it ends."""
    started = time.monotonic()
    finished: Mapping[str, Any] = {}
    batch_ms = 0
    arguments = [sys.executable, "-m", *command, "--progress", "json"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        for event in _events(process):
            if event["event"] == "batch":
                batch_ms += event["duration_ms"]
                print(
                    f"epoch {event['batch']}: {event['input_rows']:,} rows in {event['duration_ms'] / 1000:.1f} s",
                    flush=True,
                )
            elif event["event"] == "finished":
                finished = event
        status = process.wait()
    print()
    return Run(status, time.monotonic() - started, finished, batch_ms)


def _events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The progress events of a run; whatever else it says goes on to our own stderr."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith('{"event"'):
            yield json.loads(line)
        else:
            sys.stderr.write(line)


def _sample(both: pa.Table) -> str:
    """Twelve flights, evenly over the year, as a table for the eye."""
    ordered = both.sort_by([("departed_at", "ascending"), ("flight", "ascending")])
    step = max(ordered.num_rows // 12, 1)
    picked = ordered.take(list(range(step // 2, ordered.num_rows, step))[:12])
    rows = [[_cell(row, column) for column in SHOWN] for row in picked.to_pylist()]
    return _table(list(SHOWN.values()), rows)


def _cell(row: Mapping[str, object], column: str) -> str:
    if column == "route":
        return f"{row['origin']} - {row['dest']}"
    value = row[column]
    if value is None:
        return "-"
    if column.startswith("observed") or column.endswith("_at"):
        return f"{value:%d %b %H:%M}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in [titles, *rows]) for i in range(len(titles))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [titles, *rows]]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def learned(run: Run, found: Comparison) -> str:
    """What the run has shown, and where to go on."""
    rows, seconds = run.finished["input_rows"], run.batch_ms / 1000
    missing = f"; {found.without_weather:,} found none" if found.without_weather else ""
    seen = [
        f"All {found.flights:,} flights have the weather of their departure, though vsc read them after they had "
        f"landed{missing}.",
        f"A table without history would have given {found.wrong:,} of them ({found.wrong / max(found.flights, 1):.0%}) "
        f"the wrong weather, off by up to {found.temp:.0f} °F, and no error.",
        "One line of examples/flights/topology.vdsl makes the difference: materialize versioned (retention = 400 days)",
        f"It ran as one query of Spark: {rows:,} rows in {seconds:.0f} s, and {run.seconds - seconds:.0f} s for Spark "
        "to start and stop.",
        "You can kill it at any time: the same `vsc run` continues where it was, and reads nothing twice.",
    ]
    return "\n".join(["What you have seen", *(f"* {fact}" for fact in seen), "", *NEXT])


if __name__ == "__main__":
    sys.exit(main())
