"""One query at a time: a query claims its checkpoint, and a second one is refused.

Two ways, by what the file system can do (``docs/inside/state-protocol.md`` says what each guarantees):

* **A local folder**: the driver's JVM, which is what runs the query, holds a lock of the operating system on
  ``vsc/claim.lock``. It is released with the process, however that ends; nothing has to be cleaned up.
* **Any other file system** has no lock that dies with its holder. There, each driver writes a file of its own,
  ``vsc/claims/ID.json``, and rewrites it every `BEAT_SECONDS`. A newcomer sees the others' files. It removes one at
  once if its process ran on this machine and is gone; one of another machine if it was not rewritten for
  `LEASE_SECONDS`. Clocks are not compared: the watcher measures by its own. A driver whose file is gone, because it was
  taken for dead, finds that out at its next epoch and stops (`Claim.check`).

Not for what happens despite it (a driver that slept for longer than the lease): Spark's own log, which takes
an epoch once, the names of the state's blobs and the sinks' way of publishing keep that from doing harm.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.hadoop import Files, file_errors_as
from vsc.runtime.spark.base.java import java_class

__all__ = ["BEAT_SECONDS", "LEASE_SECONDS", "Claim", "check_unclaimed", "claim", "held_off", "released_after"]

BEAT_SECONDS = 5.0
"""How often a claim on a file system without locks is renewed."""

LEASE_SECONDS = 20.0
"""A claim that was not renewed for this long is taken for a dead driver's."""

STOPPING_SECONDS = 3.0
"""How long to wait for a lock whose driver is alive: it may be releasing it."""

ENDING_SECONDS = 0.3
"""How long to wait for it before Spark starts, which takes longer."""

DYING_SECONDS = 60.0
"""How long to wait for a lock whose driver was killed: its JVM notices and ends."""

_LOCK = "vsc/claim.lock"
_CLAIMS = "vsc/claims"
_POLL_SECONDS = 0.1
_WHOLE = (1 << 63) - 1
"""The bytes that a file may ever hold."""
_MOST = 10_000
"""The most characters of a claim that are read."""


def claim(spark: SparkSession, files: Files) -> Claim:
    """Claims the checkpoint at `files` for this driver. CheckpointError, with who has it, if another one does.

    Waits as long as it takes to know that a driver is dead: see the module.
    """
    with file_errors_as(
        CheckpointError, f"the checkpoint folder {files.root}", "give a folder that can be made and written"
    ):
        if files.is_local:
            return _LocalClaim.take(spark, files)
        return _BeatingClaim.take(files)


@contextlib.contextmanager
def held_off(spark: SparkSession, files: Files) -> Iterator[None]:
    """A context in which no query runs on the checkpoint at `files`, which stays as it is. Else a CheckpointError."""
    held = _LocalClaim.take(spark, files, reads=True) if files.is_local else _BeatingClaim.take(files)
    try:
        yield
    finally:
        held.release()


def check_unclaimed(folder: str, reads: bool = False) -> None:
    """CheckpointError, with who has it, for a local checkpoint that a query runs on. Needs no JVM, and claims nothing.

    `reads`: the checkpoint is only to be read. One whose driver was killed is left to `claim`, which waits for its JVM.
    """
    path, started = Path(folder) / _LOCK, time.monotonic()
    while _is_locked(path, reads):
        holder = _holder(path.read_text(errors="replace"))
        if _is_dead(holder):
            return
        if time.monotonic() - started > ENDING_SECONDS:
            raise _refused(folder, holder)
        time.sleep(_POLL_SECONDS)


def _is_locked(path: Path, reads: bool) -> bool:
    """Whether another process keeps the lock from being taken; False if that cannot be found out."""
    try:
        with path.open("rb" if reads else "r+b") as file:
            try:
                fcntl.lockf(file, (fcntl.LOCK_SH if reads else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError as error:
                return error.errno in (errno.EACCES, errno.EAGAIN)
    except OSError:  # not there yet, or not for this user
        pass
    return False


def _me() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": os.getpid(),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@cache
def _machine() -> str:
    """Tells apart the places in which process ids are unique, as far as the operating system allows: two containers may
    have the same name, and a machine may have been restarted."""
    found = []
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(found)


def _refused(root: str, holder: dict[str, Any]) -> CheckpointError:
    who = "by another query"
    if holder.keys() >= {"host", "pid", "since"}:
        who += f": process {holder['pid']} on {holder['host']}, since {holder['since']}"
    return CheckpointError(
        f"the checkpoint {root} is in use {who}", "stop that query first, or give this one its own checkpoint"
    )


def _is_dead(holder: dict[str, Any]) -> bool:
    """Whether the holder certainly ran on this machine and its process is gone."""
    pid = holder.get("pid")
    here = (socket.gethostname(), _machine())
    if (holder.get("host"), holder.get("machine")) != here or type(pid) is not int or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


def _holder(text: str) -> dict[str, Any]:
    """What a claim says about its holder; nothing if it cannot be read (it may just be being written)."""
    try:
        found = json.loads(text[:_MOST])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class _LocalClaim:
    """A lock that the JVM holds. `reads`: the checkpoint is only read, so the lock is one that other readers share.

    The lock of a POSIX file goes when its process closes *any* handle of that file, so the JVM must not open it twice:
    what this JVM holds stands in its system properties, too.
    """

    def __init__(self, spark: SparkSession, path: Path, reads: bool) -> None:
        self._properties = java_class(spark, "java.lang.System").getProperties()
        self._spark = spark
        self._path = path
        self._reads = reads
        self._key = f"vsc.claim:{path}"
        self._file: Any = None

    @classmethod
    def take(cls, spark: SparkSession, files: Files, reads: bool = False) -> _LocalClaim:
        """Locks; waits briefly for a holder that is ending. Says who has it, unless nothing is to be written."""
        path = Path(files.local(_LOCK))
        held = cls(spark, path, reads)
        if reads:
            if path.exists():  # else copied without it, or restored: no run uses it
                held._wait(files.root)
            return held
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise CheckpointError(f"{path} is a link, which vsc does not make", "remove it")
        held._wait(files.root)
        try:
            path.write_text(json.dumps(_me()) + "\n")
        except BaseException:  # a full disk
            held.release()
            raise
        return held

    def _wait(self, root: str) -> None:
        """Locks as soon as possible."""
        started = time.monotonic()
        while not self._locked():
            holder = _holder(self._path.read_text(errors="replace") if self._path.exists() else "")
            if time.monotonic() - started > (DYING_SECONDS if _is_dead(holder) else STOPPING_SECONDS):
                raise _refused(root, holder)
            time.sleep(_POLL_SECONDS)

    @property
    def stands(self) -> bool:
        """Whether it has not been released yet."""
        return self._file is not None

    def check(self) -> None:
        """Raises CheckpointError if the claim was lost to another query. A lock of the operating system is not lost."""

    def release(self) -> None:
        """Closes the file, which frees the lock. The file stays: removing it could take it from under a waiting one."""
        with contextlib.suppress(Exception):  # the JVM may be gone, and the lock with it
            if self._file is not None:
                self._file.close()
                self._file = None
                self._properties.remove(self._key)

    def _locked(self) -> bool:
        """Locks the file, if possible."""
        if self._properties.putIfAbsent(self._key, str(os.getpid())) is not None:
            return False
        file = java_class(self._spark, "java.io.RandomAccessFile")(str(self._path), "r" if self._reads else "rw")
        try:
            if file.getChannel().tryLock(0, _WHOLE, self._reads) is not None:
                self._file = file
                return True
        finally:
            if self._file is None:
                file.close()
                self._properties.remove(self._key)
        return False


class _BeatingClaim:
    """A file that is rewritten as long as its driver lives.

    A claimant writes its file first and then looks at the others', so of two that start at once at least one sees the
    other: a claim that is *running* wins over one that is *starting*; of two that start the smaller name.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._name = f"{_CLAIMS}/{uuid.uuid4().hex}.json"
        self._me = _me()
        self._beats = 0
        self._state = "starting"
        self._stop = threading.Event()
        self._lock = threading.Lock()

    @classmethod
    def take(cls, files: Files) -> _BeatingClaim:
        """Writes a claim, deals with the others', and begins to beat."""
        held = cls(files)
        files.make(_CLAIMS)
        held._write()
        threading.Thread(target=held._beat, name="vsc-claim", daemon=True).start()
        try:
            held._wait_for_others()
            held._state = "running"
            held._write()
        except BaseException:
            held.release()
            raise
        return held

    @property
    def stands(self) -> bool:
        """Whether it has not been released yet."""
        return not self._stop.is_set()

    def check(self) -> None:
        """Whether the claim still stands: a driver that takes this one for dead removes it, and runs."""
        if self._stop.is_set():
            return
        others = [_holder(text) for text in self._others().values()]
        if self._files.exists(self._name) and not any(other.get("state") == "running" for other in others):
            return
        raise CheckpointError(
            f"the checkpoint {self._files.root} was taken over by another query while this one did not answer",
            "stop one of them",
        )

    def release(self) -> None:
        """Ends the beating and removes the claim."""
        with self._lock:
            if self._stop.is_set():
                return
            self._stop.set()
            with contextlib.suppress(Exception):  # what is left is taken for dead in time
                self._files.delete(self._name)

    def _write(self) -> None:
        with self._lock:
            if not self._stop.is_set():
                self._beats += 1
                self._files.overwrite(self._name, json.dumps({**self._me, "state": self._state, "beat": self._beats}))

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with contextlib.suppress(Exception):  # a file system that does not answer: `check` tells, in the next epoch
                if self._files.exists(self._name):
                    self._write()

    def _wait_for_others(self) -> None:
        seen: dict[str, tuple[str, float]] = {}
        while others := self._others():
            now = time.monotonic()
            for name, text in others.items():
                holder = _holder(text)
                first, since = seen.setdefault(name, (text, now))
                if _is_dead(holder) or (first == text and now - since > LEASE_SECONDS):
                    self._files.delete(name)
                elif text and first != text and (holder.get("state") == "running" or name < self._name):
                    raise _refused(self._files.root, holder)
            time.sleep(_POLL_SECONDS)

    def _others(self) -> dict[str, str]:
        claims = {}
        for name in self._files.names(_CLAIMS):
            path = f"{_CLAIMS}/{name}"
            if path == self._name or not name.endswith(".json"):
                continue
            try:
                claims[path] = self._files.read(path, _MOST)
            except Exception:  # being written just now, or removed since it was listed
                if self._files.exists(path):
                    claims[path] = ""
        return claims


Claim = _LocalClaim | _BeatingClaim
"""What a running query holds."""


def released_after(query: StreamingQuery, held: Claim) -> None:
    """Releases `held` when `query` has ended, however that was; on a thread of its own."""

    def wait() -> None:
        with contextlib.suppress(Exception):  # the query's own failure is its caller's to see
            query.awaitTermination()
        held.release()

    threading.Thread(target=wait, name="vsc-release", daemon=True).start()
