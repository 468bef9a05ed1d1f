"""The versioned store as a user opens it: in its own RocksDB folder, or in memory.

Guarantees: both keep the one contract of `versioned.VersionedStore`. A folder that was closed, or whose process was
killed, opens with everything that was written to it. Not for sharing a folder between stores: a stage of a query puts
several `VersionedStore` over one map.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self, cast

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_memory import MemoryKV
from vsc.runtime.state.kv_rocks import RocksKV
from vsc.runtime.state.versioned import VersionedStore, check_durations

__all__ = ["InMemoryVersionedStore", "RocksDBVersionedStore"]

_PREFIX = b""


class _Closable(VersionedStore):
    """A store that is closed at the end of a ``with``."""

    def close(self) -> None:
        """Release the store's map; the store raises `StateError` from then on. Closing twice is allowed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RocksDBVersionedStore(_Closable):
    """A versioned store in a RocksDB folder, which is created if missing. A context manager.

    `history_retention_ms`: how far back reads as of a time go. `segment_interval_ms`: how often what has passed the
    retention is dropped (None: Kafka's formula); it shows in no result, and may be another one at the next opening.
    `grace_ms`: how far behind stream time a write may be (None: the retention).
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


class InMemoryVersionedStore(_Closable):
    """A versioned store in memory; arguments and behaviour are those of `RocksDBVersionedStore`, without the path."""

    def __init__(
        self, *, history_retention_ms: int, segment_interval_ms: int | None = None, grace_ms: int | None = None
    ) -> None:
        """Raises ValueError for wrong durations."""
        super().__init__(MemoryKV(), _PREFIX, history_retention_ms, segment_interval_ms, grace_ms)

    def close(self) -> None:
        """Release everything; the store raises `StateError` from then on. Closing twice is allowed."""
        self._kv = cast(OrderedKV, _Closed())


class _Closed:
    """Stands for a closed map in memory."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StateError("the store in memory is closed")
