"""The spark-submit command that ``vsc run --print-submit`` prints: it runs, and so does `vsc.start` under spark-submit,
which is what its main file calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = """topology t;
stream s (a int, b string) from files (path = '${in}', format = 'json') key a;
stream kept = filter s where a > ${least};
sink kept to files (path = '${out}', format = 'json');
"""


def test_the_printed_command_runs_the_topology(tmp_path: Path) -> None:
    """The plan is the one that was written: the topology is not there any more."""
    (tmp_path / "t.vdsl").write_text(TEXT)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/0.json").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n{"a": 3, "b": "z"}\n')
    (tmp_path / "s.conf").write_text("spark.ui.enabled false\nspark.driver.host 127.0.0.1\n")
    bin = Path(pyspark.__file__).with_name("bin")
    environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "out": "out"}
    words = "run t.vdsl --checkpoint ck --var in=in --var least=1 --partitions 2 --master local[2]"
    printed = subprocess.run(
        [sys.executable, "-m", "vsc", *words.split(), "--properties-file", "s.conf", "--print-submit", "job"],
        cwd=tmp_path, env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert printed.stderr == "the driver needs these variables in its environment: out\n"
    (tmp_path / "t.vdsl").unlink()
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        ["sh", "-c", printed.stdout], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted(rows, key=lambda row: row["a"]) == [{"a": 2, "b": "y"}, {"a": 3, "b": "z"}]
    assert json.loads((tmp_path / "ck/vsc/identity.json").read_text())["partitions"] == 2
