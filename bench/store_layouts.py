"""Measures three layouts of versions in RocksDB: ``python bench/store_layouts.py``.

The access pattern is the runtime's: versions come in batches, then a batch reads all versions of many keys. The first
two layouts only move bytes (no order within a row, no outcomes, nothing decoded), so their cost is a lower bound. The
third is the real store. Prints a table in Markdown; docs/inside/state-store.md has the numbers that decided.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from vsc.runtime.state.kv import RocksKV
from vsc.runtime.state.versioned import VersionedStore

VERSIONS, KEYS, SPAN, BATCH, SEGMENTS = 200_000, 10_000, 1_000_000_000, 40_000, 12
HOT_VERSIONS = 100_000


class Data:
    """Versions in nearly ascending order of time, as `bench/store.py` makes them."""

    def __init__(self, versions: int, keys: int) -> None:
        random = np.random.default_rng(7)
        self.names = [b"key-%08d" % at for at in range(keys)]
        self.index = random.integers(0, keys, versions)
        self.keys = [self.names[at] for at in self.index.tolist()]
        self.times = np.sort(random.integers(0, SPAN, versions))
        self.values = [b"value %024d" % at for at in range(versions)]

    def batches(self) -> list[slice]:
        return [slice(start, start + BATCH) for start in range(0, len(self.keys), BATCH)]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def row_a_version(kv: RocksKV, data: Data) -> tuple[float, float]:
    """key, time -> value; read by one scan for each key."""

    def put() -> None:
        for s in data.batches():
            rows = zip(data.keys[s], data.times[s].tolist(), data.values[s], strict=True)
            kv.write([(key + moment.to_bytes(8, "big"), value) for key, moment, value in rows])

    def get() -> None:
        for name in data.names:
            list(kv.scan(name, name + b"\xff" * 9))

    return seconds(put), seconds(get)


def blob_a_segment(kv: RocksKV, data: Data) -> tuple[float, float]:
    """segment, key -> all its versions; read by one get for each segment."""

    def put() -> None:
        for s in data.batches():
            added: dict[bytes, list[bytes]] = {}
            for key, moment, value in zip(data.keys[s], data.times[s].tolist(), data.values[s], strict=True):
                row = (moment * SEGMENTS // SPAN).to_bytes(8, "big") + key
                added.setdefault(row, []).append(moment.to_bytes(8, "big") + value)
            before = kv.get_many(list(added))
            kv.write(
                [(row, (old or b"") + b"".join(new)) for (row, new), old in zip(added.items(), before, strict=True)]
            )

    def get() -> None:
        kv.get_many([at.to_bytes(8, "big") + name for name in data.names for at in range(SEGMENTS)])

    return seconds(put), seconds(get)


def head_and_chunks(kv: RocksKV, data: Data) -> tuple[float, float]:
    """The versioned store: outcomes determined, everything decoded into columns."""
    store = VersionedStore(kv, b"", 2 * SPAN)
    values = pa.array(data.values, pa.binary())

    def put() -> None:
        for s in data.batches():
            store.put_columns(data.names, data.index[s], values[s], data.times[s])

    keys = len(data.names)
    everything = np.zeros(keys, np.int64), np.full(keys, SPAN, np.int64)
    return seconds(put), seconds(lambda: store.versions_many(data.names, *everything))


def main() -> None:
    layouts = {"one row a version": row_a_version, "one blob a segment and key": blob_a_segment}
    layouts["head and chunks (the store)"] = head_and_chunks
    print("| layout | data | write, s | read all, s |\n|---|---|---:|---:|")
    for label, data in (
        (f"{VERSIONS:,} versions of {KEYS:,} keys", Data(VERSIONS, KEYS)),
        (f"{HOT_VERSIONS:,} versions of 1 key", Data(HOT_VERSIONS, 1)),
    ):
        for name, layout in layouts.items():
            best = (float("inf"), float("inf"))
            for _ in range(3):
                folder = Path(tempfile.mkdtemp(prefix="vsc-bench-"))
                try:
                    with RocksKV(folder / "db") as kv:
                        put, get = layout(kv, data)
                        best = (min(best[0], put), min(best[1], get))
                finally:
                    shutil.rmtree(folder)
            print(f"| {name} | {label} | {best[0]:.2f} | {best[1]:.3f} |")


if __name__ == "__main__":
    main()
