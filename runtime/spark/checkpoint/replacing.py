"""A checkpoint that takes the place of the one within whose folder it was made: what `vsc store purge` ends with.

    vsc/purge/        the new checkpoint, while it is made; without what sources have taken, which stays where it is
    vsc/purge.json    {"id": that of the new one, "asked": what for, "read": folders of `vsc/sources` whose rows
                      have all been read}: written last. From then on the old one is removed

Guarantees: until `vsc/purge.json` is there, the old checkpoint is as it was; from then on nothing can be done with it
but to finish, which can be interrupted and repeated at any point. The old identity goes last, and the new one arrives
last, so it is always known to which of the two a file belongs. Only what Spark and vsc have made is removed, and what
cannot be removed is an error: no file of the old one is left beside the new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import damaged, read_checksummed, with_checksum
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.checkpoint import SPARK_NAMES
from vsc.runtime.spark.checkpoint.identity import IDENTITY, REPLACED

__all__ = ["MAKING", "decide", "finish"]

MAKING = "vsc/purge"
_STAYS = frozenset({"purge", "purge.json", "claim.lock", "claims", "sources", "identity.json"})
"""What is not the old checkpoint's alone, and its identity."""

Check = Callable[[], None]
"""Raises CheckpointError if the claim on the checkpoint was lost."""


def decide(files: Files, new: str, asked: str, read: Sequence[str]) -> None:
    """The checkpoint made in `MAKING`, whose id is `new`, is whole, and takes the place of that in `files`."""
    if files.is_local:
        os.sync()  # what the old one is removed for must outlive a power cut
    files.write(REPLACED, with_checksum({"id": new, "asked": asked, "read": list(read)}))
    for name in (REPLACED, "vsc"):
        files.sync(name)


def finish(files: Files, check: Check) -> str | None:
    """Finishes what was decided, if anything was: returns what was asked for. The caller has claimed the folder."""
    if not files.exists(REPLACED):
        return None
    note = _note(files)
    if files.exists(IDENTITY) and read_checksummed(files, IDENTITY).get("id") != note["id"]:
        _clear(files, note["read"], check)
    for name in sorted(files.files(MAKING), key=lambda name: name == IDENTITY):
        check()
        files.delete(name)  # a copy that an object store did not finish
        files.make(name.rpartition("/")[0])
        files.rename(f"{MAKING}/{name}", name)
    _remove(files, MAKING)
    _remove(files, REPLACED)
    return str(note["asked"])


def _note(files: Files) -> dict[str, Any]:
    note = read_checksummed(files, REPLACED)
    if not (isinstance(note.get("id"), str) and isinstance(note.get("read"), list)):
        raise damaged(files, REPLACED, "it is not what vsc store purge writes")
    return note


def _clear(files: Files, read: Sequence[str], check: Check) -> None:
    """Removes the old checkpoint, its identity last."""
    of_vsc = [f"vsc/{name}" for name in files.names("vsc") if name not in _STAYS]
    aside = [f"vsc/sources/{name}" for name in files.names("vsc/sources") if not name.isdigit()]  # of killed runs
    taken = [f"{folder}/{name}" for folder in read for name in files.sizes(folder) if not is_hidden(name)]
    for name in (*sorted(SPARK_NAMES), *of_vsc, *aside, *taken, IDENTITY):
        check()
        _remove(files, name)


def _remove(files: Files, name: str) -> None:
    files.delete(name)
    if files.exists(name):
        raise CheckpointError(
            f"{files.path(name)} cannot be removed", "see to it that it can, then repeat the command, which finishes it"
        )
