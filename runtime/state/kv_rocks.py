"""An ordered map in a RocksDB folder: the only module that uses rocksdict.

Guarantees: opening and closing cost a few milliseconds; a write batch is atomic; a folder that is in use, damaged or
not a folder raises a clear `StateError`.

What survives:

* `close` (also by ``with``): everything, durable or not.
* the process is killed: with ``durable=True`` every write that returned (they are in a log that the operating system
  holds); with ``durable=False`` the folder is as it was after some earlier write, a prefix of the writes in their
  order, often the state after the last `close`. Whoever uses that keeps the truth elsewhere (a changelog) and a stamp
  in the data that tells where the folder stands.
* the machine loses power: with either, some prefix of the writes. Nothing is synced to disk write by write.

Not for several processes: RocksDB locks the folder, and a second opening is refused.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DbClosedError,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    UniversalCompactOptions,
    WriteBatch,
    WriteOptions,
)

from vsc.runtime.errors import LocalStoreError, StateError

__all__ = ["RocksKV"]

_WRITE_BUFFER_BYTES = 32 << 20
_CACHE_BYTES = 32 << 20
_BLOOM_BITS = 10
_SORTED_RUNS = 8
"""How many files may span the whole key range before they are merged; every micro-batch's flush makes one."""
_IDLE_SECONDS = 0.05
"""How long `close` waits for a due compaction to begin: some due compactions have nothing to do."""

_SCRATCH = "scratch"
"""The folder of a store's scratch copy, within the store's own, so both are removed together."""

_OWN_FILES = ("LOCK", "LOG", "IDENTITY", "MANIFEST-", "OPTIONS-", "rocksdict-config.json")
"""What RocksDB may leave in a folder if it is killed while creating it."""

_NO_SPACE = ("No space left", "File too large", "Disk quota exceeded")


class RocksKV:
    """An `OrderedKV` in a RocksDB folder, which is created if missing. A context manager."""

    def __init__(self, path: str | Path, durable: bool = True) -> None:
        """Open the folder `path`. `durable`: writes survive a killed process (see the module's text).

        Raises `StateError` if the path is a file, holds something else, is damaged, or is already open.
        """
        self.path = str(path)
        _refuse_foreign(Path(path))
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            options = _options()
            # Again for the column family: otherwise rocksdict uses its original options, without filter and cache.
            self._db: Any = Rdict(self.path, options, {"default": options})
        except Exception as error:
            raise _opening_failed(self.path, error) from error
        self._closed = False
        self._durable = durable
        self._how = WriteOptions()
        self._how.disable_wal = not durable  # type: ignore[method-assign, assignment]  # a property in rocksdict itself
        self._scans: weakref.WeakSet[_Scan] = weakref.WeakSet()
        self._scratch: _Scratch | None = None
        shutil.rmtree(Path(path) / _SCRATCH, ignore_errors=True)  # of a process that was killed

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        try:
            found: bytes | None = self._db.get(key)
        except Exception as error:
            raise self._failed("read", error) from error
        return found

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for missing keys."""
        try:
            found: list[bytes | None] = self._db.get(keys if isinstance(keys, list) else list(keys))
        except Exception as error:
            raise self._failed("read", error) from error
        return found

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end``, as they are now; ends early if the map is closed."""
        options = _up_to(end)
        try:
            rows = self._db.items(backwards=reverse, from_key=end if reverse else start, read_opt=options)
        except Exception as error:
            raise self._failed("read", error) from error
        scan = _Scan(self, rows, options, start if reverse else None)
        self._scans.add(scan)
        return scan

    def between(self, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes]]:
        """All rows with ``start <= key < end``, ascending."""
        options = _up_to(end)
        try:
            return list(self._db.items(from_key=start, read_opt=options))
        except Exception as error:
            raise self._failed("read", error) from error

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        batch = WriteBatch(raw_mode=True)
        for start, end in delete_ranges:
            batch.delete_range(start, end)
        for key in deletes:
            batch.delete(key)
        put = batch.put
        for key, value in puts:
            put(key, value)
        try:
            self._db.write(batch, self._how)
        except Exception as error:
            raise self._failed("written", error) from error

    def scratch(self) -> RocksKV:
        """Return a store with the same rows in a folder within this one's, over hard links to its files.

        It takes milliseconds to make, and only needs space for what is written to it.
        """
        folder = Path(self.path) / _SCRATCH
        try:
            Checkpoint(self._db).create_checkpoint(str(folder))
        except Exception as error:
            raise self._failed("copied", error) from error
        self._scratch = _Scratch(folder, durable=False)
        return self._scratch

    def close(self) -> None:
        """Flush everything and release the folder. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        # An iterator keeps the folder locked, so open scans are ended first.
        for scan in list(self._scans):
            scan.end()
        try:
            if self._scratch is not None:
                self._scratch.close()
            self._finish()
            self._db.close()
        except Exception as error:
            raise self._failed("closed", error) from error

    def _finish(self) -> None:
        if not self._durable:
            self._db.flush()
            self._compact()

    def _compact(self) -> None:
        """Waits for the compactions that the flush made due: otherwise every close would abort them again."""
        idle_since = time.monotonic()
        while self._db.property_int_value("rocksdb.compaction-pending") or self._compacting():
            if self._compacting():
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > _IDLE_SECONDS:
                return
            time.sleep(0.001)

    def _compacting(self) -> bool:
        return bool(self._db.property_int_value("rocksdb.num-running-compactions"))

    def __enter__(self) -> RocksKV:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _failed(self, what: str, error: Exception) -> Exception:
        if isinstance(error, DbClosedError):
            return StateError(f"the store {self.path!r} is closed")
        if isinstance(error, TypeError):
            return error
        return _broken(self.path, what, error)


class _Scratch(RocksKV):
    """A scratch copy, removed when it is closed."""

    def close(self) -> None:
        """Release the folder and remove it."""
        with contextlib.suppress(StateError):  # nothing of the copy is needed, so a failure loses nothing
            super().close()
        shutil.rmtree(self.path, ignore_errors=True)

    def _finish(self) -> None:
        """Does nothing: nothing reads the copy again."""


class _Scan(Iterator[tuple[bytes, bytes]]):
    """The rows of one scan; holds RocksDB's iterator, which would keep the folder locked, only while it is needed."""

    def __init__(
        self, kv: RocksKV, rows: Iterator[tuple[bytes, bytes]], options: ReadOptions, start: bytes | None
    ) -> None:
        self._kv = kv
        self._rows: Iterator[tuple[bytes, bytes]] | None = rows
        self._options = options  # kept: see `_up_to`
        self._start = start  # rocksdict's `set_iterate_lower_bound` sets the upper one

    def __next__(self) -> tuple[bytes, bytes]:
        if self._rows is None:
            if self._kv._closed:
                raise StateError(f"the store {self._kv.path!r} is closed")
            raise StopIteration
        row = next(self._rows, None)
        if row is None or (self._start is not None and row[0] < self._start):
            self.end()
            raise StopIteration
        return row

    def end(self) -> None:
        """Release RocksDB's iterator."""
        self._rows = None


def _up_to(end: bytes | None) -> ReadOptions:
    """Options of a scan; its iterator points to the bound in there, but does not keep it."""
    options = ReadOptions()
    if end is not None:
        options.set_iterate_upper_bound(end)
    return options


@functools.cache
def _cache() -> Cache:
    """The process's only cache, so blocks of a folder's files are still cached when the folder is next opened."""
    return Cache(_CACHE_BYTES)


def _options() -> Options:
    options = Options(raw_mode=True)
    # Files of similar size are merged: few files to search, and no key is rewritten often, however large the state is.
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_level_zero_file_num_compaction_trigger(_SORTED_RUNS)
    merging = UniversalCompactOptions()
    merging.size_ratio = 100
    merging.max_size_amplification_percent = 100
    options.set_universal_compaction_options(merging)
    options.set_compression_type(DBCompressionType.lz4())
    # Opened and closed in every micro-batch: few threads, no statistics, small first files.
    options.set_max_background_jobs(2)
    options.set_max_file_opening_threads(1)
    options.set_keep_log_file_num(1)
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_manifest_preallocation_size(4096)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    table = BlockBasedOptions()
    table.set_bloom_filter(_BLOOM_BITS, False)
    table.set_block_cache(_cache())
    options.set_block_based_table_factory(table)
    return options


def _refuse_foreign(path: Path) -> None:
    """Refuse a path where RocksDB would create a new database in or over something else."""
    if path.exists() and not path.is_dir():
        raise StateError(f"the store {str(path)!r} is a file, not a folder", "give the path of a folder")
    if not path.is_dir() or (path / "CURRENT").exists():
        return
    for found in sorted(path.iterdir()):
        if not found.name.startswith(_OWN_FILES) and found.suffix not in (".dbtmp", ".log"):
            raise StateError(
                f"the folder {str(path)!r} is not a store: it holds {found.name!r} but no file CURRENT",
                "give an empty or a new folder, or restore the missing files",
            )


def _opening_failed(path: str, error: Exception) -> StateError:
    if "lock" in str(error).lower() and "No space" not in str(error):
        return StateError(f"the store {path!r} is in use: it is open already, here or in another process", "close it")
    return _broken(path, "opened", error)


def _broken(path: str, what: str, error: Exception) -> StateError:
    if any(sign in str(error) for sign in _NO_SPACE):
        return StateError(
            f"the store {path!r} cannot be {what}: no space is left on the device ({error})",
            "free some space there, or keep it elsewhere (vsc run --local-dir), then run again",
        )
    help = "the folder is damaged: remove it and restore it" if "Corruption" in str(error) else None
    return LocalStoreError(f"the store {path!r} cannot be {what}: {error}", help)
