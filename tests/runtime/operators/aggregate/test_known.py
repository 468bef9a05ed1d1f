"""`first` and `last` that ignore nulls, and `collect_last`: over streams and tables, in and out of order, cut."""

from __future__ import annotations

import pytest

from vsc.testing import TopologyTestDriver

COLUMNS = "(id bigint, k string, n bigint) from memory () key id;"
CALLS = "first(n) ignore nulls as f, last(n) ignore nulls as l, collect_last(n, 2) as c, last(n) as plain"
FED = [(10, None), (20, 2), (30, 3), (20, 4), (40, None), (5, 6), (30, 7)]
"""The event times and values of rows, as they arrive."""
AFTER = [
    (None, None, [], None),
    (2, 2, [2], 2),
    (2, 3, [2, 3], 3),
    (2, 3, [4, 3], 3),
    (2, 3, [4, 3], None),
    (6, 3, [4, 3], None),
    (6, 7, [3, 7], None),
]


@pytest.mark.parametrize("kind", ["stream", "table"])
@pytest.mark.parametrize("restarted", [False, True])
def test_nulls_do_not_count(kind: str, restarted: bool) -> None:
    with TopologyTestDriver(f"{kind} s {COLUMNS} table a = aggregate s group by k select {CALLS};") as driver:
        for number, (time, n) in enumerate(FED):
            driver.pipe("s", {"id": number, "k": "a", "n": n}, timestamp=time)
            if restarted:
                driver.restart()
        found = [tuple((record.value or {}).values()) for record in driver.read("a")]
    assert found == AFTER


def test_a_row_that_is_taken_back_makes_room() -> None:
    with TopologyTestDriver(f"table t {COLUMNS} table a = aggregate t group by k select {CALLS};") as driver:
        for number, (time, n) in enumerate(FED):
            driver.pipe("t", {"id": number, "k": "a", "n": n}, timestamp=time)
        driver.delete("t", {"id": 6}, timestamp=50)
        driver.delete("t", {"id": 5}, timestamp=51)
        *_, last = driver.read("a")
    assert last.value == {"f": 2, "l": 3, "c": [4, 3], "plain": None}


def test_windows_merge() -> None:
    window = "window session (gap = 10 ms, grace = 100 ms)"
    with TopologyTestDriver(f"stream s {COLUMNS} table a = aggregate s group by k {window} select {CALLS};") as driver:
        for number, (time, n) in enumerate([(0, 1), (18, None), (20, 3), (9, 4)]):
            driver.pipe("s", {"id": number, "k": "a", "n": n}, timestamp=time)
        *_, last = driver.read("a")
    assert last.value is not None
    assert {name: last.value[name] for name in "flc"} == {"f": 1, "l": 3, "c": [4, 3]}
