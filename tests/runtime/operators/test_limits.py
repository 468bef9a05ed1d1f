"""A retention or grace that changes on a state that goes on: it counts from then on, and what is gone stays gone."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tests.runtime.operators.driving import dropped
from vsc.runtime.errors import StateError
from vsc.runtime.state.api import OutcomeKind
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.state.versioned import VersionedStore
from vsc.testing import TopologyTestDriver

STREAM = "stream s (k string, v bigint, at bigint) from memory () key k timestamp at;"


def played(parts: list[tuple[str, list[tuple[int, int]]]]) -> tuple[list[Any], Any]:
    """What comes out of `d` and what is dropped in the last of the parts, each a topology and its rows (value, time),
    all on one state."""
    kept: dict[tuple[int, int], MemoryKV] = defaultdict(MemoryKV)

    class Continued(TopologyTestDriver):
        def _open(self, stage: int, partition: int) -> Any:
            return kept[stage, partition]

    for text, rows in parts:
        with Continued(STREAM + text) as driver:
            for v, at in rows:
                driver.pipe("s", {"k": "a", "v": v, "at": at})
            sent = [(None if r.value is None else r.value["v"], r.timestamp) for r in driver.read("d")]
            found = sent, dropped(driver)
    return found


@pytest.mark.parametrize(
    "window",
    [
        "hopping (size = 10 ms, advance = 5 ms, grace = {} ms)",
        "tumbling (size = 10 ms, grace = {} ms)",
        "sliding (difference = 10 ms, grace = {} ms)",
        "session (gap = 10 ms, grace = {} ms)",
    ],
)
@pytest.mark.parametrize("name", ["d", "w"])
def test_a_closed_window_stays_closed_under_a_longer_grace(window: str, name: str) -> None:
    text = f"table {name} = aggregate s group by k window {window} select count(*) as v;"
    if name == "w":
        text += "table d = suppress w until window closes;"
    before = (text.format(0), [(1, 5), (1, 100)])
    assert played([before, (text.format(1000), [(1, 6)])])[0] == []
    assert set(played([before, (text.format(1000), [(1, 6)])])[1][name]) == {"window_closed"}
    assert name not in played([before, (text.format(1000), [(1, 150), (1, 101)])])[1]
    assert set(played([before, (text.format(0), [(1, 150), (1, 101)])])[1][name]) == {"window_closed"}


def test_windows_that_were_open_get_the_longer_grace() -> None:
    text = "table d = aggregate s group by k window tumbling (size = 10 ms, grace = {} ms) select count(*) as v;"
    rows = [(1, 6), (1, 21), (1, 60), (1, 31)]
    assert played([(text.format(0), [(1, 5), (1, 25)]), (text.format(50), rows)])[0] == [(2, 25), (1, 60), (1, 31)]


def test_a_distinct_refuses_what_it_would_compare_with_forgotten_times() -> None:
    text = "stream d = distinct s within 10 ms grace {} ms;"
    before = (text.format(0), [(1, 50), (2, 100)])
    rows = [(3, 51), (4, 89), (5, 90), (6, 200), (7, 150)]
    assert played([before, (text.format(100), rows)]) == (
        [(5, 90), (6, 200), (7, 150)], {"d": {"expired": 2}},
    )  # fmt: skip
    assert played([before, (text.format(0), rows)]) == (
        [(5, 90), (6, 200)], {"d": {"expired": 3}},
    )  # fmt: skip


def test_a_store_opened_with_another_retention_goes_on_if_it_is_asked_to() -> None:
    kv = MemoryKV()
    store = VersionedStore(kv, b"t", 50, 10)
    for value, time in ((b"1", 10), (b"2", 100), (b"3", 200)):
        store.put(b"k", value, time)
    with pytest.raises(StateError, match="was written with a history retention of 50 ms"):
        VersionedStore(kv, b"t", 1000, 10)
    longer = VersionedStore(kv, b"t", 1000, 10, adopt=True)
    assert longer.put(b"k", b"x", 149).kind is OutcomeKind.EXPIRED  # what it would have met may be gone
    assert longer.put(b"k", b"x", 150).kind is OutcomeKind.SUPERSEDED
    longer.put(b"k", b"4", 300)
    again = VersionedStore(kv, b"t", 1000, 10)
    assert again.floor == 150
    assert again.put(b"k", b"y", 149).kind is OutcomeKind.EXPIRED
    again.put(b"k", b"5", 1200)
    assert VersionedStore(kv, b"t", 1000, 10).floor == 0  # stream time has left it behind
    shorter = VersionedStore(kv, b"t", 10, 10, adopt=True)
    assert shorter.put(b"k", b"z", 1189).kind is OutcomeKind.EXPIRED
    assert shorter.put(b"k", b"z", 1190).kind is OutcomeKind.SUPERSEDED


def test_a_versioned_aggregate_refuses_what_is_older_than_its_floor() -> None:
    text = "table d = aggregate s group by k select sum(v) as v materialize versioned (retention = {} ms);"
    before = (text.format(10), [(1, 5), (2, 100)])
    assert played([before, (text.format(1000), [(4, 101)])]) == ([(7, 101)], {})
