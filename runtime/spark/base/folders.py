"""Folders of this machine, looked at before a run starts."""

from __future__ import annotations

import os

__all__ = ["unwritable"]


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
