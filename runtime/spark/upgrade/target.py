"""The folder of the new checkpoint, until the upgrade has finished."""

from __future__ import annotations

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.hadoop import Files
from vsc.runtime.spark.identity import IDENTITY
from vsc.runtime.spark.lineage import ORIGIN, Origin
from vsc.runtime.spark.sealed import ReadableFiles

__all__ = ["SEEDING", "begin", "check_target"]

SEEDING = "vsc/seeding"
"""Where seeds are written before they are moved to the control source."""

_MADE = ("sources", "vsc/control", "vsc/sources", "vsc/inputs", "vsc/epochs", SEEDING, "vsc/plan.json")
"""What a killed upgrade may have left, beside its origin."""


def check_target(files: ReadableFiles) -> None:
    """CheckpointError for a folder in which a new checkpoint cannot be made. An unfinished upgrade is redone."""
    if files.exists(IDENTITY):
        raise CheckpointError(
            f"{files.root} is a checkpoint already",
            "give --checkpoint a new folder; or, if it was made by this upgrade, run it with `vsc run`",
        )
    found = [name for name in files.names() if not name.startswith(".") and name != "vsc"]
    if found and not files.exists(ORIGIN):
        raise CheckpointError(f"the folder {files.root} is not empty ({found[0]})", "give --checkpoint a new folder")


def begin(files: Files, origin: Origin) -> None:
    """Clears what an unfinished upgrade has left, and notes that one has begun. The caller holds the claim."""
    check_target(files)  # once more: another upgrade may have ended since
    if files.exists(ORIGIN):
        for name in _MADE:
            files.delete(name)
    files.write(ORIGIN, origin.dump())
