"""The small examples on the test driver, fed with their own data in the order that one micro-batch has (D12)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from tests.examples.expected import CORRECTED, HELD, LARGE, PRICED, Row
from vsc.testing import TopologyTestDriver

Rows = list[dict[str, object]]


def test_payments(root: Path) -> None:
    data = root / "examples/payments/data"
    sources = {
        "rates": _timed(_json(data / "rates/rates.json"), "valid_at"),
        "payments": _timed(_json(data / "payments/payments.json"), "paid_at"),
    }
    with _driver(root, "payments") as driver:
        for source, row in _arrivals(sources):
            driver.pipe(source, row)
        assert sorted(_rows(driver, "priced"), key=lambda row: str(row["id"])) == PRICED
        assert _rows(driver, "large") == LARGE


def test_sensors(root: Path) -> None:
    data = root / "examples/sensors/data"
    sources = {
        "calibrations": _timed(_numbers(_csv(data / "calibrations.csv"), "gain", "bias"), "since"),
        "readings": _timed(_numbers(_csv(data / "readings.csv"), "raw"), "at"),
    }
    with _driver(root, "sensors") as driver:
        for source, row in _arrivals(sources):
            driver.pipe(source, row)
        assert sorted(_rows(driver, "corrected"), key=lambda row: (row["sensor"], row["at"])) == CORRECTED
        driver.drain()
        assert _rows(driver, "corrected") == [HELD]


def _driver(root: Path, example: str) -> TopologyTestDriver:
    return TopologyTestDriver(root / f"examples/{example}/topology.vdsl", variables={"data": "-", "out": "-"})


def _rows(driver: TopologyTestDriver, node: str) -> list[Row]:
    return [record.key | record.value for record in driver.read(node) if record.value is not None]


def _arrivals(sources: Mapping[str, list[tuple[datetime, Row]]]) -> Iterator[tuple[str, Row]]:
    """By the highest time so far in each source, tables first, then the order in the file: not vsc's own code."""
    arrivals = []
    for rank, (source, rows) in enumerate(sources.items()):
        clock = datetime.min
        for offset, (time, row) in enumerate(rows):
            clock = max(clock, time.replace(tzinfo=None))
            arrivals.append((clock, rank, offset, source, row))
    for *_, source, row in sorted(arrivals, key=lambda arrival: arrival[:3]):
        yield source, row


def _timed(rows: Rows, column: str) -> list[tuple[datetime, Row]]:
    times = [datetime.fromisoformat(str(row[column])) for row in rows]
    return [(time, row | {column: time}) for time, row in zip(times, rows, strict=True)]


def _json(path: Path) -> Rows:
    return [json.loads(line, parse_float=float) for line in path.read_text().splitlines()]


def _csv(path: Path) -> Rows:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _numbers(rows: Rows, *columns: str) -> Rows:
    return [row | {column: float(str(row[column])) for column in columns} for row in rows]
