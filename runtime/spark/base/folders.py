"""Folders of this machine, whether it is the driver's or an executor's. Imports only Python's own modules."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = [
    "NO_ROOM_HELP", "data_files", "free_bytes", "is_hidden", "may_read", "missing", "remove_empty", "spark_local",
    "unreadable", "unwritable",
]  # fmt: skip

NO_ROOM_HELP = "free some space there, make it writable, or give another folder"
_LEAST = 64 << 10
"""How many bytes have to fit into a folder that is written to: fewer than any run writes."""

_SAMPLE = 20
"""How many names of a folder are looked at."""


def unwritable(path: str) -> str | None:
    """Why the folder cannot be created or written to; None if it can. Makes a folder with a file in it to see it, and
    removes both."""
    place = _there(path)
    if not os.path.isdir(place):
        return f"{place} is not a folder"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} is on a read-only file system"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"there is no permission to write to {place}"
    try:
        made = tempfile.mkdtemp(prefix=".vsc-", dir=place)
    except OSError as error:
        return f"no folder can be made in {place}: {error.strerror}"
    try:
        Path(made, "file").write_bytes(bytes(_LEAST))
    except OSError as error:
        return f"no file of {_LEAST >> 10} KiB can be written to {place}: {error.strerror}"
    finally:
        shutil.rmtree(made)
    return None


def unreadable(path: str) -> str | None:
    """What this process may not read: the path itself, or one of the last names in the folder; None if there is none.
    What is not there counts for nothing."""
    if not may_read(path):
        return path
    names = sorted(os.listdir(path))[-_SAMPLE:] if os.path.isdir(path) else []
    inside = (os.path.join(path, name) for name in names if not is_hidden(name))
    return next((place for place in inside if not may_read(place)), None)


def may_read(path: str) -> bool:
    """Whether this process may read a file, or see what is in a folder, if it is there."""
    return os.access(path, os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK) or not os.path.exists(path)


def is_hidden(path: str) -> bool:
    """Whether Spark does not read a file with this relative path: a part of it begins with a dot, or with _ and is not
    a folder ``_day=2026-01-05``."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/"))


def data_files(path: str) -> Iterator[str]:
    """The relative paths of the files below a folder that are not hidden, as they are found."""
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not is_hidden(name))
        yield from (os.path.relpath(os.path.join(folder, one), path) for one in sorted(names) if not is_hidden(one))


def free_bytes(path: str) -> int:
    """How much room there is where the folder is, or would be made."""
    return shutil.disk_usage(_there(path)).free


def missing(path: str) -> list[str]:
    """The folder and those around it that do not exist, the innermost first."""
    place, found = os.path.abspath(path), []
    while not os.path.lexists(place):
        found.append(place)
        place = os.path.dirname(place)
    return found


def remove_empty(paths: list[str]) -> None:
    """Removes folders, the innermost first, as far as they are there and nothing is in them."""
    for path in paths:
        with suppress(OSError):
            os.rmdir(path)


def _there(path: str) -> str:
    """The folder itself, or the first of those around it that exists."""
    gone = missing(path)
    return os.path.dirname(gone[-1]) if gone else os.path.abspath(path)


def spark_local() -> Path:
    """The first of the executor's local folders, which Spark tells its Python workers; else the temporary folder."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())
