"""A checkpoint from before there were clocks: it goes on by records, until an upgrade gives it the input's clock."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade
from vsc.testing import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = """
topology shop (clock = 'input');
table prices (sku string, price int, at bigint) from files (path = '${in}/prices', format = 'json')
key sku timestamp at materialize versioned (retention = 1 hour);
stream lines (id int, sku string, country string, at bigint) from files (path = '${in}/lines', format = 'json')
key id timestamp at;
stream priced = left join lines with prices on sku grace 6 ms select country, price;
table totals = aggregate priced group by country window tumbling (size = 10 ms, grace = 1 ms) emit final
select count(*) as n, sum(price) as total;
sink totals to files (path = '${out}', format = 'parquet');
"""
PRICES = [{"sku": sku, "price": price, "at": 0} for price, sku in enumerate("abcd")]
LINES = [
    {"id": at, "sku": "abcd"[at % 4 if at % 20 < 12 else 0], "country": "xy"[at % 2], "at": at} for at in range(80)
]


def test_the_clock_changes_with_an_upgrade_alone(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    by_input = compiled(TEXT)
    by_records = replace(by_input, clock="records")
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    old, new = tmp_path / "old", tmp_path / "new"

    def run(plan: Any, checkpoint: Path, first: int, after: int, **more: Any) -> None:
        write_json(tmp_path / f"in/lines/{first}.json", LINES[first:after], first)
        run_once(plan, spark, checkpoint, variables=variables, **more)

    write_json(tmp_path / "in/prices/0.json", PRICES, 0)
    run(by_records, old, 0, 8, partitions=3)
    assert "clock" not in json.loads((old / "vsc/plan.json").read_text())
    with caplog.at_level(logging.WARNING):
        run(replace(by_input, clock_implied=True), old, 8, 12)  # as of a topology that does not say its clock
    assert [m for m in caplog.messages if "topology shop (clock = 'records');" in m]
    with pytest.raises(CheckpointError, match="topology shop: limits clock was 'records', is 'input'"):
        run_once(by_input, spark, old, variables=variables)

    upgrade(prepare(Upgrade(by_input, str(old), str(new), variables, 4)), spark, lambda line: None)
    assert json.loads((new / "vsc/plan.json").read_text())["clock"] == "input"
    run(by_input, new, 12, 80)
    with TopologyTestDriver(by_input) as driver:
        for row in PRICES:
            driver.pipe("prices", row)
        for row in LINES:
            driver.pipe("lines", row)
        expected = {
            (r.key["country"], r.key["window_start"]): (r.value["n"], r.value["total"])
            for r in driver.read("totals")
            if r.value
        }
        assert driver.metrics()["dropped_records"] == {}
    rows = parquet_rows(tmp_path / "out")
    assert {(row["country"], row["window_start"]): (row["n"], row["total"]) for row in rows} == expected
    assert len(rows) == len(expected) == 14
