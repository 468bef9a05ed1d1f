"""The command ``vsc`` for other programs to find."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def on_path(folder: Path) -> dict[str, str]:
    """An environment in which ``vsc`` is this checkout; the command is made beside `folder`."""
    commands = folder.parent / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "vsc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vsc "$@"\n')
    (commands / "vsc").chmod(0o755)
    return {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
