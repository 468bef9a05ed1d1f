"""Writes the hashes of all pinned versions into ``hashes``: ``python -m tools.hashes``, with uv on the PATH.

`constraints.txt` pins them, the Makefile pins Spark. pip takes hashes only in a file of requirements, and then refuses
an editable install; so set-up installs these files first, and vsc after them. What makes a release (`tools.release`) is
pinned by ``hashes/release.txt`` itself, whose versions are the newest.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["EXTRAS", "FOLDER", "RELEASE", "ROOT", "pinned", "sparks"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "hashes"
RELEASE = ("build", "cyclonedx-bom", "pip", "pypi-attestations", "setuptools", "twine")
"""What makes, describes, signs and publishes a release."""
EXTRAS = ("spark", "metrics", "watch", "lsp", "kafka", "registry", "postgres")
"""The extras for users, as `dev` has them."""
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
    _write(FOLDER / "dependencies.txt", pinned(), "--no-deps")
    for spark in sparks():
        _write(FOLDER / f"pyspark-{spark}.txt", [f"pyspark=={spark}"])  # and py4j, whose release is Spark's to choose
    _write(FOLDER / "release.txt", RELEASE, "--allow-unsafe")  # pip and setuptools are what uv calls unsafe


def _write(path: Path, requirements: Iterable[str], *options: str) -> None:
    command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--generate-hashes", *options]
    found = subprocess.run(
        [*command, "--python-version", _OLDEST, "-"], input="\n".join(requirements), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    path.write_text(found.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
