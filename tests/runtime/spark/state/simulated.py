"""What the state protocol stands on, simulated: Spark's state store, local disks, and processes that die at any step.

An `Attempt` is one call in a thread of its own, which only moves on command, one step at a time: a step is
whatever changes something outside of the call's memory. So a test may stop it between any two steps, let others
work, let it go on or kill it. Only one thread runs at any moment.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from vsc.runtime.errors import StateError
from vsc.runtime.spark.state.local_folder import LocalFolders, opened
from vsc.runtime.spark.state.protocol import Manifest, PartitionState, call_name
from vsc.runtime.state.kv import MemoryKV

__all__ = ["Attempt", "Disks", "Rows", "SparkState", "Writes", "rows_of"]

Rows = dict[bytes, bytes]


@dataclass(frozen=True)
class Writes:
    """What the operators write in one call: ranges that go, then keys (to a value, or None: they go)."""

    ranges: tuple[tuple[bytes, bytes], ...]
    keys: tuple[tuple[bytes, bytes | None], ...]

    def applied(self, rows: Rows) -> Rows:
        """The same on a dictionary."""
        found = {k: v for k, v in rows.items() if not any(a <= k < b for a, b in self.ranges)}
        for key, value in self.keys:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found


class Killed(BaseException):
    """The process is gone."""


@dataclass
class SparkState:
    """Spark's state of one key at one version: a `BlobStore` whose changes are steps of `attempt`."""

    text: str | None = None
    chunks: dict[tuple[str, int], bytes] = field(default_factory=dict)
    step: Callable[[], None] = lambda: None
    read: set[str] = field(default_factory=set)

    def transaction(self, step: Callable[[], None]) -> SparkState:
        """A copy to write to: it becomes a version if its attempt wins, else it is forgotten."""
        return SparkState(self.text, dict(self.chunks), step)

    def manifest(self) -> str | None:
        return self.text

    def set_manifest(self, text: str) -> None:
        self.step()
        self.text = text

    def get(self, blob: str, chunk: int) -> bytes | None:
        self.read.add(blob)
        return self.chunks.get((blob, chunk))

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        self.step()
        self.chunks[blob, chunk] = data

    def remove(self, blob: str, chunk: int) -> None:
        self.step()
        del self.chunks[blob, chunk]


class Disks:
    """All that is on local disks, and who has it open. A folder's real file says which content is its."""

    def __init__(self) -> None:
        self.contents: dict[str, Rows] = {}
        self.in_use: dict[str, Attempt] = {}

    def find(self, folder: Path) -> str | None:
        """The content of a folder, by name; None if there is none."""
        token = folder / "CURRENT"
        return token.read_text() if token.exists() else None

    def put(self, folder: Path, rows: Rows) -> str:
        """A folder with that content, whatever was there."""
        name = uuid.uuid4().hex
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "half-removed").unlink(missing_ok=True)
        (folder / "CURRENT").write_text(name)
        self.contents[name] = dict(rows)
        return name


@dataclass
class _AttemptsDisk:
    """`Disk` for one attempt."""

    disks: Disks
    attempt: Attempt

    def open(self, folder: Path) -> _Store:
        self.attempt.step()
        if (folder / "half-removed").exists():
            raise StateError("damaged")
        name = self.disks.find(folder)
        if name is None:
            name = self.disks.put(folder, {})
        assert name not in self.disks.in_use, "two attempts have one folder open"
        self.disks.in_use[name] = self.attempt
        return _Store(self.disks, name, self.attempt)

    def remove(self, folder: Path) -> None:
        self.attempt.step()
        if folder.exists():
            self.attempt.restored = True
            (folder / "half-removed").touch()
            self.attempt.step()
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()


class _Store(MemoryKV):
    """A RocksDB without a log: what was written since it was opened may be lost when its process dies, the newest
    first."""

    __slots__ = ("_attempt", "_disks", "_name", "_prefixes")

    def __init__(self, disks: Disks, name: str, attempt: Attempt) -> None:
        super().__init__()
        super().write(disks.contents[name].items())
        self._disks = disks
        self._name = name
        self._attempt = attempt
        self._prefixes = [disks.contents[name]]
        attempt.stores.append(self)

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self._attempt.step()
        super().write(puts, deletes, delete_ranges)
        self._prefixes.append(rows_of(self))

    def scratch(self) -> _Scratch:
        self._attempt.step()
        return _Scratch(self)

    def close(self) -> None:
        self._attempt.step()
        self.end(len(self._prefixes) - 1)

    def end(self, kept: int) -> None:
        """The store is closed, and the first `kept` writes are there."""
        if self._disks.in_use.get(self._name) is self._attempt:
            del self._disks.in_use[self._name]
            self._disks.contents[self._name] = dict(self._prefixes[min(kept, len(self._prefixes) - 1)])


class _Scratch(MemoryKV):
    """A scratch copy: each write to it is a step, and nothing of it outlives the attempt."""

    __slots__ = ("_attempt",)

    def __init__(self, store: _Store) -> None:
        super().__init__()
        super().write(rows_of(store).items())
        self._attempt = store._attempt

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self._attempt.step()
        super().write(puts, deletes, delete_ranges)


def rows_of(kv: MemoryKV) -> Rows:
    """All rows."""
    return dict(kv.scan(b"", None))


class Attempt:
    """One attempt at a call: from `version`, on an executor with these folders, writing `portions`.

    Before each portion but the first it spills what it has written. `expected` is what it has to find. `result` is what
    it would commit, once it has `ended` well; `folder` where it worked, with the rows that lay there when it began, and
    `restored`, whether it threw them away.
    """

    def __init__(
        self,
        disks: Disks,
        folders: LocalFolders,
        call: tuple[int, int],
        version: SparkState,
        portions: tuple[Writes, ...],
        expected: Rows,
    ) -> None:
        self.call = call
        self.folders = folders
        self.stores: list[_Store] = []
        self.name = call_name(call[0], 1, call[1])
        self.error: BaseException | None = None
        self.ended = False
        self.folder: Path | None = None
        self.found: Rows | None = None
        self.restored = False
        self._dead = False
        self._disks = disks
        self._disk = _AttemptsDisk(disks, self)
        self._portions = portions
        self._expected = expected
        self.result = version.transaction(self.step)
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def advance(self, steps: int | None) -> bool:
        """So many steps further, or to its end; whether it has ended."""
        while not self.ended and (steps is None or steps > 0):
            self._go.release()
            self._back.acquire()
            steps = None if steps is None else steps - 1
        if self.error is not None:
            raise self.error
        return self.ended

    def kill(self, kept: int) -> None:
        """Its process dies; of the writes to the store that it had open the first `kept` are on the disk."""
        for store in self.stores:
            store.end(kept)
        if not self.ended:
            self._dead = True
            self._go.release()
            self._thread.join()
            self.ended = True

    def step(self) -> None:
        """Called by the code under test before it changes anything."""
        if self._dead:
            raise Killed
        self._back.release()
        self._go.acquire()
        if self._dead:
            raise Killed

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._dead:
                self._call()
        except Killed:
            return
        except BaseException as error:
            self.error = error
        self.ended = True
        self._back.release()

    @contextlib.contextmanager
    def _entered(self, folder: Path) -> Iterator[None]:
        damaged = (folder / "half-removed").exists()
        name = None if damaged else self._disks.find(folder)
        self.folder = folder
        self.found = None if name is None else dict(self._disks.contents[name])
        yield

    def _call(self) -> None:
        """What a stage does (`LaterStageTask.run`), without the operators."""
        blobs = self.result
        manifest = Manifest.load(blobs.manifest())
        with (
            self.folders.partition(1, self.call[1]) as folder,
            self._entered(folder),
            opened(folder, manifest, cast(Any, self._disk.open), self._disk.remove) as base,
        ):
            state = PartitionState.open(blobs, base, manifest)
            expected = self._expected
            for number, portion in enumerate(self._portions):
                if number:
                    state.spill(self.name)
                found = dict(state.kv.scan(b"k", None))
                assert found == expected, f"found {found}, not {expected}"
                deletes = [key for key, value in portion.keys if value is None]
                puts = [(key, value) for key, value in portion.keys if value is not None]
                state.kv.write(puts, deletes, portion.ranges)
                expected = portion.applied(expected)
            state.commit(self.name)
