"""Writes the hashes of all pinned versions into ``hashes``: ``python -m tools.hashes``, with uv on the PATH.

`constraints.txt` pins them, the Makefile pins Spark. pip takes hashes only in a file of requirements, and then refuses
an editable install; so set-up installs these files first, and vsc after them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

__all__ = ["FOLDER", "pinned", "sparks"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "hashes"
_OLDEST = "3.11.7"
"""The Python for which versions are looked up: the hashes are those of all files of a version."""


def pinned() -> list[str]:
    """What `constraints.txt` pins, as ``name==version``."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sparks() -> list[str]:
    """The versions of pyspark in the Makefile."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.findall(r"^PYSPARK(?:_NEWEST|_OLDEST)? := (\S+)$", text, re.MULTILINE)


def main() -> None:
    """Writes the files."""
    FOLDER.mkdir(exist_ok=True)
    wanted = {"dependencies.txt": pinned(), **{f"pyspark-{one}.txt": [f"pyspark=={one}"] for one in sparks()}}
    for name, requirements in wanted.items():
        command = ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-annotate", "--no-header", "--generate-hashes"]
        found = subprocess.run(
            [*command, "--python-version", _OLDEST, "-"], input="\n".join(requirements), capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        (FOLDER / name).write_text(found.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
