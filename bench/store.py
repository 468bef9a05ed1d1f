"""The versioned store against raw rocksdict, in the same run: ``python bench/store.py [--versions N] [--keys N]``.

Raw is a plain loop of ``db[key] = value`` and ``db[key]``, with one row for each version: an upper bound that keeps no
order, no history and no stream time. Prints a table in Markdown; the numbers are rows a second, best of three rounds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rocksdict import Options, Rdict, WriteBatch

from vsc.runtime.state import InMemoryVersionedStore, RocksDBVersionedStore
from vsc.runtime.state.kv import OverlayKV, RocksKV, apply_changelog
from vsc.runtime.state.versioned import VersionedStore

SPAN = 1_000_000_000
ROUNDS = 3

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Data:
    """Versions to write and look-ups to make. `index` are indices into `names`."""

    names: list[bytes]
    index: Ints
    keys: list[bytes]
    values: list[bytes]
    times: Ints
    asked_keys: list[bytes]
    as_of: Ints

    @property
    def rows(self) -> int:
        return len(self.keys)


def make_data(versions: int, keys: int) -> Data:
    """Values of about 30 bytes at random times, nearly in order; look-ups at random times of random keys."""
    random = np.random.default_rng(7)
    names = [b"key-%08d" % at for at in range(keys)]
    index = random.integers(0, keys, versions)
    times = np.sort(random.integers(0, SPAN, versions)) + random.integers(-50_000, 50_000, versions)
    asked = random.integers(0, keys, versions)
    return Data(
        names,
        index,
        [names[at] for at in index.tolist()],
        [b"value %024d" % at for at in range(versions)],
        np.maximum(times, 0),
        [names[at] for at in asked.tolist()],
        random.integers(0, SPAN, versions),
    )


class Table:
    """The rates by name. The best round counts."""

    def __init__(self) -> None:
        self.rates: dict[str, float] = {}

    def time(self, name: str, rows: int, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        rate = rows / (time.perf_counter() - start)
        self.rates[name] = max(rate, self.rates.get(name, 0.0))

    def lines(self, versions: int, keys: int) -> list[str]:
        """A Markdown table with its caption."""
        put, get = self.rates["raw rocksdict: put"], self.rates["raw rocksdict: get"]
        lines = [
            f"{versions:,} versions of {keys:,} keys, values of 30 bytes; rows a second, best of {ROUNDS} rounds",
            "",
            "| operation | rows/s | x raw put | x raw get |",
            "|---|---:|---:|---:|",
        ]
        for name, rate in self.rates.items():
            writes = "put" in name or "changelog" in name
            ratio = f"{rate / put:.2f} |" if writes else f"| {rate / get:.2f}"
            lines.append(f"| {name} | {rate:,.0f} | {ratio} |")
        return lines


def batches(rows: int, size: int) -> list[slice]:
    """Cut `rows` into batches of `size`."""
    return [slice(start, start + size) for start in range(0, rows, size)]


def bench_raw(table: Table, data: Data, folder: Path) -> None:
    """One row for each version, written and read in plain loops."""
    db = Rdict(str(folder / "raw"), Options(raw_mode=True))
    rows = [key + moment.to_bytes(8, "big") for key, moment in zip(data.keys, data.times.tolist(), strict=True)]

    def put() -> None:
        for key, value in zip(rows, data.values, strict=True):
            db[key] = value

    def put_batch() -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in zip(rows, data.values, strict=True):
            batch.put(key, value)
        db.write(batch)

    def get() -> None:
        for key in rows:
            db[key]

    table.time("raw rocksdict: put", data.rows, put)
    table.time("raw rocksdict: put, one batch", data.rows, put_batch)
    table.time("raw rocksdict: get", data.rows, get)
    table.time(
        "raw rocksdict: get, lists of 10,000", data.rows, lambda: [db[rows[s]] for s in batches(len(rows), 10_000)]
    )
    db.close()


def bench_store(table: Table, name: str, store: VersionedStore, data: Data, size: int) -> None:
    """Loads in batches of `size`, then reads."""

    def put_many() -> None:
        for s in batches(data.rows, size):
            store.put_many(data.keys[s], data.values[s], data.times[s])

    values = pa.array(data.values, pa.binary())
    table.time(f"{name}: put_many, batches of {size:,}", data.rows, put_many)
    if name != "RocksDB":
        return
    table.time(
        f"{name}: put_columns again (all replaced)",
        data.rows,
        lambda: store.put_columns(data.names, data.index, values, data.times),
    )
    table.time(f"{name}: get_many as of", data.rows, lambda: store.get_many(data.asked_keys, data.as_of))
    everything = np.zeros(len(data.names), np.int64), np.full(len(data.names), SPAN, np.int64)
    table.time(f"{name}: versions_many, all", data.rows, lambda: store.versions_many(data.names, *everything))
    few = data.rows // 20
    one = list(zip(data.keys[:few], data.values[:few], data.times[:few].tolist(), strict=True))
    looked = list(zip(data.asked_keys[:few], data.as_of[:few].tolist(), strict=True))
    table.time(f"{name}: put, one by one", few, lambda: [store.put(*row) for row in one])
    table.time(f"{name}: get as of, one by one", few, lambda: [store.get(*row) for row in looked])


def bench_hot(table: Table, data: Data, folder: Path, size: int) -> None:
    """All versions under one key."""
    with RocksDBVersionedStore(folder / "hot", history_retention_ms=2 * SPAN) as store:

        def put_many() -> None:
            for s in batches(data.rows, size):
                store.put_many([b"hot"] * len(data.keys[s]), data.values[s], data.times[s])

        table.time(f"RocksDB, one hot key: put_many, batches of {size:,}", data.rows, put_many)
        few = data.rows // 20
        hot = [b"hot"] * data.rows
        table.time("RocksDB, one hot key: get_many", data.rows, lambda: store.get_many(hot, data.as_of))
        table.time(
            "RocksDB, one hot key: get as of, one by one",
            few,
            lambda: [store.get(b"hot", t) for t in data.as_of[:few].tolist()],
        )
        one = list(zip(data.values[:few], data.times[:few].tolist(), strict=True))
        table.time("RocksDB, one hot key: put one by one, late", few, lambda: [store.put(b"hot", *row) for row in one])


def bench_overlay(table: Table, data: Data, folder: Path) -> None:
    """What an epoch on Spark does: write to an overlay above a store, make the changelog, apply it."""
    with RocksKV(folder / "overlay", durable=False) as rocks:
        overlay = OverlayKV(rocks)
        values = pa.array(data.values, pa.binary())
        store = VersionedStore(overlay, b"", 2 * SPAN)
        table.time(
            "overlay: put_columns", data.rows, lambda: store.put_columns(data.names, data.index, values, data.times)
        )
        blobs: list[bytes] = []
        table.time("overlay: changelog", data.rows, lambda: blobs.append(overlay.changelog()))
        table.time("overlay: changelog applied (put)", data.rows, lambda: apply_changelog(rocks, blobs[0]))
        print(f"changelog: {len(blobs[0]):,} bytes")


def bench_open(folder: Path) -> None:
    """Opens and closes a folder that has data."""
    spent = []
    for _ in range(15):
        start = time.perf_counter()
        RocksKV(folder / "overlay", durable=False).close()
        spent.append(time.perf_counter() - start)
    print(f"open and close: {1e3 * sorted(spent)[len(spent) // 2]:.1f} ms")


def measure(versions: int, keys: int) -> Table:
    """All operations, in all rounds."""
    data = make_data(versions, keys)
    table = Table()
    for _ in range(ROUNDS):
        folder = Path(tempfile.mkdtemp(prefix="vsc-bench-"))
        try:
            bench_raw(table, data, folder)
            for size in (data.rows, 40_000, 4_000):
                with RocksDBVersionedStore(folder / f"store-{size}", history_retention_ms=2 * SPAN) as store:
                    bench_store(table, "RocksDB" if size == 40_000 else f"RocksDB, {size:,}", store, data, size)
            with InMemoryVersionedStore(history_retention_ms=2 * SPAN) as memory:
                bench_store(table, "memory", memory, data, 40_000)
            bench_hot(table, data, folder, 40_000)
            bench_overlay(table, data, folder)
            bench_open(folder)
        finally:
            shutil.rmtree(folder)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=10_000)
    arguments = parser.parse_args()
    table = measure(arguments.versions, arguments.keys)
    print("\n" + "\n".join(table.lines(arguments.versions, arguments.keys)))


if __name__ == "__main__":
    main()
