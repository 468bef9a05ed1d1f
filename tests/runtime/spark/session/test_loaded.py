"""What PySpark does around a task does not touch what a Python worker has loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

SCRIPT = """
import gc, importlib, json, sys, zipimport
from unittest.mock import patch
sys.path.insert(0, sys.argv[1])
import before.one
from vsc.runtime.spark.session.loaded import keep_loaded
if sys.argv[3] == "kept":
    keep_loaded()
sys.path.insert(0, sys.argv[2])
import after
with patch("zipimport._read_directory", wraps=zipimport._read_directory) as read:
    importlib.invalidate_caches()
    reads = read.call_count
import before.two
print(json.dumps([reads, gc.get_freeze_count() > 1000, before.one.x, before.two.x, after.x]))
"""


def _told(folder: Path, how: str) -> list[object]:
    for archive, names in (("a", ("before/__init__", "before/one", "before/two")), ("b", ("after",))):
        with ZipFile(folder / f"{archive}.zip", "w") as target:
            for name in names:
                target.writestr(f"{name}.py", f"x = {name!r}")
    command = [sys.executable, "-c", SCRIPT, str(folder / "a.zip"), str(folder / "b.zip"), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


def test_a_worker_does_not_read_its_archives_again(tmp_path: Path) -> None:
    assert _told(tmp_path, "kept") == [0, True, "before/one", "before/two", "after"]


def test_python_itself_would_read_them(tmp_path: Path) -> None:
    reads, frozen, *_ = _told(tmp_path, "")
    assert (reads, frozen) == (3, False)
