"""The session that ``vsc run`` starts, in a process of its own: settings that Spark does not take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOPOLOGY = "topology t; stream r (value bigint, at timestamp) from rate (rows_per_second = 10); sink r to noop ();"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("spark.sql.shuffle.partitions=abc", "spark.sql.shuffle.partitions"),
        ("spark.sql.warehouse.dir=", None),  # cannot be set while a session runs
    ],
)
def test_a_setting_of_spark_sql(tmp_path: Path, setting: str, message: str | None) -> None:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    value = setting if message is not None else setting + str(tmp_path / "warehouse")
    command = [sys.executable, "-m", "vsc", "compile", str(tmp_path / "t.vdsl"), "--emit", "spark"]
    ended = subprocess.run(
        [*command, "--master", "local[1]", "--conf", value], capture_output=True, text=True, timeout=120
    )
    if message is None:
        assert ended.returncode == 0, ended.stderr
        assert "== Physical Plan ==" in ended.stdout
    else:
        assert ended.returncode == 1
        assert "Spark did not start" in ended.stderr and message in ended.stderr
        assert "Traceback" not in ended.stderr
