"""Corrected joins on Spark, one that waits, a chain of two, and sessions, over epochs, partitions and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
table rates (currency string, rate double, at bigint, gone boolean)
from files (path = '${in}/rates', format = 'json') key currency timestamp at delete when gone
materialize versioned (retention = 1 hour);
stream payments (id string, currency string, amount double, at bigint)
from files (path = '${in}/payments', format = 'json') key id timestamp at;
table priced =
  left join payments with rates on currency correct by id within 20 ms
  select payments.currency as c, amount * rates.rate as usd, revision() as revision;
table twice =
  join priced with rates on c correct within 20 ms
  select usd * rates.rate as usd, revision() as revision;
table waited =
  left join payments with rates on currency grace 5 ms correct by id within 20 ms
  select amount * rates.rate as usd, revision() as revision;
table sessions =
  aggregate priced group by c window session (gap = 12 ms) select count(*) as n, sum(usd) as usd;
stream plain = left join payments with rates on currency select rate;
sink priced to files (path = '${out}/priced', format = 'parquet');
sink waited to files (path = '${out}/waited', format = 'parquet');
sink twice to files (path = '${out}/twice', format = 'parquet');
sink sessions to files (path = '${out}/sessions', format = 'parquet');
sink plain to files (path = '${out}/plain', format = 'parquet');
"""
STEPS = [
    ("rates", "EUR", 1.0, 10, False), ("payments", "p1", 15), ("payments", "p2", 25), ("rates", "EUR", 2.0, 20, False),
    ("rates", "EUR", None, 12, True), ("payments", "p3", 36), ("rates", "EUR", 3.0, 14, False),
]  # fmt: skip


@pytest.mark.seam("a corrected join")
def test_late_versions_correct_and_are_counted_over_epochs_and_restarts(spark: Any, tmp_path: Path) -> None:
    plan, counted = compiled(TOPOLOGY), Metrics()
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    for name in ("rates", "payments"):
        (tmp_path / "in" / name).mkdir(parents=True)
    for number, (source, *values) in enumerate(STEPS):
        names = ("currency", "rate", "at", "gone") if source == "rates" else ("id", "at")
        row = dict(zip(names, values, strict=True))
        if source == "payments":
            row |= {"currency": "EUR", "amount": 100.0}
        write_json(tmp_path / f"in/{source}/{number}.json", [row], number)
        if number in (0, 2, 3, 5, 6):
            for report in run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=2):
                counted.merge(report.metrics)
    rows, waited, twice = (
        sorted(((r["id"], r["usd"], r["revision"], r["_change"], r["_timestamp"]) for r in found), key=str)
        for found in (parquet_rows(tmp_path / f"out/{name}") for name in ("priced", "waited", "twice"))
    )
    assert rows == sorted([
        ("p1", 100.0, 0, "upsert", 15), ("p2", 100.0, 0, "upsert", 25), ("p2", 200.0, 1, "upsert", 25),
        ("p1", None, 1, "upsert", 15), ("p3", 200.0, 0, "upsert", 36),
    ], key=str)  # fmt: skip
    assert waited == [  # the third one still waits
        ("p1", 100.0, 0, "upsert", 15), ("p1", None, 1, "upsert", 15), ("p2", 200.0, 0, "upsert", 25),
    ]  # fmt: skip
    assert twice == [  # a version is seen by the second join, then what it changes in the first one
        ("p1", 100.0, 0, "upsert", 15), ("p1", None, 2, "upsert", 15), ("p1", None, None, "delete", 15),
        ("p2", 100.0, 0, "upsert", 25), ("p2", 200.0, 1, "upsert", 25), ("p2", 400.0, 2, "upsert", 25),
        ("p3", 400.0, 0, "upsert", 36),
    ]  # fmt: skip
    sessions = [
        (*(round(r[at].timestamp() * 1000) for at in ("window_start", "window_end")), r["n"], r["usd"], r["_change"])
        for r in parquet_rows(tmp_path / "out/sessions")
    ]
    assert sorted(sessions, key=str) == sorted([
        (15, 15, 1, 100.0, "upsert"), (15, 15, None, None, "delete"), (15, 25, 2, 200.0, "upsert"),
        (15, 25, 2, 300.0, "upsert"), (15, 25, 2, 200.0, "upsert"), (15, 25, None, None, "delete"),
        (15, 36, 3, 400.0, "upsert"),
    ], key=str)  # fmt: skip
    found = counted.as_dict()
    assert found["late_versions"] == {"plain": 3, "priced": 1, "waited": 1}
    assert found["grace_needed"] == {"plain": 23, "priced": 23, "waited": 23}
