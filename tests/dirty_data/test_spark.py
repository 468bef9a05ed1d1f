"""Dirty files on Spark: `tests/dirty_data/in` gives what its scenarios expect, in any time zone of the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import parquet_rows, run_once
from vsc.compiler import compile_topology
from vsc.runtime.metrics import Dropped, Group
from vsc.scenario import Scenario, load

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).resolve().parent
PATH = FOLDER / "dirty_data.scenario.yaml"
TOMORROW = 1_782_993_600_000
"""The time of the last good rate."""


@pytest.mark.parametrize("scenario", load(str(PATH), PATH.read_text()).scenarios, ids=lambda scenario: scenario.name)
def test_a_scenario_of_dirty_files(spark: Any, tmp_path: Path, scenario: Scenario) -> None:
    text = scenario.topology.read_text()
    plan = compile_topology(text, path=str(scenario.topology))
    variables = {"in": str(FOLDER / "in"), "out": str(tmp_path)}
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        (report,) = run_once(plan, spark, tmp_path / "ck", variables=variables, now=scenario.now)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    (expectation,) = (found for step in scenario.steps for found in step.expect)
    expected = [record.fields for record in expectation.records or ()]
    wanted = [{**one["key"], **(one["value"] or {}), "_timestamp": one["timestamp"]} for one in expected]
    seen = parquet_rows(tmp_path / expectation.node)
    assert sorted(seen, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])
    ahead = 1 if scenario.now is None or scenario.now > TOMORROW else 2
    assert report.metrics.get("rates", Group.DROPPED_RECORDS, Dropped.IN_THE_FUTURE) == ahead
