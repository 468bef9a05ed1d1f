"""The versioned store as a user opens it: in a RocksDB folder of its own, or in memory.

Guarantees: both keep the one contract of `versioned.VersionedStore`. A folder that was closed, or whose process was
killed, opens with everything that was written to it. Not for sharing a folder between stores: a stage of a query puts
several `VersionedStore` over one map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_memory import MemoryKV
from vsc.runtime.state.kv_rocks import RocksKV
from vsc.runtime.state.versioned import VersionedStore, check_durations

__all__ = ["InMemoryVersionedStore", "RocksDBVersionedStore"]

_PREFIX = b""


class RocksDBVersionedStore(VersionedStore):
    """A versioned store in a RocksDB folder, made when it is not there. A context manager.

    `history_retention_ms`: how far back reads as of a time go. `segment_interval_ms`: how often what has passed the
    retention is dropped (None: Kafka's formula); it shows in no result, and may be another one at the next opening.
    `grace_ms`: how far behind stream time a write may be (None: as far as the retention).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        history_retention_ms: int,
        segment_interval_ms: int | None = None,
        grace_ms: int | None = None,
    ) -> None:
        """Open the folder. Raises ValueError for wrong durations, `StateError` for a folder that cannot be opened."""
        check_durations(history_retention_ms, segment_interval_ms, grace_ms)
        self._rocks = RocksKV(path)
        try:
            super().__init__(self._rocks, _PREFIX, history_retention_ms, segment_interval_ms, grace_ms)
        except Exception:
            self._rocks.close()
            raise

    def close(self) -> None:
        """Close the folder; the store raises `StateError` from then on. Closing twice is allowed."""
        self._rocks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InMemoryVersionedStore(VersionedStore):
    """A versioned store in memory; arguments and behaviour are those of `RocksDBVersionedStore`, without the path."""

    def __init__(
        self, *, history_retention_ms: int, segment_interval_ms: int | None = None, grace_ms: int | None = None
    ) -> None:
        """Raises ValueError for wrong durations."""
        self._closable = _ClosableKV()
        super().__init__(self._closable, _PREFIX, history_retention_ms, segment_interval_ms, grace_ms)

    def close(self) -> None:
        """Let go of everything; the store raises `StateError` from then on. Closing twice is allowed."""
        self._closable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ClosableKV:
    """A `MemoryKV` that can be closed, so that a store in memory behaves as one in a folder does."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: MemoryKV | None = MemoryKV()

    def get(self, key: bytes) -> bytes | None:
        return self._open().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._open().get_many(keys)

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self._open().scan(start, end, reverse)

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self._open().write(puts, deletes, delete_ranges)

    def close(self) -> None:
        self._rows = None

    def _open(self) -> MemoryKV:
        if self._rows is None:
            raise StateError("the store in memory is closed")
        return self._rows
