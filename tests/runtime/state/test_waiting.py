"""The store of waiting batches: order, removal, counts, restarts."""

from __future__ import annotations

from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.waiting import Place, Waiting, WaitingBatches


def at(time: int) -> Place:
    return Place(time, 0, "a", 0)


def test_batches_come_out_by_time_then_as_they_went_in() -> None:
    kv = MemoryKV()
    store = WaitingBatches(kv)
    later, first = Waiting("ö", at(7), 2, b"later"), Waiting("s", at(5), 1, b"first")
    store.replace((), [later, first])
    store = WaitingBatches(kv)
    second = Waiting("s", at(5), 3, b"second")
    store.replace((), [second])
    assert len(store) == 6
    assert [one for _, one in store.before(at(6))] == [first, second]
    assert [one for _, one in store.before(None)] == [first, second, later]
    assert list(store.before(at(5))) == list(store.before(at(-1))) == []

    taken = [(row_key, one._replace(data=b"")) for row_key, one in store.before(at(6))]
    rest = Waiting("s", at(6), 1, b"rest")
    store.replace(taken, [rest])
    assert len(store) == len(WaitingBatches(kv)) == 3
    assert [one for _, one in store.before(None)] == [rest, later]


def test_batches_of_one_time_come_out_by_source_partition_and_offset() -> None:
    store = WaitingBatches(MemoryKV())
    places = [
        *(Place(5, 0, part, offset) for part in ("", "a", "a\0", "a\0b", "ab", "é") for offset in (0, 1, 300)),
        Place(5, 1, "", 0),
        Place(6, 0, "", 0),
    ]
    store.replace((), [Waiting("s", place, 1, b"") for place in reversed(places)])
    found = list(store.before(None))
    assert [one.place for _, one in found] == places
    for end in places:
        assert [one.place for _, one in store.before(end)] == places[: places.index(end)]
    assert list(store.before(places[9], found[4][0])) == found[5:9]
