"""The packaging tests ask an interpreter from outside: the same tests judge a checkout and an installed wheel.

``VSC_PYTHON`` is the interpreter to ask (default: the one that runs the tests), ``VSC_DIST`` a folder with the built
wheel and sdist. Commands run in a folder of their own, so that a checkout in the working directory cannot stand in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Vsc = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def python() -> str:
    return os.environ.get("VSC_PYTHON") or sys.executable


@pytest.fixture
def ask(python: str, tmp_path: Path) -> Vsc:
    """Runs the interpreter with some arguments, away from the checkout."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [python, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def dist() -> Path:
    folder = os.environ.get("VSC_DIST")
    if not folder:
        pytest.skip("needs a built wheel and sdist (VSC_DIST)")
    return Path(folder)
