"""The join of two streams on Spark: across epochs, partitions and a restart, both keyed by the query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream orders (id string, item string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
stream parcels (number string, o string, at bigint)
from files (path = '${in}/parcels', format = 'json', 'maxFilesPerTrigger' = '1') key number timestamp at;
stream posted = rekey parcels by o;
stream sent = outer join orders with posted within 10 ms grace 5 ms select item, number;
sink sent to files (path = '${out}', format = 'parquet');
"""
ORDERS = [
    [("a", "tea", 100), ("b", "milk", 101), ("c", "oil", 104)],
    [("d", "jam", 112), ("a", "nut", 113), ("z", "end", 130)],
    [("e", "rum", 131), ("b", "rye", 118), ("z", "end", 400)],
]
PARCELS = [
    [("p1", "b", 99), ("p2", "a", 106)],
    [("p3", "a", 110), ("p4", "x", 112), ("p5", "c", 115)],
    [("p6", "d", 122), ("p7", "e", 141), ("p8", "y", 140)],
]


@pytest.mark.seam("a join of streams")
def test_pairs_and_unpaired_records_come_once_over_epochs_and_a_restart(spark: Any, tmp_path: Path) -> None:
    plan, counted = compiled(TOPOLOGY), Metrics()
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    for number, (orders, parcels) in enumerate(zip(ORDERS, PARCELS, strict=True)):
        told = [{"id": id, "item": item, "at": at} for id, item, at in orders]
        write_json(tmp_path / f"in/orders/{number}.json", told, number)
        told = [{"number": name, "o": o, "at": at} for name, o, at in parcels]
        write_json(tmp_path / f"in/parcels/{number}.json", told, number)
        if number:
            for report in run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=2):
                counted.merge(report.metrics)
    rows = [(row["id"], row["item"], row["number"]) for row in parquet_rows(tmp_path / "out")]
    expected = [
        ("a", "nut", "p2"), ("a", "nut", "p3"), ("a", "tea", "p2"), ("a", "tea", "p3"), ("b", "milk", "p1"),
        ("b", "rye", None), ("c", "oil", None), ("d", "jam", "p6"), ("d", "jam", None),
        ("e", "rum", "p7"), ("c", None, "p5"), ("x", None, "p4"), ("y", None, "p8"), ("z", "end", None),
    ]  # fmt: skip
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert counted.as_dict()["missed_lookups"] == {"sent": {"no_record": 7}}
