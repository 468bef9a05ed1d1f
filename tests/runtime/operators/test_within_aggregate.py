"""What came before each record: the calls of a join of two streams over the right records of each left one.

Beside a loop over all records that shares nothing with the operator: in order and out of it, cut, restarted, on several
partitions. `tests.random_topologies` has such joins, too.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

STREAMS = """
stream a (id int, k string, n int, at bigint) from memory () key k timestamp at;
stream b (id int, k string, n int, at bigint) from memory () key k timestamp at;
"""


def given(driver: TopologyTestDriver) -> list[tuple[Any, ...]]:
    return [(*(record.value or {}).values(), record.timestamp) for record in driver.read("o")]


def pay(driver: TopologyTestDriver, id: str, amount: int, at: int) -> list[tuple[Any, ...]]:
    driver.pipe("p", {"id": id, "k": "x", "amount": amount, "at": at})
    return given(driver)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stream_with_itself_strictly_before(restarted: bool) -> None:
    text = """
    stream p (id string, k string, amount int, at bigint) from memory () key k timestamp at;
    stream o = left join p as l with p as r within (before = 10 ms) grace 5 ms strictly before
      select l.id, count(r.id) as n, sum(r.amount) as total;
    """
    with TopologyTestDriver(text, partitions=3) as driver:
        steps: list[tuple[tuple[str, int, int], list[tuple[Any, ...]]]] = [
            (("p1", 10, 10), []),
            (("p2", 20, 18), [("p1", 0, None, 10)]),
            (("p3", 5, 14), []),
            (("p4", 1, 23), [("p3", 1, 10, 14)]),
            (("p5", 7, 13), [("p5", 1, 10, 13)]),
        ]
        for row, expected in steps:
            assert pay(driver, *row) == expected
            if restarted:
                driver.restart()
        driver.drain()
        assert given(driver) == [("p2", 3, 22, 18), ("p4", 3, 32, 23)]
        assert driver.metrics()["missed_lookups"] == {"o": {"late": 1, "no_record": 1, "older_than_retention": 1}}
        assert driver.metrics()["grace_needed"] == {"o": 10}


@pytest.mark.parametrize("grace", ["", "grace 2 ms"])
def test_what_a_plain_join_gives_nothing_for_is_counted(grace: str) -> None:
    text = STREAMS + f"stream o = join a as l with b as r within (before = 5 ms) {grace} select l.id, count(*) as n;"
    with TopologyTestDriver(text, partitions=2) as driver:
        for name, id, at in [("a", 1, 10), ("b", 2, 11), ("a", 3, 12), ("a", 4, 20)]:
            driver.pipe(name, {"id": id, "k": "x", "n": 0, "at": at})
        driver.drain()
        assert given(driver) == [(3, 1, 12)]
        assert driver.metrics()["missed_lookups"] == {"o": {"no_record": 2}}


def test_without_grace_a_result_goes_out_at_its_record_over_what_has_come() -> None:
    text = STREAMS + (
        "stream o = left join a as l with b as r within (before = 10 ms) "
        "select l.id, count(*) as n, sum(r.n) over 4 ms as few, collect_list(r.n) as c;"
    )
    with TopologyTestDriver(text) as driver:
        for name, id, n, at in [("b", 1, 5, 10), ("a", 2, 0, 16), ("b", 3, 7, 14), ("a", 4, 0, 16), ("b", 5, 1, 17)]:
            driver.pipe(name, {"id": id, "k": "x", "n": n, "at": at})
        driver.pipe("a", {"id": 6, "k": "y", "n": 0, "at": 18})
        assert given(driver) == [(2, 1, None, [5], 16), (4, 2, 7, [5, 7], 16), (6, 0, None, [], 18)]


@pytest.mark.parametrize(
    ("clauses", "came", "late", "needed"),
    [
        ("grace 5 ms", [("a", 10), ("b", 16), ("b", 11), ("b", 10), ("b", 9)], 2, 7),
        ("grace 5 ms strictly before", [("a", 10), ("b", 16), ("b", 10), ("b", 9)], 1, 6),
        ("", [("b", 10), ("a", 11), ("b", 12), ("b", 12), ("b", 11)], 1, 1),
        ("strictly before", [("a", 11), ("b", 11), ("b", 10)], 1, 1),
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_right_records_are_late_if_they_come_when_left_ones_may_have_gone_out(
    clauses: str, came: list[tuple[str, int]], late: int, needed: int, partitions: int
) -> None:
    text = STREAMS + f"stream o = left join a as l with b as r within (before = 10 ms) {clauses} select count(*) as n;"
    with TopologyTestDriver(text, partitions=partitions) as driver:
        for number, (name, at) in enumerate(came):
            driver.pipe(name, {"id": number, "k": "xyz"[number % 3], "n": 0, "at": at})
        found = driver.metrics()
        assert (found["late_versions"], found["grace_needed"]) == ({"o": late}, {"o": needed})


Row = tuple[str, int, str, int | None, int]


def random_rows(rng: random.Random) -> list[Row]:
    times = sorted(rng.randrange(200) for _ in range(60))
    rows = [(rng.choice("ab"), i, rng.choice("xyz"), rng.choice((None, 1, 2, 3)), at) for i, at in enumerate(times)]
    return sorted(rows, key=lambda row: row[4] + rng.choice((0, 0, 0, 4, 9)))


def by_loop(rows: list[Row], before: int, after: int) -> set[tuple[Any, ...]]:
    """What all input gives: no row is later than the grace."""
    found = set()
    for stream, id, key, _, at in rows:
        if stream == "a":
            own = [row for row in rows if row[0] == "b" and row[2] == key and at - before <= row[4] <= at + after]
            values = [row[3] for row in own if row[3] is not None]
            few = [row[3] for row in own if row[3] is not None and row[4] >= at - 5]
            found.add((id, len(own), sum(values) if values else None, max(few, default=None), at))
    return found


@pytest.mark.quick(3)
@pytest.mark.parametrize("seed", range(12))
def test_what_all_input_gives(seed: int) -> None:
    rng = random.Random(seed)
    before, after, partitions = rng.choice((5, 20, 60)), rng.choice((0, 0, 7)), rng.choice((1, 3))
    text = STREAMS + (
        f"stream o = left join a as l with b as r within (before = {before} ms, after = {after} ms) grace 10 ms "
        "select l.id, count(*) as n, sum(r.n) as total, max(r.n) over 5 ms as top;"
    )
    rows = random_rows(rng)
    found: list[tuple[Any, ...]] = []
    with TopologyTestDriver(text, partitions=partitions) as driver:
        for stream, id, key, n, at in rows:
            driver.pipe(stream, {"id": id, "k": key, "n": n, "at": at})
            found += given(driver)
            if rng.random() < 0.1:
                driver.restart()
        driver.drain()
        found += given(driver)
    assert len(found) == len(set(found))
    assert set(found) == by_loop(rows, before, after)


def test_right_records_that_left_ones_from_behind_a_final_window_have_missed_are_late() -> None:
    """The window of 0 to 10 goes out at 12, at the time of 9, when the clock behind it is 2."""
    text = """
stream s (k string, at bigint) from memory () key k timestamp at;
stream t (k string, at bigint) from memory () key k timestamp at;
table w = aggregate s group by k window tumbling (size = 10 ms) emit final select count(*) as n;
stream c = to_stream w;
stream l = rekey c by k as k2;
stream o = left join l with t as r within (before = 9 ms) select count(*) as n;
sink o to memory ();
"""
    with TopologyTestDriver(text) as driver:
        for source, at in (("t", 3), ("s", 9), ("s", 12), ("t", 5), ("t", 13)):
            driver.pipe(source, {"k": "a", "at": at})
        assert [(r.value, r.timestamp) for r in driver.read("o")] == [({"n": 1}, 9)]
        assert driver.metrics()["late_versions"] == {"o": 1}
