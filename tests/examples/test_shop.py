"""The shop beside DuckDB's results from the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.shop import make_data, right
from servers.postgres import PostgresServer


def test_its_data_are_those_of_the_program_that_makes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_data, "DATA", tmp_path)
    make_data.main()
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    data = right.HERE / "data"
    assert made == {path.relative_to(data): path.read_bytes() for path in data.rglob("*.*")}


@pytest.mark.spark
@pytest.mark.slow
def test_files_and_database_equal_duckdbs_results(root: Path, tmp_path: Path, server: PostgresServer) -> None:
    command = [sys.executable, "-m", "vsc", "run", "examples/shop/topology.vdsl", "--drain", "--progress", "none"]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--master", "local[2]"]
    command += ["--var", "data=examples/shop/data", "--var", f"out={tmp_path}", "--var", f"url={server.url()}"]
    login = {"PGUSER": "vsc", "PGPASSWORD": server.password}
    done = subprocess.run(command, cwd=root, env=os.environ | login, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert right.differences(tmp_path) == {"placed": (2997, 0), "revenue": (209, 0), "alerts": (273, 0)}
    database = right.results()
    expected = database.execute("select country, day, lines, revenue from revenue order by all").fetchall()
    assert server.query("select country, day, lines, revenue from revenue order by 1, 2") == expected
    [kind] = server.query("select data_type from information_schema.columns where column_name = 'day'")
    assert kind == ("date",)
