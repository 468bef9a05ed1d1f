"""The unversioned store: the last write wins, in batches as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.timed_rows import TimestampedStore

KEYS = (b"", b"a", b"a|", b"a\0", b"ab", b"\xff")

write = st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"", b"v", b"w"]), st.integers(-1, 9))


def put(store: TimestampedStore, key: bytes, value: bytes | None, time: int) -> None:
    store.put_columns([key], pa.array([value], pa.binary()), np.array([time], np.int64))


@settings(max_examples=100, deadline=None)
@given(batches=st.lists(st.lists(write, max_size=8), max_size=5))
def test_batches_are_single_writes_and_the_last_one_wins(batches: list[list[tuple[bytes, bytes | None, int]]]) -> None:
    one, many = TimestampedStore(MemoryKV(), b"p"), TimestampedStore(MemoryKV(), b"p")
    expected: dict[bytes, tuple[bytes, int]] = {}
    for batch in batches:
        for key, value, time in batch:
            put(one, key, value, time)
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = (value, time)
        last = {key: (value, time) for key, value, time in batch}
        values = pa.array([value for value, _ in last.values()], pa.binary())
        many.put_columns(list(last), values, np.array([time for _, time in last.values()], np.int64))
        for store in (one, many):
            there, found, times = store.get_columns(KEYS)
            assert there.tolist() == [key in expected for key in KEYS]
            rows = list(zip(found.to_pylist(), times.tolist(), strict=True))
            assert rows == [expected[key] for key in KEYS if key in expected]
            assert list(store.scan()) == [(key, *expected[key]) for key in sorted(expected)]


def test_stores_of_one_map_do_not_mix() -> None:
    kv = MemoryKV()
    first, second = TimestampedStore(kv, b"a"), TimestampedStore(kv, b"ar")
    put(first, b"rk", b"1", 1)
    put(second, b"k", b"2", 2)
    assert list(first.scan()) == [(b"rk", b"1", 1)]
    assert list(TimestampedStore(kv, b"ar").scan()) == [(b"k", b"2", 2)]


def test_bytes_stay_the_same() -> None:
    kv = MemoryKV()
    put(TimestampedStore(kv, b"p"), b"k", b"value", 258)
    assert {key.hex(): value.hex() for key, value in kv.scan(b"", None)} == {
        "0001706d": "565354530100",
        "000170726b": "0201000000000000" + b"value".hex(),
    }


def test_foreign_bytes_are_refused() -> None:
    kv = MemoryKV()
    kv.write([(b"\0\x01pm", b"VSVS\x01\0")])
    with pytest.raises(StateError, match="not an unversioned store of format version 1"):
        TimestampedStore(kv, b"p")
