from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tools.compiled_zips import add_bytecode


def test_modules_are_imported_from_bytecode(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("some/__init__.py", "")
        made.writestr("some/module.py", "def f():\n    raise ValueError\n")
        made.writestr("some/data.txt", "kept")
    for _ in range(2):
        add_bytecode(archive)
    with zipfile.ZipFile(archive) as found:
        assert sorted(found.namelist()) == [
            "some/__init__.py", "some/__init__.pyc", "some/data.txt", "some/module.py", "some/module.pyc",
        ]  # fmt: skip
        assert found.read("some/data.txt") == b"kept"
    code = "import some.module as m; print(m.__cached__); m.f()"
    ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(archive)}, capture_output=True, text=True)
    assert ran.stdout == f"{archive}/some/module.pyc\n"
    assert f'File "{archive}/some/module.py", line 2, in f\n' in ran.stderr
