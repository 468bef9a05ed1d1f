"""Where a checkpoint goes on from, and which one goes on from it: what `vsc upgrade` leaves in the two.

    NEW/vsc/upgrade.json     the *origin*: path, id and epoch of the old checkpoint; written first. A folder that has
                             it and no identity is an upgrade that was not finished
    OLD/vsc/successor.json   that the new query has written to a sink: from then on the old one must not go on. Whoever
                             removes the file insists

Works without Spark, but for telling the old checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import ReadableFiles, damaged, epochs_in, read_checksummed, with_checksum
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.identity import IDENTITY, check_whole, read_identity
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["ORIGIN", "SUCCESSOR", "Forerunner", "Origin", "check_alone", "check_current", "check_finished", "origin_of"]

ORIGIN = "vsc/upgrade.json"
SUCCESSOR = "vsc/successor.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """The checkpoint that another one goes on from, as it was after `epoch`."""

    path: str
    id: str
    epoch: int

    def dump(self) -> str:
        """The text of its file."""
        return with_checksum(asdict(self))


def origin_of(files: ReadableFiles) -> Origin | None:
    """What the checkpoint in `files` goes on from; None if it began by itself. CheckpointError if that is damaged."""
    if not files.exists(ORIGIN):
        return None
    try:
        return Origin(**read_checksummed(files, ORIGIN))
    except TypeError as error:
        raise damaged(files, ORIGIN, "it is not what vsc upgrade writes") from error


def check_finished(files: ReadableFiles) -> None:
    """Raises CheckpointError for a folder in which an upgrade or a purge has begun and not ended."""
    check_whole(files)
    if files.exists(ORIGIN) and not files.exists(IDENTITY):
        raise CheckpointError(
            f"the upgrade to the checkpoint {files.root} was not finished", "repeat that `vsc upgrade`, then run it"
        )


def check_current(files: ReadableFiles) -> None:
    """Raises CheckpointError for a checkpoint from which another query has gone on."""
    if not files.exists(SUCCESSOR):
        return
    path = read_checksummed(files, SUCCESSOR).get("path")
    raise CheckpointError(
        f"the checkpoint {files.root} was upgraded to {path}, and that has written to its sinks since",
        f"run the upgraded one; to run this one all the same, and write results twice, remove its {SUCCESSOR}",
    )


def check_alone(files: ReadableFiles, id: str, opened: Callable[[str], ReadableFiles]) -> None:
    """Raises CheckpointError if the results of the query in `files`, of checkpoint `id`, have been written by another.

    That is the query it goes on from, if that has gone on as well, or yet another that goes on from there. `opened`
    opens the folder of a checkpoint. If the old checkpoint is gone, nobody can go on from it.
    """
    origin = origin_of(files)
    if origin is None:
        return
    other, passed, replaced = None, None, False
    with contextlib.suppress(Py4JError, OSError):
        old = opened(origin.path)
        other = read_checksummed(old, SUCCESSOR) if old.exists(SUCCESSOR) else None
    with contextlib.suppress(Py4JError, OSError, CheckpointError):  # it may be half deleted
        if other is None and old.exists(IDENTITY):
            now = read_identity(old)
            passed = _written_after(old, origin.epoch) if now.id == origin.id else None
            replaced = now.id != id and origin.id in now.ancestors
    if other is not None and other.get("id") != id:
        raise CheckpointError(
            f"the checkpoint {origin.path} was upgraded to {other.get('path')} as well, which has written to its sinks "
            "since",
            f"run that one; to run this one all the same, and write results twice, remove {origin.path}/{SUCCESSOR}",
        )
    if passed is not None:
        raise CheckpointError(
            f"the checkpoint {origin.path} has gone on to epoch {passed}, which may have written to its sinks; "
            f"{files.root} was made of it as epoch {origin.epoch} had left it, and would write those results again",
            f"repeat `vsc upgrade` with --from {origin.path} and a new folder, and run that one",
        )
    if replaced:
        raise CheckpointError(
            f"keys were purged from the checkpoint {origin.path} after {files.root} was made of it with them",
            f"repeat `vsc upgrade` with --from {origin.path} and a new folder, and run that one",
        )


def _written_after(files: ReadableFiles, epoch: int) -> int | None:
    """The first later epoch that has written to a sink, as far as it is known; else None."""
    following = epoch + 1
    for later in sorted(number for number in epochs_in(files, "offsets") if number > epoch):
        report = f"vsc/epochs/{later}.json"
        if (
            later != following
            or not files.exists(report)
            or any(read_checksummed(files, report).get("written", {}).values())
        ):
            return later
        following += 1
    return None


class Forerunner:
    """The checkpoint that the running query of checkpoint `id`, in `files`, goes on from, if there is one."""

    def __init__(self, spark: SparkSession, files: Files, id: str) -> None:
        self._spark, self._files, self._id = spark, files, id
        self._origin = origin_of(files)

    def written(self, report: EpochReport) -> None:
        """Makes sure that it is not run again, once an epoch has had rows for a sink."""
        if self._origin is None or not any(report.written.values()):
            return
        with contextlib.suppress(Py4JError, CheckpointError, OSError):  # it may be gone, or only be readable
            old = Files(self._spark, self._origin.path)
            if not old.exists(SUCCESSOR) and read_identity(old).id == self._origin.id:
                old.write(SUCCESSOR, with_checksum({"path": self._files.root, "id": self._id}))
        self._origin = None

    @property
    def may_go_on(self) -> Origin | None:
        """The checkpoint before this one, if it was not told yet that this query has written."""
        if self._origin is not None:
            with contextlib.suppress(Py4JError, OSError):  # it may be gone
                return None if Files(self._spark, self._origin.path).exists(SUCCESSOR) else self._origin
        return None

    def check(self) -> None:
        """`check_alone`, of this query."""
        check_alone(self._files, self._id, lambda path: Files(self._spark, path))
