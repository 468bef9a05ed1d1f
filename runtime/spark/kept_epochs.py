"""The epochs of a checkpoint to whose state a run can go back, by the names of its files. Works without Spark."""

from __future__ import annotations

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.sealed import ReadableFiles

__all__ = ["check_epoch", "epochs_in", "kept_epochs"]


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
