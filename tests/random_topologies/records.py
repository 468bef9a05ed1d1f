"""Random records for a random topology: few nasty keys, nulls, tombstones, out of order, late, some of them bad.

A history is a list of epochs, each the rows that it reads, from which source partition, at which offset: what
`tests.oracle.epochs.order_epoch` puts in D12's order. Values are Python's, as `TopologyTestDriver.pipe` takes them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.oracle.epochs import EpochRow
from tests.random_topologies.shapes import Generated, SourceShape

__all__ = ["History", "RecordSizes", "Values", "history"]

History = list[list[EpochRow]]

STRINGS = ("a", "b", "ab", "", "a|", "a\0", "ß\u2028")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RecordSizes:
    """How much of what: ranges, ends included. `bad`: how many rows in a hundred have no key or no event time.

    `hot`: the share of the records that have the first key; `steps`: what event time goes on by.
    """

    epochs: tuple[int, int] = (2, 5)
    parts: tuple[int, int] = (0, 2)
    rows: tuple[int, int] = (0, 10)
    keys: int = 3
    bad: int = 5
    hot: float = 0
    steps: tuple[int, ...] = (0, 0, 1, 1, 2, 5)


def history(rng: random.Random, topology: Generated, sizes: RecordSizes | None = None) -> History:
    """A history of all sources; time goes on from epoch to epoch, unevenly."""
    sizes = sizes or RecordSizes()
    values = Values(rng, rng.sample(STRINGS, min(sizes.keys, len(STRINGS))), sizes.bad, sizes.hot)
    clock = rng.randint(0, 30)
    epochs = []
    for _ in range(rng.randint(*sizes.epochs)):
        epoch: list[EpochRow] = []
        for source in topology.sources:
            for part in rng.sample(range(100), rng.randint(*sizes.parts)):
                now = clock
                for offset in range(rng.randint(*sizes.rows)):
                    now += rng.choice(sizes.steps)
                    row, time = values.row(source, now)
                    epoch.append(EpochRow(source.name, f"f{part:02}", offset, row, time))
        epochs.append(epoch)
        clock += rng.choice((0, 5, 12, 40))
    return epochs


@dataclass(frozen=True)
class Values:
    """Random values from a pool of few; `bad`: how many rows in a hundred have no key or no event time."""

    rng: random.Random
    strings: list[str]
    bad: int
    hot: float = 0

    def row(self, source: SourceShape, now: int) -> tuple[dict[str, Any], int | None]:
        """A row, and its event time; None where it has no usable one or cannot be taken at all."""
        rng = self.rng
        late = rng.choice((0, 0, 0, 1, 3, 8, 25, 70))
        at: int | None = max(0, now - late)
        row = {name: self.value(type_, name in source.key) for name, type_ in source.columns}
        if source.tombstones:
            row["gone"] = rng.choice((True, None, *([False] * 4)))
        usable = True
        if rng.randint(1, 100) <= self.bad:
            usable = False
            wrong = rng.choice(("null", "negative", *source.key))
            if wrong in ("null", "negative"):
                at = None if wrong == "null" else -1
            else:
                row[wrong] = None
        row["at"] = at
        return row, at if usable else None

    def value(self, type_: str, key: bool) -> Any:
        """A value; null now and then, but not in a key."""
        rng = self.rng
        if not key and rng.random() < 0.12:
            return None
        if key and self.hot:
            return self._key(type_)
        match type_:
            case "bigint":
                return rng.randint(0, 2) if key else rng.choice((-1, 0, 1, 2, 3, 4, 1000))
            case "string":
                return rng.choice(self.strings)
            case "boolean":
                return rng.random() < 0.5
            case "decimal(9,2)":
                return Decimal(rng.choice(("0.00", "1.50", "-0.05", "2.55", "9999999.99")))
            case "double":
                return rng.choice((0.0, -0.0, 0.1, 1.5, -2.25, 1e300))
            case "timestamp":
                return EPOCH + timedelta(milliseconds=rng.randint(0, 100), microseconds=rng.choice((0, 7)))
            case "array<string>":
                return [rng.choice((*self.strings, None)) for _ in range(rng.randint(0, 3))]
            case _:
                return self._key(type_)

    def _key(self, type_: str) -> Any:
        """A value of a key column: of many there are few records, of one many."""
        rng = self.rng
        number = 0 if rng.random() < self.hot else rng.randint(0, 40)
        text = self.strings[number % len(self.strings)]
        match type_:
            case "bigint":
                return number - 1
            case "string":
                return text if number < len(self.strings) else f"{text}{number}"
            case "boolean":
                return number % 2 == 0
            case "decimal(9,2)":
                return Decimal(number - 1) / 4
            case "timestamp":
                return EPOCH + timedelta(milliseconds=number, microseconds=7 * (number % 2))
            case _:
                return {"f": None if number == 3 else number - 1, "g": text}
