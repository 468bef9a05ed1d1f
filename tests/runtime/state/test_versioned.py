"""The versioned store: single cases that the contract names, what is dropped when, and its bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.runtime.state.invariants import check_invariants
from vsc.runtime.errors import StateError
from vsc.runtime.state import InMemoryVersionedStore, OutcomeKind, PutOutcome, RocksDBVersionedStore, VersionedRecord
from vsc.runtime.state.api import NEVER, Miss
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.versioned import VersionedStore, default_segment_interval
from vsc.runtime.state.versioned_columns import decode_blocks, encode_blocks
from vsc.runtime.state.versioned_key import CHUNK_VERSIONS, CHUNKS_AT_ONCE, HEAD_VERSIONS
from vsc.runtime.state.versioned_layout import Block, RowKeys, decode_block, encode_block


def rows_of(kv: MemoryKV, kind: bytes) -> int:
    start = b"\0\0" + kind
    return sum(1 for _ in kv.scan(start, b"\0\0" + bytes((kind[0] + 1,))))


@pytest.mark.parametrize(
    ("retention", "segment"),
    [
        (0, 2000),
        (6000, 2000),
        (30_000, 10_000),
        (80_000, 20_000),
        (300_000, 60_000),
        (1_200_000, 100_000),
        (3_600_000, 300_000),
        (7_200_000, 300_000),
        (86_400_000, 3_600_000),
    ],
)
def test_default_segment_interval_is_kafkas(retention: int, segment: int) -> None:
    assert default_segment_interval(retention) == segment


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"history_retention_ms": -1}, "history retention must not be negative, but is -1 ms"),
        ({"history_retention_ms": 2**63}, f"history retention must be at most {2**63 - 1} ms, but is {2**63} ms"),
        ({"history_retention_ms": 1, "grace_ms": 2**63}, f"grace must be at most {2**63 - 1} ms, but is {2**63} ms"),
        (
            {"history_retention_ms": 1, "segment_interval_ms": 0},
            "segment interval must be greater than zero, but is 0 ms",
        ),
        ({"history_retention_ms": 1, "grace_ms": -5}, "grace must not be negative, but is -5 ms"),
    ],
)
def test_wrong_durations_are_refused_before_a_folder_is_made(arguments: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        InMemoryVersionedStore(**arguments)
    with pytest.raises(ValueError, match=message):
        RocksDBVersionedStore(tmp_path / "db", **arguments)
    assert not (tmp_path / "db").exists()


def test_a_record_has_a_value() -> None:
    without: Any = None
    with pytest.raises(TypeError, match="a tombstone is not a record"):
        VersionedRecord(without, 1, None)


def test_outcomes_compare_as_text() -> None:
    with InMemoryVersionedStore(history_retention_ms=10) as store:
        assert store.observed_stream_time == -1
        assert store.put(b"k", b"v", 20).kind == "latest"
        assert store.put(b"k", b"w", 15) == PutOutcome(OutcomeKind.SUPERSEDED, 20)
        assert store.put(b"k", b"x", 9) == PutOutcome(OutcomeKind.EXPIRED)
        assert store.get(b"k", as_of=16) == VersionedRecord(b"w", 15, 20)
        assert store.observed_stream_time == 20


def test_a_tombstone_at_the_newest_time_is_remembered() -> None:
    store = VersionedStore(MemoryKV(), b"", 100)
    store.put(b"k", b"v", 10)
    store.put(b"k", None, 10)
    assert store.put(b"k", b"w", 5) == PutOutcome(OutcomeKind.SUPERSEDED, 10)
    assert store.get(b"k") is None
    assert store.get(b"k", as_of=7) == VersionedRecord(b"w", 5, 10)


def test_grace_and_retention_are_two_things() -> None:
    store = VersionedStore(MemoryKV(), b"", retention=10, grace=100)
    store.put(b"other", b"", 200)
    assert store.put(b"k", b"v", 100) == PutOutcome(OutcomeKind.LATEST)
    assert store.put(b"k", b"w", 150) == PutOutcome(OutcomeKind.LATEST)
    assert store.put(b"k", b"u", 120) == PutOutcome(OutcomeKind.SUPERSEDED, 150)
    assert store.lookup(b"k", 130) is Miss.OLDER_THAN_RETENTION
    assert store.lookup(b"k", 150) == VersionedRecord(b"w", 150, None)
    assert store.put(b"k", b"x", 99).kind is OutcomeKind.EXPIRED
    early = VersionedStore(MemoryKV(), b"", retention=100, grace=0)
    early.put(b"k", b"v", 10)
    early.put(b"k", b"w", 50)
    assert early.put(b"k", b"x", 49).kind is OutcomeKind.EXPIRED
    assert early.get(b"k", as_of=12) == VersionedRecord(b"v", 10, 50)


@pytest.mark.parametrize("timestamp", [-1, 2**63 - 1])
def test_times_outside_are_refused(timestamp: int) -> None:
    store = VersionedStore(MemoryKV(), b"", 10)
    with pytest.raises(ValueError, match=f"must be from 0 to .*{timestamp}"):
        store.put(b"k", b"v", timestamp)
    with pytest.raises(ValueError, match=f"must be from 0 to .*{timestamp}"):
        store.put_many([b"k", b"k"], [b"", b""], np.array([5, timestamp], np.int64))
    assert store.observed_stream_time == -1


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="1 keys, 2 values and 1 timestamps do not go together"):
        VersionedStore(MemoryKV(), b"", 10).put_many([b"k"], [b"", b""], np.array([5], np.int64))


def test_what_is_closed_says_so(tmp_path: Path) -> None:
    for store in (
        InMemoryVersionedStore(history_retention_ms=1),
        RocksDBVersionedStore(tmp_path / "db", history_retention_ms=1),
    ):
        store.put(b"k", b"v", 1)
        store.close()
        store.close()
        with pytest.raises(StateError, match="is closed"):
            store.get(b"k")
        with pytest.raises(StateError, match="is closed"):
            store.put(b"k", b"v", 1)


def test_a_folder_opens_with_all_that_was_written(tmp_path: Path) -> None:
    with RocksDBVersionedStore(tmp_path / "db", history_retention_ms=100) as store:
        store.put(b"k", b"v", 10)
        store.put(b"k", None, 40)
    with RocksDBVersionedStore(tmp_path / "db", history_retention_ms=100, segment_interval_ms=7) as store:
        assert store.observed_stream_time == 40
        assert list(store.versions(b"k")) == [VersionedRecord(b"v", 10, 40)]
    with pytest.raises(StateError, match="written with a history retention of 100 ms"):
        RocksDBVersionedStore(tmp_path / "db", history_retention_ms=200)
    with pytest.raises(StateError, match="a grace of 100 ms, and is opened with 100 ms and 5 ms"):
        RocksDBVersionedStore(tmp_path / "db", history_retention_ms=100, grace_ms=5)


def test_a_killed_process_loses_no_write(tmp_path: Path) -> None:
    script = """
import os, sys
from vsc.runtime.state import RocksDBVersionedStore
store = RocksDBVersionedStore(sys.argv[1], history_retention_ms=100)
store.put(b"k", b"v", 10)
store.put(b"k", b"w", 20)
os._exit(9)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "db")], check=False)
    assert done.returncode == 9
    with RocksDBVersionedStore(tmp_path / "db", history_retention_ms=100) as store:
        assert store.observed_stream_time == 20
        assert list(store.versions(b"k")) == [VersionedRecord(b"w", 20, None), VersionedRecord(b"v", 10, 20)]
        check_invariants(store)


def test_versions_are_the_state_of_the_call() -> None:
    store = VersionedStore(MemoryKV(), b"", 100)
    store.put(b"k", b"v", 10)
    found = store.versions(b"k")
    store.put(b"k", b"w", 20)
    assert list(found) == [VersionedRecord(b"v", 10, None)]


def test_idle_keys_are_cleared_when_their_segment_goes() -> None:
    kv = MemoryKV()
    store = VersionedStore(kv, b"", retention=100, segment=50)
    for at in range(300):
        store.put(b"gone-%d" % at, None, 10)
        store.put(b"kept-%d" % at, b"old", 5)
        store.put(b"kept-%d" % at, b"new", 20)
    assert (rows_of(kv, b"h"), rows_of(kv, b"d")) == (600, 600)
    for at in range(12):
        store.put(b"clock", b"", 1000 + at)
    assert (rows_of(kv, b"h"), rows_of(kv, b"d")) == (301, 1)
    check_invariants(store)
    row = decode_block(kv.get(b"\0\0hkept-7") or b"")
    assert (row.times, row.values, row.mark) == ([20], [b"new"], -1)


def test_a_restart_in_the_middle_of_a_sweep_goes_on_with_it() -> None:
    kv = MemoryKV()
    store = VersionedStore(kv, b"", retention=100, segment=50)
    for at in range(300):
        store.put(b"gone-%d" % at, None, 10)
    store.put(b"clock", b"", 1000)
    assert 0 < rows_of(kv, b"d") < 300
    store = VersionedStore(kv, b"", retention=100, segment=50)
    for _ in range(5):
        store.put(b"clock", b"", 1000)
    assert (rows_of(kv, b"h"), rows_of(kv, b"d")) == (1, 0)


@pytest.mark.parametrize("batch", [1, 700, 9000])
def test_a_hot_key_is_kept_in_bounded_rows_and_dropped_in_segments(batch: int) -> None:
    kv, n = MemoryKV(), 3 * CHUNK_VERSIONS
    store = VersionedStore(kv, b"", retention=10 * n, segment=n)
    random = np.random.default_rng(3)
    times = 10 * random.permutation(n) + 5
    payload = [b"%d" % time for time in times.tolist()]
    for start in range(0, n, batch):
        part = slice(start, start + batch)
        store.put_many([b"hot"] * len(payload[part]), payload[part], times[part])
    check_invariants(store)
    ordered = sorted(times.tolist())
    found = store.versions_many([b"hot"], np.array([0]), np.array([NEVER - 1]))
    assert found.valid_from.tolist() == ordered
    assert found.valid_to.tolist() == [*ordered[1:], NEVER]
    assert found.values.to_pylist() == [b"%d" % time for time in ordered]
    assert store.get(b"hot", as_of=ordered[40] + 3) == VersionedRecord(b"%d" % ordered[40], ordered[40], ordered[41])
    chunks = rows_of(kv, b"c")
    assert chunks >= (n - HEAD_VERSIONS) // CHUNK_VERSIONS
    store.put(b"clock", b"", 15 * n)
    assert 0 < rows_of(kv, b"c") < chunks
    store.put(b"clock", b"", 100 * n)
    assert rows_of(kv, b"c") == 0
    assert store.get(b"hot") == VersionedRecord(b"%d" % ordered[-1], ordered[-1], None)
    check_invariants(store)


def _put(store: VersionedStore, times: npt.NDArray[np.int64]) -> None:
    """One version is put by itself, several as a batch: these are two ways through the store."""
    if len(times) == 1:
        store.put(b"k", b"%08d" % times[0], int(times[0]))
    else:
        store.put_many([b"k"] * len(times), [b"%08d" % time for time in times.tolist()], times)


@pytest.mark.parametrize("batch", [1, 10, 16, 40])
def test_a_history_that_grows_is_not_written_again_and_again(batch: int) -> None:
    class Counting(MemoryKV):
        written = 0

        def write(self, puts: Any, deletes: Any = (), delete_ranges: Any = ()) -> None:
            puts = list(puts)
            self.written += sum(len(value) for key, value in puts if key.startswith(RowKeys(b"").chunk))
            super().write(puts, deletes, delete_ranges)

    kv, n = Counting(), 4 * CHUNK_VERSIONS
    store = VersionedStore(kv, b"", retention=10 * n)
    for start in range(0, n, batch):
        _put(store, np.arange(start, start + batch, dtype=np.int64))
    check_invariants(store)
    at_rest = sum(len(value) for _, value in kv.scan(RowKeys(b"").chunk, RowKeys(b"").due))
    assert at_rest < kv.written < 2.5 * at_rest
    assert rows_of(kv, b"c") < n // CHUNK_VERSIONS * 2 + CHUNKS_AT_ONCE


@pytest.mark.parametrize(("batch", "leaves"), [(1, HEAD_VERSIONS // 2 + 1), (10, HEAD_VERSIONS // 2 + 4)])
def test_a_chunk_that_is_rewritten_loses_what_has_expired(batch: int, leaves: int) -> None:
    """`leaves` versions leave the head at a time; the oldest chunk has expired in part when it is taken in."""
    kv, retention = MemoryKV(), CHUNKS_AT_ONCE * leaves + 3
    store = VersionedStore(kv, b"", retention, segment=10**9)
    dropped = 0
    for start in range(0, 3 * retention, batch):
        before = chunks_of(kv).keys()
        _put(store, np.arange(start, start + batch, dtype=np.int64))
        for upper, block in chunks_of(kv).items():
            if upper not in before:
                ends = [*block.times[1:], upper]
                assert ends[0] > store.horizon
                dropped += block.times[0] == store.horizon
    check_invariants(store)
    assert dropped > 0


def chunks_of(kv: MemoryKV) -> dict[int, Block]:
    rows = RowKeys(b"")
    return {rows.timed(key)[0]: decode_block(data) for key, data in kv.scan(rows.chunk, rows.due)}


def test_times_far_apart_are_searched_as_well() -> None:
    store = VersionedStore(MemoryKV(), b"", 2**61)
    names = [b"k%d" % at for at in range(40)]
    store.put_many(names * 2, [b"a"] * 40 + [b"b"] * 40, np.repeat(np.array([0, 2**60], np.int64), 40))
    found = store.get_many(names, np.full(40, 2**60 - 1, np.int64))
    assert found == [VersionedRecord(b"a", 0, 2**60)] * 40


def test_nothing_in_nothing_out() -> None:
    store = VersionedStore(MemoryKV(), b"", 10)
    none = np.empty(0, np.int64)
    store.put_many([], [], none)
    assert store.observed_stream_time == -1
    assert len(store.versions_many([], none, none)) == 0
    assert store.get_many([]) == []
    assert store.get_many([b"k"], np.array([4])) == [Miss.NO_RECORD]
    assert len(store.versions_many([b"k"], np.array([0]), np.array([9]))) == 0


def test_bytes_stay_the_same() -> None:
    kv = MemoryKV()
    store = VersionedStore(kv, b"p", retention=258, grace=3)
    store.put(b"k", b"value", 5)
    store.put(b"k", None, 7)
    store.put(b"k", b"", 8)
    assert {key.hex(): value.hex() for key, value in kv.scan(b"", None)} == {
        "00017064" + "0000000000000007" + "6b": "",
        "000170686b": "03000000" + "00000000" + "0700000000000000"
        "0500000000000000" + "0700000000000000" + "0800000000000000"
        "05000000" + "ffffffff" + "00000000" + "00000000" + b"value".hex() + "000000",
        "0001706d": "56535653" + "0100" + "0000" + "0800000000000000" + "0000000000000000"
        "0201000000000000" + "0300000000000000",
    }


def test_columns_and_single_rows_have_the_same_bytes() -> None:
    blocks = [
        Block([1], [None], [], -1),
        Block([2, 9], [b"", b"abc"], [], 77),
        Block([30, 31, 40], [b"x" * 8, None, b"y"], [10, 20, 30], 31),
    ]
    rows = [encode_block(block) for block in blocks]
    assert [decode_block(row) for row in rows] == blocks
    columns = decode_blocks(rows)
    values = columns.values.take(pa.array(columns.element, mask=columns.deleted))
    assert values.to_pylist() == [None, b"", b"abc", b"x" * 8, None, b"y"]
    assert (
        encode_blocks(columns.counts, columns.marks, columns.times, values, columns.directories, columns.uppers) == rows
    )


def test_damaged_rows_are_refused() -> None:
    row = encode_block(Block([30, 31, 40], [b"x" * 8, None, b"y"], [30], 31))
    for damaged in (b"", row[:8], row[:-8], row + b"\0" * 8, b"\xff" + row[1:], b"\0" * len(row)):
        with pytest.raises(StateError, match="damaged"):
            decode_block(damaged)
    for damaged in (row[:8], row[:-8], row[:-3], b"\xff" + row[1:], b"\0" * len(row)):
        with pytest.raises(StateError, match="damaged"):
            decode_blocks([row, damaged])


def test_another_format_version_and_foreign_bytes_are_refused() -> None:
    kv = MemoryKV()
    VersionedStore(kv, b"", 10).put(b"k", b"v", 1)
    meta = kv.get(b"\0\0m") or b""
    kv.write([(b"\0\0m", meta[:4] + b"\x02" + meta[5:])])
    with pytest.raises(StateError, match="format version 2; this vsc reads format version 1"):
        VersionedStore(kv, b"", 10)
    kv.write([(b"\0\0m", b"VSTS\x01\0")])
    with pytest.raises(StateError, match="not the state of a versioned store"):
        VersionedStore(kv, b"", 10)


def test_a_missing_chunk_is_named_and_a_broken_invariant_too() -> None:
    kv = MemoryKV()
    store = VersionedStore(kv, b"", 10_000)
    store.put_many([b"k"] * 90, [b"v"] * 90, np.arange(90, dtype=np.int64))
    chunk = next(key for key, _ in kv.scan(b"\0\0c", b"\0\0d"))
    kv.write([], [chunk])
    with pytest.raises(StateError, match=r"the chunk .* is gone"):
        store.get(b"k", as_of=0)
    with pytest.raises(StateError, match=r"the chunk .* is gone"):
        store.versions_many([b"k"], np.array([0]), np.array([9]))
    with pytest.raises(StateError, match=r"invariant 3 .* is missing"):
        check_invariants(store)
