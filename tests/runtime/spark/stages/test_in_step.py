"""Inputs in step where input comes about: with a trigger interval, and with sources that have nothing new."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.spark import start
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.exchange.counters import EpochReport

pytestmark = [pytest.mark.spark, pytest.mark.release]

TOPOLOGY = """
stream orders (id bigint, currency string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at;
stream priced = left join orders with rates on currency select id, rate;
sink priced to files (path = '${out}', format = 'parquet');
"""


class Case:
    """The topology in a folder; orders stand at times that end in 5, rates at tens."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.plan = spark, folder, compiled(TOPOLOGY)
        self.reports: list[EpochReport] = []
        self.variables = {"in": str(folder / "in"), "out": str(folder / "out")}
        for name in ("orders", "rates"):
            (folder / "in" / name).mkdir(parents=True)

    def order(self, at: int) -> None:
        write_json(self.folder / f"in/orders/{at}.json", [{"id": at, "currency": "a", "at": at}], at)

    def rate(self, at: int) -> None:
        write_json(self.folder / f"in/rates/{at}.json", [{"currency": "a", "rate": at, "at": at}], at)

    def start(self, hook: Callable[[EpochReport], None] = lambda _: None, **arguments: Any) -> Any:
        def done(report: EpochReport) -> None:
            self.reports.append(report)
            hook(report)

        return start(
            self.plan, self.spark, checkpoint=str(self.folder / "ck"), variables=self.variables, partitions=2,
            trigger="20 ms", on_epoch=done, **arguments,
        )  # fmt: skip

    def rows(self) -> list[tuple[int, int | None]]:
        return sorted((row["id"], row["rate"]) for row in parquet_rows(self.folder / "out"))

    def waiting(self) -> list[int]:
        return [sum(size.waiting for size in report.state.values()) for report in self.reports]


def test_files_that_are_there_are_waited_for(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paces: list[dict[str, Any]] = []
    keep = Checkpoint.keep_pace

    def kept(checkpoint: Checkpoint, epoch: int, pace: str) -> None:
        paces.append(json.loads(pace))
        keep(checkpoint, epoch, pace)

    monkeypatch.setattr(Checkpoint, "keep_pace", kept)
    case = Case(spark, tmp_path)
    for at in (105, 115, 125):
        case.order(at)
    for at in (10, 20, 100):
        case.rate(at)

    def later(report: EpochReport) -> None:
        if report.epoch == 1:  # Spark will look for it when the three are read: nobody waits for it in the third epoch
            case.rate(120)  # ... but it is there already

    query = case.start(later)
    query.processAllAvailable()
    query.stop()
    assert case.rows() == [(105, 100), (115, 100), (125, 120)]
    waits = [{name: wait[0] for name, wait in pace["waits"].items()} for pace in paces]
    assert waits == [{"orders": -1, "rates": -1}, {"orders": 105, "rates": 10}, {"rates": 20}, {}]
    assert case.waiting() == [1, 3, 3, 0]  # by name, 100.json comes before 20.json
    told = [json.loads(p.json)["observedMetrics"] for p in query.recentProgress]
    assert [metrics["vsc"]["waiting_records"] for metrics in told if metrics] == [1, 3, 3, 0]
    assert paces[0]["waits"]["rates"][1].endswith("in/rates/100.json")
    assert paces[0]["waits"]["rates"][1].startswith("file:/")


def test_an_idle_source_is_waited_for_as_long_as_asked(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path)
    case.rate(10)
    # In one file: in two, a slow machine might take the second one when the time of waiting is over.
    write_json(tmp_path / "in/orders/5.json", [{"id": at, "currency": "a", "at": at} for at in (5, 15)], 5)
    query = case.start(max_idle="2 seconds")
    deadline = time.monotonic() + 200
    while not (case.reports and case.waiting()[-1] == 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()
    assert case.rows() == [(5, None), (15, 10)]
    assert case.waiting()[0] == 2
    assert case.reports[-1].read == {}  # an epoch only to release it


@pytest.mark.seam("sources in step")
def test_what_waits_when_a_run_ends_comes_out_in_the_next(spark: Any, tmp_path: Path) -> None:
    case = Case(spark, tmp_path)
    case.order(5)
    query = case.start(max_idle="1 hour")
    query.processAllAvailable()
    query.stop()
    assert case.waiting() == [1]
    assert case.rows() == []
    (report,) = run_once(case.plan, spark, tmp_path / "ck", variables=case.variables)
    assert report.read == {}
    assert case.rows() == [(5, None)]
