"""The project that ``vsc init`` makes, on Spark: the commands of its README."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.seam("vsc init")
def test_the_project_runs_as_its_readme_says(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "vsc", "init", "shop"], cwd=tmp_path, check=True)
    project = tmp_path / "shop"
    (command,) = [line for line in (project / "README.md").read_text().splitlines() if line.startswith("vsc run ")]
    for _ in range(2):  # nothing is read twice
        subprocess.run([sys.executable, "-m", *command.split()], cwd=project, check=True, timeout=240)
        rows = [
            json.loads(line) for path in project.glob("out/priced/*.json") for line in path.read_text().splitlines()
        ]
        assert sorted((row["order_id"], row.get("price"), row.get("total")) for row in rows) == [
            ("o1", 2.5, 10.0), ("o2", None, None), ("o3", 2.0, 20.0),
        ]  # fmt: skip
