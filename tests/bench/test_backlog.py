"""The figures of a backlog: with the start, and without it. The peer without Spark counts what it finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import backlog
from bench.backlog import DUCKDB, SPARK, VSC, Backlog, Spent
from bench.comparisons.stream_table_join import rows
from bench.workload import Workload


def _runs(*cpu: float) -> tuple[Spent, ...]:
    return tuple(Spent(one, 1.0, (1, 1)) for one in cpu)


def test_a_start_is_a_run_over_the_first_file_without_what_its_rows_take() -> None:
    found = Backlog(1_000_000, _runs(30.0, 20.0, 29.0), _runs(11.0, 12.0, 10.0))
    assert (found.cpu, found.start_cpu) == (29.0, 9.0)
    assert found.rate == 1_000_000 / 29
    assert found.rate_apart == 1_000_000 / 20


def test_the_section_has_each_round_and_how_vsc_compares() -> None:
    found = {
        VSC: Backlog(1_000_000, _runs(20.0, 25.0), _runs(2.5)),
        SPARK: Backlog(1_000_000, _runs(45.0), _runs(9.0)),
        DUCKDB: Backlog(1_000_000, _runs(1.0), _runs(0.1)),
    }
    lines = backlog.lines(found)
    assert lines[0] == "## A backlog by the defaults"
    assert f"| {VSC} | 44 k | 45 k | 0.3 | 1.00 | 1.00 | 50, 40 |" in lines
    assert f"| {SPARK} | 22 k | 25 k | 5.0 | 2.00 | 1.80 | 22 |" in lines
    [floor] = backlog.floors(found)
    assert floor.held and floor.ratio == 2.0


def test_duckdb_counts_its_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows.write(tmp_path, Workload(table=400, batch=200, warm_up=0, measured=2, files=1))
    backlog._in_duckdb(tmp_path, tmp_path)
    end = json.loads(capsys.readouterr().out)
    assert (end["event"], end["output_rows"]) == ("finished", 400)
    assert 0 < end["missed"] < 400
