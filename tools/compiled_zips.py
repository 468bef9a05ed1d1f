"""``python -m tools.compiled_zips``: compiles the modules in Spark's archives of Python, for the tests.

Each Python process that Spark starts imports pyspark from an archive without bytecode, and compiles what it needs of it
again: two thirds of the CPU time of its imports. A query starts one for each stage. Only in the environment that is
made for the tests.
"""

from __future__ import annotations

import os
import py_compile
import tempfile
import zipfile
from pathlib import Path

import pyspark

__all__ = ["add_bytecode"]


def add_bytecode(archive: Path) -> None:
    """Puts compiled modules beside the modules of an archive; nothing if it has some."""
    with zipfile.ZipFile(archive) as source:
        names = source.namelist()
        if any(name.endswith(".pyc") for name in names):
            return
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            source.extractall(folder)
            made = Path(folder, "made.zip")
            with zipfile.ZipFile(made, "w") as target:
                for name in names:
                    path = Path(folder, name)
                    if path.is_file():
                        target.write(path, name)
                    if path.suffix == ".py":
                        target.write(_compiled(path, archive / name), f"{name}c")
            os.replace(made, archive)


def _compiled(path: Path, shown: Path) -> str:
    """The bytecode of a module, which tracebacks call `shown`; it is not compared with its source."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    made = py_compile.compile(str(path), f"{path}c", str(shown), doraise=True, invalidation_mode=unchecked)
    assert made is not None
    return made


if __name__ == "__main__":
    for found in sorted(Path(pyspark.__file__).parent.glob("python/lib/*.zip")):
        add_bytecode(found)
