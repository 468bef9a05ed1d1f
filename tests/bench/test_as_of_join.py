"""The libraries beside which vsc's join is measured do the same join, and peers that do not agree are refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from bench.comparisons.stream_table_join import rows
from bench.measuring import Measured
from bench.running import check
from bench.workload import Workload

FEW = Workload(table=400, batch=200, warm_up=1, measured=1)
MEASURED = Measured(200, 2.0, (100,), 4.0, (400, 30))


@pytest.mark.parametrize("peer", ["duckdb_asof", "polars_asof"])
def test_a_library_finds_the_version_of_the_rows_own_time(peer: str, tmp_path: Path) -> None:
    rows.write(tmp_path, FEW)
    stream, table = (pd.read_parquet(tmp_path / name) for name in ("payments", "rates"))
    found = sum(
        bool(((table.currency == row.currency) & (table.valid_at <= row.paid_at)).any()) for row in stream.itertuples()
    )
    assert 0 < found < 400
    measured = import_module(f"bench.comparisons.stream_table_join.{peer}").measure(tmp_path, FEW)
    assert (measured.rows, measured.result) == (400, (400, found))
    assert measured.seconds > 0


def test_peers_with_different_results_are_refused() -> None:
    uncounted, other = replace(MEASURED, result=None), replace(MEASURED, result=(400, 31))
    check({"vsc": MEASURED, "spark": uncounted, "duckdb": MEASURED})
    with pytest.raises(ValueError, match=r"different results .*'vsc': \(400, 30\), 'duckdb': \(400, 31\)"):
        check({"vsc": MEASURED, "spark": uncounted, "duckdb": other})


@pytest.mark.parametrize("measured", [MEASURED, replace(MEASURED, result=None)])
def test_what_is_measured_survives_its_process(measured: Measured) -> None:
    assert Measured.load(json.dumps(asdict(measured))) == measured
