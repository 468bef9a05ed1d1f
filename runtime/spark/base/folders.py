"""Folders of this machine, whether it is the driver's or an executor's. Imports only Python's own modules."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["spark_local", "unwritable"]


def unwritable(path: str) -> str | None:
    """Why the folder cannot be created or written to; None if it can."""
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is not a folder"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} is on a read-only file system"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"there is no permission to write to {place}"
    return None


def spark_local() -> Path:
    """The first of the executor's local folders, which Spark tells its Python workers; else the temporary folder."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())
