"""Which disk is full, and which folder cannot be written: what a failed run writes to, and what is free there. Driver
only.

Folders of executors on other machines cannot be looked at; the path that an error names is reported then.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vsc.plan.words import bytes_text
from vsc.runtime.errors import CheckpointError, SinkError, VscRuntimeError

if TYPE_CHECKING:
    from shutil import _ntuple_diskusage as DiskUsage

__all__ = ["CHECKPOINT", "WrittenFolder", "disk_of", "forbidden", "full_disk", "is_full"]

CHECKPOINT = "the checkpoint"
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "File too large")
"""What a full disk, a full quota and a file that may not grow are called, by the JVM and in Python."""

_FORBIDDEN = re.compile(r"Permission denied|Read-only file system|Operation not permitted|Mkdirs failed to create")
"""What a folder that may not be written is called, by the JVM and in Python."""

_PATH = re.compile(r"(?:file:)?(/[^\s'\":,;()]+)")
_HELP = "free some space there, then run again: nothing is lost"
_FORBIDDEN_HELP = "make it writable for the user that runs this, then run again: nothing is lost"
_HELP_ANYWHERE = "free some space (the checkpoint, the sinks, Spark's local folders, --local-dir), then run again"
_TIGHT = 0.02
"""Of a disk, the part that is free, below which it counts as full: a failed write gives some of it back."""


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder that a run writes to: what it is, and its path."""

    what: str
    path: str


def is_full(text: str) -> bool:
    """Whether an error's text says that something could not be written for lack of space."""
    return any(sign in text for sign in _NO_SPACE)


def full_disk(text: str, reason: str, places: Sequence[WrittenFolder]) -> SinkError:
    """The error for a `text` that `is_full`; `reason` is the line of it that says so."""
    quota = "the quota is used up" if "quota" in reason else "there is no space left"
    named = next(filter(None, (_named(line, places) for line in text.splitlines() if is_full(line))), None)
    full = (
        [named]
        if named
        else [place for place in places if (disk := disk_of(place.path)) and disk.free <= disk.total * _TIGHT]
    )
    if not full:
        free = "; ".join(f"{place.what} ({place.path}): {_free(place.path)}" for place in places)
        return SinkError(f"{quota} on a disk: {reason}" + (f" ({free})" if free else ""), _HELP_ANYWHERE)
    # Folders on one disk are reported together.
    told = " and ".join(dict.fromkeys(f"{place.path} ({place.what})" for place in full))
    return SinkError(f"{quota} in {told}: {_free(full[0].path)}", _HELP)


def forbidden(text: str, places: Sequence[WrittenFolder]) -> VscRuntimeError | None:
    """The error for a text that says that one of the places could not be written; None for any other text."""
    for line in text.splitlines():
        sign = _FORBIDDEN.search(line)
        place = _named(line, places) if sign else None
        if sign and place is not None:
            kind = CheckpointError if place.what == CHECKPOINT else SinkError
            why = "a folder in it cannot be made" if "Mkdirs" in sign.group() else sign.group()
            return kind(f"{place.path} ({place.what}) cannot be written: {why}", _FORBIDDEN_HELP)
    return None


def _named(line: str, places: Sequence[WrittenFolder]) -> WrittenFolder | None:
    """The place that holds a path of `line`, or that path itself where it is in none of them."""
    for match in _PATH.finditer(line):
        path = os.path.normpath(match.group(1))
        inside = [place for place in places if Path(path).is_relative_to(os.path.abspath(place.path))]
        if inside:
            return max(inside, key=lambda place: len(os.path.abspath(place.path)))
    return None


def disk_of(path: str) -> DiskUsage | None:
    """The disk of a path, or of the nearest folder above it that there is; None where that is unknown."""
    place = os.path.abspath(path)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        return shutil.disk_usage(place)
    except OSError:
        return None


def _free(path: str) -> str:
    disk = disk_of(path)
    if disk is None:
        return "its disk cannot be read"
    return f"{bytes_text(disk.free)} of {bytes_text(disk.total)} are free on its disk"
