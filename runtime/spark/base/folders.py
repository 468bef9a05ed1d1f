"""Folders of this machine, whether it is the driver's or an executor's. Imports only Python's own modules."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["data_files", "free_bytes", "is_hidden", "missing", "remove_empty", "spark_local", "unwritable"]


def unwritable(path: str) -> str | None:
    """Why the folder cannot be created or written to; None if it can. Makes a folder to see it, and removes it."""
    place = _there(path)
    if not os.path.isdir(place):
        return f"{place} is not a folder"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} is on a read-only file system"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"there is no permission to write to {place}"
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".vsc-", dir=place))
    except OSError as error:
        return f"no folder can be made in {place}: {error.strerror}"
    return None


def is_hidden(path: str) -> bool:
    """Whether Spark does not read a file with this relative path: a part of it begins with _ or a dot."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


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
