"""The data of the smaller examples on the test driver, in the order that one micro-batch has (D12), then drained."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.examples.expected import at
from tests.oracle.epochs import EpochRow, order_epoch
from vsc.plan.nodes import Node, Source
from vsc.testing import TopologyTestDriver, timestamp_column

Row = dict[str, Any]


def _hour(start: str, end: str) -> Row:
    return {"window_start": at(start), "window_end": at(end)}


def _alarm(start: str, end: str) -> Row:
    return {"card": "c2", **_hour(start, end), "suspicious": 3, "amount": Decimal("115.00")}


def _closed(shop: str, start: str, end: str, sales: int, revenue: str) -> Row:
    return {"shop": shop, **_hour(start, end), "sales": sales, "revenue": Decimal(revenue)}


def _billed(receipt: str, pieces: int, price: str, total: str, day: int, clock: str) -> Row:
    since = at(clock).replace(day=day)
    return {"product": "tea", "receipt_id": receipt, "pieces": pieces, "price": Decimal(price),
            "total": Decimal(total), "price_from": since}  # fmt: skip


NEWEST = {
    ("orders", "enriched"): [
        {"order_id": "o1", "customer": "Anna Ek", "title": "Standing desk", "quantity": 1, "total": Decimal("450.00")},
        {"order_id": "o2", "customer": "Ben Aydin", "title": "Desk lamp", "quantity": 3, "total": Decimal("105.00")},
    ],
    ("inventory", "available"): [
        {"sku": "chair", "delivered": 0, "reserved": 1, "available": -1},
        {"sku": "desk", "delivered": 2, "reserved": 0, "available": 2},
        {"sku": "lamp", "delivered": 15, "reserved": 4, "available": 11},
    ],
    ("inventory", "short"): [{"sku": "chair", "delivered": 0, "reserved": 1, "available": -1}],
    ("fraud", "alarms"): [_alarm("08:30", "09:30"), _alarm("09:00", "10:00")],
}
"""Of tables: the newest row of each key that has one."""

ALL = {
    ("revenue", "closed"): [
        _closed("north", "09:00", "10:00", 3, "20.00"),
        _closed("south", "09:00", "10:00", 1, "99.90"),
        _closed("north", "10:00", "11:00", 2, "27.00"),
        _closed("south", "10:00", "11:00", 1, "1.00"),
    ],
    ("prices", "billed"): [
        _billed("b1", 2, "4.00", "8.00", 1, "00:00"),
        _billed("b2", 1, "5.00", "5.00", 4, "00:00"),
        _billed("b3", 2, "3.50", "7.00", 2, "12:00"),
    ],
}
"""Every record, in order."""


@pytest.mark.parametrize(("example", "node"), NEWEST)
def test_the_newest_rows(root: Path, example: str, node: str) -> None:
    newest = {tuple(record.key.values()): record for record in run(root / "examples" / example, node)}
    rows = [record.key | record.value for _, record in sorted(newest.items()) if record.value is not None]
    assert rows == NEWEST[example, node]


@pytest.mark.parametrize(("example", "node"), ALL)
def test_all_records(root: Path, example: str, node: str) -> None:
    assert [record.key | record.value for record in run(root / "examples" / example, node)] == ALL[example, node]


def test_suspicious_payments(root: Path) -> None:
    records = run(root / "examples/fraud", "suspicious")
    assert [record.value["payment_id"] for record in records] == ["p4", "p5", "p6", "p7"]


def run(folder: Path, node: str) -> list[Any]:
    variables = {"data": str(folder / "data"), "out": "-"}
    with TopologyTestDriver(folder / "topology.vdsl", variables=variables) as driver:
        rows = [row for source in driver.plan.nodes for row in _rows(source, folder)]
        for row in order_epoch(driver.plan, rows):
            driver.pipe(row.source, row.row)
        driver.drain()
        return driver.read(node)


def _rows(node: Node, folder: Path) -> list[EpochRow]:
    source = node.operation
    if not isinstance(source, Source):
        return []
    column = timestamp_column(source)
    assert column is not None
    path = folder / "data" / Path(str(dict(source.connector.options)["path"])).name
    read = _json if path.suffix == ".json" else _csv
    types = {c.name: str(c.type).partition("(")[0] for c in source.columns}
    rows = [{name: READERS[types[name]](text) for name, text in row.items()} for row in read(path)]
    return [
        EpochRow(node.name, path.name, number, row, int(row[column].timestamp() * 1000))
        for number, row in enumerate(rows)
    ]


READERS: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "int": int,
    "boolean": lambda text: str(text).lower() == "true",
    "decimal": lambda text: Decimal(str(text)),
    "timestamp": datetime.fromisoformat,
}


def _json(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _csv(path: Path) -> list[Row]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))
