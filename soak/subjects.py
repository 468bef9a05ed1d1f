"""The subjects of a soak: a topology, its input as files for several epochs, and the key columns of its sinks.

In all subjects, the records of a key do not depend on how many files an epoch takes: a kill between two of Spark's log
writes may put the files of two epochs into one. The same seed makes the same input.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SUBJECTS", "Subject", "dated"]

ROOT = Path(__file__).resolve().parent.parent
_BASE_SECONDS = 1_700_000_000
_STEP_MS = 100
"""How much event time a file of `shop` covers."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A topology with what it needs. `sinks`: the key columns of each sink's rows.

    `write(folder, epochs, seed)` puts ``topology.vdsl`` and the input for `epochs` epochs into `folder`. The topology's
    variables are ``in`` and ``out``.
    """

    name: str
    sinks: Mapping[str, tuple[str, ...]]
    drain: bool
    write: Callable[[Path, int, int], None]


def _write_flights(folder: Path, epochs: int, seed: int) -> None:
    """The example's own data, with the flights split up in the order of landing. The first two epochs read only the
    weather."""
    example = ROOT / "examples" / "flights"
    text = (example / "topology.vdsl").read_text()
    one_file = "'${data}/flights.parquet', format = 'parquet'"
    if one_file not in text:
        raise ValueError("examples/flights/topology.vdsl no longer reads flights.parquet")
    text = text.replace(one_file, "'${in}/flights', format = 'parquet', 'maxFilesPerTrigger' = '1'")
    (folder / "topology.vdsl").write_text(text.replace("${data}/weather.csv", "${in}/weather.csv"))
    (folder / "in/flights").mkdir(parents=True)
    shutil.copy(example / "data" / "weather.csv", folder / "in/weather.csv")
    flights = pq.read_table(example / "data" / "flights.parquet")
    pieces = [flights.slice(0, 0)] * 2 + _pieces(flights, max(epochs - 2, 1))
    for number, piece in enumerate(pieces):
        path = folder / f"in/flights/{number:05}.parquet"
        pq.write_table(piece, path)
        dated(path, number)


def _write_departures(folder: Path, epochs: int, seed: int) -> None:
    """The flights with a single sink, which computes an epoch in its own job."""
    _write_flights(folder, epochs, seed)
    topology = folder / "topology.vdsl"
    lines = topology.read_text().splitlines(keepends=True)
    topology.write_text("".join(line for line in lines if not line.startswith("sink guesses ")))


def _pieces(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-table.num_rows // count)
    return [table.slice(i * size, size) for i in range(count)]


def _write_shop(folder: Path, epochs: int, seed: int) -> None:
    """Two files for each epoch."""
    shutil.copy(Path(__file__).parent / "shop.vdsl", folder / "topology.vdsl")
    (folder / "in/events").mkdir(parents=True)
    chance = random.Random(seed)
    for number in range(2 * epochs):
        path = folder / f"in/events/{number:05}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in _events(chance, number)))
        dated(path, number)


def _events(chance: random.Random, number: int) -> Iterable[dict[str, object]]:
    """About 60 events within the event time of file `number`, in any order. A file's times follow the last file's."""
    for row in range(chance.randint(40, 80)):
        kind = chance.choices(("order", "payment", "customer"), (5, 6, 2))[0]
        if kind == "customer":
            name, ref, gone = f"c{chance.randint(0, 11)}", "", 0.2
        elif kind == "order":
            name, ref, gone = f"o{chance.randint(0, 79)}", f"c{chance.randint(0, 11)}", 0.25
        else:
            name, ref, gone = f"p{number:05}-{row:03}", f"c{chance.randint(0, 11)}", 0.0
        amount = -1 if chance.random() < gone else chance.randint(0, 999)
        at = number * _STEP_MS + chance.randrange(_STEP_MS)
        yield {"kind": kind, "id": name, "ref": ref, "amount": amount, "at": at}


def dated(path: Path, number: int) -> None:
    """Sets a file's modification time: Spark reads files by age."""
    os.utime(path, (_BASE_SECONDS + number, _BASE_SECONDS + number))


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("flights", {"departures": ("origin",), "guesses": ("origin",)}, False, _write_flights),
        Subject("departures", {"departures": ("origin",)}, False, _write_departures),
        Subject(
            "shop",
            {
                "named": ("order_id",),
                "totals": ("customer",),
                "calm": ("customer",),
                "checked": ("customer",),
                "closed": ("customer",),
            },
            True,
            _write_shop,
        ),
    )
}
