"""The local folders that a run writes to: where a disk may be full, or a folder may not be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from vsc.runtime.spark.base.disks import CHECKPOINT, WrittenFolder
from vsc.runtime.spark.base.folders import missing, remove_empty
from vsc.runtime.spark.base.paths import is_local, local_path
from vsc.runtime.spark.connectors.registry import Ends

__all__ = ["results_of", "unless_refused", "written_folders"]


def results_of(ends: Ends, checkpoint: str | None) -> Iterator[WrittenFolder]:
    """The checkpoint, if it is known, and the folders of sinks, wherever they are."""
    if checkpoint is not None:
        yield WrittenFolder(CHECKPOINT, checkpoint)
    for sink in ends.sinks:
        path = sink.path()
        if path is not None:
            yield WrittenFolder(f"the sink of '{sink.sink.owner}'", path)


def written_folders(ends: Ends, checkpoint: str, local_dir: str | None) -> tuple[WrittenFolder, ...]:
    """The local folders that a run writes to on this machine."""
    found = list(results_of(ends, checkpoint))
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    found.append(WrittenFolder("--local-dir", local_dir) if local_dir else WrittenFolder("Spark's local folder", local))
    found.append(WrittenFolder("the temporary folder", tempfile.gettempdir()))
    return tuple(
        WrittenFolder(place.what, local_path(place.path)) for place in found if place.path and is_local(place.path)
    )


@contextmanager
def unless_refused(ends: Ends, checkpoint: str, default_local: bool) -> Iterator[None]:
    """For a start, which makes folders on the way: if it fails, it leaves none that is empty and was not there before.

    `default_local`: paths without a scheme are on this machine.
    """
    places = [place.path for place in results_of(ends, checkpoint) if is_local(place.path, default_local)]
    absent = {folder for path in places for folder in missing(local_path(path))}
    try:
        yield
    except BaseException:
        remove_empty(sorted(absent, key=len, reverse=True))
        raise
