"""The store of waiting batches: order, removal, counts, restarts."""

from __future__ import annotations

from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.waiting import Waiting, WaitingBatches


def test_batches_come_out_by_time_then_as_they_went_in() -> None:
    kv = MemoryKV()
    store = WaitingBatches(kv)
    later, first = Waiting("ö", 7, 2, b"later"), Waiting("s", 5, 1, b"first")
    store.replace((), [later, first])
    store = WaitingBatches(kv)
    second = Waiting("s", 5, 3, b"second")
    store.replace((), [second])
    assert len(store) == 6
    assert [one for _, one in store.until(5)] == [first, second]
    assert [one for _, one in store.until(7)] == [first, second, later]
    assert list(store.until(4)) == list(store.until(-1)) == []

    taken = [(row_key, one._replace(data=b"")) for row_key, one in store.until(5)]
    rest = Waiting("s", 6, 1, b"rest")
    store.replace(taken, [rest])
    assert len(store) == len(WaitingBatches(kv)) == 3
    assert [one for _, one in store.until(2**63 - 2)] == [rest, later]
