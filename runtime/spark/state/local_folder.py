"""Where an executor keeps the RocksDB folders of a query: never needed for recovery, so it may go at any time.

Guarantees: one process at a time has a partition's folder (a lock file, freed by the operating system when its process
dies); folders of earlier runs of the same checkpoint, or of one that it goes on from, are removed, never those of a
later one; a folder that is taken, or does not fit the manifest, costs a restore, never an error.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vsc.runtime.errors import LocalStoreError, StateError
from vsc.runtime.spark.base.folders import spark_local
from vsc.runtime.spark.state.protocol import Manifest, PartitionState
from vsc.runtime.state.kv import RocksKV

__all__ = ["LocalFolders", "new_run", "opened", "removed", "sweep"]


def new_run() -> str:
    """The id of a run: of two runs the later one has the greater id."""
    return f"{time.time_ns():016x}-{uuid.uuid4().hex[:8]}"


def removed(folder: Path) -> None:
    """Removes the folder and its contents, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


def _rocks(folder: Path) -> RocksKV:
    """A store without a write-ahead log: what a kill takes is in the changelogs."""
    return RocksKV(folder, durable=False)


@dataclass(frozen=True, slots=True)
class LocalFolders:
    """The local folders of one run. `root` None: Spark's own ones; `checkpoint` is its id, `run` of `new_run`;
    `ancestors` are the ids of the checkpoints that it goes on from."""

    root: str | None
    checkpoint: str
    run: str
    ancestors: tuple[str, ...] = ()

    @contextlib.contextmanager
    def partition(self, stage: int, partition: int) -> Iterator[Path]:
        """The folder for the RocksDB of that stage and partition, for this process alone until the context ends."""
        home = self.home()
        folder = home / f"{stage}-{partition}"
        with (home / f"{stage}-{partition}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Another attempt of the same task still runs on this executor: work beside it.
                folder = home / f"{stage}-{partition}-{uuid.uuid4().hex}"
                try:
                    yield folder
                finally:
                    removed(folder)
                return
            yield folder

    def home(self) -> Path:
        """The folder around them, made if it is not there; folders of earlier runs are removed before."""
        base = Path(self.root) if self.root is not None else spark_local()
        home = base / f"vsc-{self.checkpoint}-{self.run}"
        if not home.is_dir():
            for checkpoint in (*self.ancestors, self.checkpoint):
                sweep(base, checkpoint, self.run)
            try:
                home.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StateError(
                    f"the local folder {base} cannot be used: {error.strerror}",
                    "give --local-dir a folder that executors can make and write",
                ) from error
        return home


def sweep(base: Path, checkpoint: str, run: str) -> None:
    """Removes the folders that runs of `checkpoint` before `run` left under `base`.

    Not those of later ones: a task of a driver that is dead may still begin when the next run is at work.
    """
    for old in base.glob(f"vsc-{checkpoint}-*"):
        if old.name < f"vsc-{checkpoint}-{run}":
            removed(old)


@contextlib.contextmanager
def opened(
    folder: Path,
    manifest: Manifest,
    open_: Callable[[Path], RocksKV] = _rocks,
    remove: Callable[[Path], None] = removed,
) -> Iterator[RocksKV]:
    """The store in `folder`, closed afterwards; rebuilt when it is damaged or is not a prefix of the chain.

    `open_` opens or makes it: StateError when it is damaged.
    """
    base: RocksKV | None = None
    try:
        base = open_(folder)
        usable = PartitionState.fits(base, manifest)
    except StateError:
        usable = False
    if base is None or not usable:
        if base is not None:
            with contextlib.suppress(LocalStoreError):
                base.close()
        remove(folder)
        base = open_(folder)
    try:
        yield base
    finally:
        try:
            base.close()
        except LocalStoreError:
            remove(folder)  # the next call restores it
