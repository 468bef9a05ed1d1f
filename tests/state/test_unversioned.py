"""The unversioned store: the last write wins, in batches as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.records.tables import RecordStore
from vsc.runtime.errors import StateError
from vsc.runtime.state.kv import MemoryKV

KEYS = (b"", b"a", b"a|", b"a\0", b"ab", b"\xff")

write = st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"", b"v", b"w"]), st.integers(-1, 9))


@settings(max_examples=100, deadline=None)
@given(batches=st.lists(st.lists(write, max_size=8), max_size=5))
def test_batches_are_single_writes_and_the_last_one_wins(batches: list[list[tuple[bytes, bytes | None, int]]]) -> None:
    one, many = RecordStore(MemoryKV(), b"p"), RecordStore(MemoryKV(), b"p")
    expected: dict[bytes, tuple[bytes, int]] = {}
    for batch in batches:
        for key, value, time in batch:
            one.put(key, value, time)
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = (value, time)
        last = {key: (value, time) for key, value, time in batch}
        values = pa.array([value for value, _ in last.values()], pa.binary())
        many.put_columns(list(last), values, np.array([time for _, time in last.values()], np.int64))
        for store in (one, many):
            assert [store.get(key) for key in KEYS] == [expected.get(key) for key in KEYS]
            there, found, times = store.get_columns(KEYS)
            assert there.tolist() == [key in expected for key in KEYS]
            rows = list(zip(found.to_pylist(), times.tolist(), strict=True))
            assert rows == [expected[key] for key in KEYS if key in expected]
            assert list(store.scan()) == [(key, *expected[key]) for key in sorted(expected)]


def test_stores_of_one_map_do_not_mix() -> None:
    kv = MemoryKV()
    first, second = RecordStore(kv, b"a"), RecordStore(kv, b"ar")
    first.put(b"rk", b"1", 1)
    second.put(b"k", b"2", 2)
    assert list(first.scan()) == [(b"rk", b"1", 1)]
    assert list(RecordStore(kv, b"ar").scan()) == [(b"k", b"2", 2)]


def test_bytes_stay_the_same() -> None:
    kv = MemoryKV()
    RecordStore(kv, b"p").put(b"k", b"value", 258)
    assert {key.hex(): value.hex() for key, value in kv.scan(b"", None)} == {
        "0001706d": "565354530100",
        "000170726b": "0201000000000000" + b"value".hex(),
    }


def test_foreign_bytes_are_refused() -> None:
    kv = MemoryKV()
    kv.write([(b"\0\x01pm", b"VSVS\x01\0")])
    with pytest.raises(StateError, match="not an unversioned store of format version 1"):
        RecordStore(kv, b"p")
