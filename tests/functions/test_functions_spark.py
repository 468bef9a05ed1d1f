"""`vsc run` with functions of the user's in a zip: rows, arrays, a failing record that is dropped and told of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.runtime.spark.support import write_json

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

TOPOLOGY = """
function risk (amount double, country string) returns double from 'scoring.rules:risk';
function in_cents (amount double) returns bigint from 'scoring.rules:in_cents' vectorized;
stream payments (id bigint, amount double, country string) from files (path = 'in', format = 'json') key id;
table rated = aggregate payments group by country select sum(risk(amount, country)) as risk, sum(in_cents(amount)) as n;
sink rated to files (path = 'out', format = 'json');
sink dropped to files (path = 'lost', format = 'json');
"""
MODULE = """
import pyarrow.compute as pc

def risk(amount, country):
    return amount * {"DE": 0.5, "FR": 2.0}[country]

def in_cents(amounts):
    return pc.cast(pc.multiply(amounts, 100), "int64")
"""


@pytest.mark.seam("own functions")
def test_functions_in_a_zip_are_called_by_workers(tmp_path: Path) -> None:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    (tmp_path / "scoring").mkdir()  # in the working directory, and so never imported
    (tmp_path / "scoring/__init__.py").write_text("raise RuntimeError('imported from the working directory')")
    (tmp_path / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "lib/scoring.zip", "w") as archive:
        archive.writestr("scoring/__init__.py", "")
        archive.writestr("scoring/rules.py", MODULE)
    rows = [(1, 10.0, "DE"), (2, 20.0, "FR"), (3, 30.0, "ES"), (4, 5.0, "FR")]
    write_json(tmp_path / "in/0.json", [{"id": i, "amount": a, "country": c} for i, a, c in rows], 0)
    vsc = str(Path(sys.executable).with_name("vsc"))
    command = [vsc, "run", "t.vdsl", "--checkpoint", "ck", "--master", "local[2]",
               "--partitions", "2", "--progress", "json", "--on-error", "drop", "--py-files", "lib/scoring.zip",
               "--functions", "scoring.rules"]  # fmt: skip
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    batch = next(event for line in done.stderr.splitlines() if (event := json.loads(line))["event"] == "batch")
    assert (batch["input_rows"], batch["dropped"]) == (4, 1)
    last = {row["country"]: row for row in _rows(tmp_path / "out")}
    assert {name: (row["risk"], row["n"]) for name, row in last.items()} == {"DE": (5.0, 1000), "FR": (50.0, 2500)}
    (lost,) = _rows(tmp_path / "lost")
    assert lost["message"] == (
        "sum(risk(amount, country)) failed: scoring.rules:risk raised KeyError: 'ES' (rules.py, line 5)"
    )


def _rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.rglob("*.json")) for line in file.read_text().splitlines()]
