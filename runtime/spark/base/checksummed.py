"""The files of a checkpoint, read with Spark or without: which epochs it has kept, by the names of files, and the JSON
files that vsc writes: each ends with a member ``check``, the CRC-32 of those before it.

Guarantees: a file that is missing, cut, changed or not JSON is a CheckpointError that names it, however deep or long it
is; nothing in it runs. Not for what its members mean: whoever reads them checks that.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.hadoop import Files, first_line

__all__ = [
    "RESTORE",
    "LocalFiles",
    "ReadableFiles",
    "check_epoch",
    "checksum",
    "damaged",
    "epochs_in",
    "kept_epochs",
    "parsed",
    "read_checksummed",
    "read_json",
    "read_text",
    "verified",
    "with_checksum",
]

RESTORE = "restore it from a copy of the checkpoint's folder"
"""What to do about a file that nothing else can stand for."""


class LocalFiles:
    """The files of a local folder, read without Spark: the reading half of `hadoop.Files`."""

    def __init__(self, root: str) -> None:
        self.root = root

    def exists(self, name: str = "") -> bool:
        """Whether there is such a file or folder."""
        return (Path(self.root) / name).exists()

    def read(self, name: str) -> str:
        """The text of a file."""
        return (Path(self.root) / name).read_text(encoding="utf-8")

    def names(self, name: str = "") -> list[str]:
        """The names in a folder, sorted; none if it does not exist."""
        folder = Path(self.root) / name
        return sorted(os.listdir(folder)) if folder.is_dir() else []


ReadableFiles = LocalFiles | Files


def checksum(text: str) -> int:
    """The CRC-32 of a text in UTF-8."""
    return zlib.crc32(text.encode())


def with_checksum(data: dict[str, Any], indent: int | None = None) -> str:
    """The text of a JSON file that ends with the checksum of what stands before it."""
    return json.dumps({**data, "check": checksum(json.dumps(data))}, indent=indent) + "\n"


def read_checksummed(files: ReadableFiles, name: str) -> dict[str, Any]:
    """What `with_checksum` wrote."""
    return verified(files, name, read_json(files, name))


def verified(files: ReadableFiles, name: str, data: dict[str, Any]) -> dict[str, Any]:
    """What was in the file `name` that `with_checksum` wrote, without its checksum, which is taken out and compared."""
    check = data.pop("check", None)
    try:
        whole = check == checksum(json.dumps(data))
    except RecursionError:
        whole = False
    if not whole:
        raise damaged(files, name, "its checksum is wrong")
    return data


def read_json(files: ReadableFiles, name: str) -> dict[str, Any]:
    """The JSON object in a file, whatever its checksum is."""
    return parsed(files, name, read_text(files, name))


def parsed(files: ReadableFiles, name: str, text: str) -> dict[str, Any]:
    """The JSON object that the file `name` holds as `text`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(files, name, "it is truncated or not JSON") from error
    if not isinstance(found, dict):
        raise damaged(files, name, "it is not a JSON object")
    return found


def read_text(files: ReadableFiles, name: str) -> str:
    """The text of a file. Raises CheckpointError if it is missing, or if the file system finds it damaged."""
    try:
        return files.read(name)
    except (Py4JJavaError, OSError, UnicodeDecodeError) as error:
        if not files.exists(name):
            raise CheckpointError(f"{_path(files, name)} is missing", RESTORE) from error
        raise damaged(files, name, first_line(error)) from error


def damaged(files: ReadableFiles, name: str, why: str) -> CheckpointError:
    """The error for a file that is not what was written."""
    return CheckpointError(f"{_path(files, name)} is damaged: {why}", RESTORE)


def _path(files: ReadableFiles, name: str) -> str:
    return f"{files.root.rstrip('/')}/{name}"


def kept_epochs(files: ReadableFiles) -> list[int]:
    """The epochs whose state is kept with what goes on from it; ascending."""
    found = epochs_in(files, "offsets") & epochs_in(files, "commits")
    paces = epochs_in(files, "vsc/inputs")
    if paces:  # the next epoch follows from the pace and the report
        found &= paces & epochs_in(files, "vsc/epochs")
    return sorted(found)


def check_epoch(files: ReadableFiles, epoch: int) -> None:
    """Raises CheckpointError if the state after `epoch` is not kept."""
    kept = kept_epochs(files)
    if epoch not in kept:
        there = f"kept are the epochs {kept[0]} to {kept[-1]}" if kept else "no epoch is kept"
        raise CheckpointError(
            f"the checkpoint {files.root} cannot go back to epoch {epoch}: {there}",
            "give one of those" if kept else "run it without --back-to",
        )


def epochs_in(files: ReadableFiles, folder: str) -> set[int]:
    """The epochs after which files in a folder are called."""
    stems = (name.removesuffix(".json") for name in files.names(folder))
    return {int(stem) for stem in stems if stem.isdecimal() and len(stem) < 19}
