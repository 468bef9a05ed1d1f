"""One clock (D25): results do not know how many partitions there are.

Random topologies with their input cut, restarted and moved to other partitions at random, against one partition that
takes the rows one by one; and the cases for which the clock of the input was made, each with its right values. Set
``VSC_PARTITIONS`` to run more seeds (``1000``) or others (``5000:5100``) than the usual few.
``python -m tests.random_topologies SEED partitions`` shows one, as small as it still fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow
from tests.random_topologies.partitions import Case
from tests.random_topologies.seeds import seeds
from tests.random_topologies.shrinking import outcome, shrunk
from vsc.testing import Record, TopologyTestDriver

PARTITIONS = (1, 7, *(pytest.param(count, marks=pytest.mark.slow) for count in (2, 4)))
Rows = Sequence[tuple[str, dict[str, Any]]]


@pytest.mark.quick(1)
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds("VSC_PARTITIONS", 6))
def test_partitions_cuts_and_restarts_do_not_show(seed: int) -> None:
    assert not outcome(Case.of(seed))


def test_a_case_that_fails_becomes_small() -> None:
    text = """
table t (k string, at bigint) from memory () key k timestamp at materialize versioned (retention = 10 ms);
table u (k string, at bigint) from memory () key k timestamp at;
table v = join t with u select t.at as l, u.at as r;
sink v to memory ();
"""
    rows = [EpochRow("tu"[n % 2], "", n, {"k": "abcd"[n // 4], "at": 7 * n}, 7 * n) for n in range(16)]
    case = Case(text.lstrip(), [rows[:5], rows[5:]], [5, 4], [True, False], [False, True], now=1000, clock="records")
    small = shrunk(case)
    assert outcome(small)
    assert [len(epoch) for epoch in small.epochs] == [2]
    assert small.text.count("table") == 1
    assert (list(small.drains), list(small.restarts), small.now) == ([False], [False], None)


def cut(text: str, rows: Rows, partitions: int = 1, **given: Any) -> dict[str, list[Any]]:
    """What comes out if all rows are one epoch."""
    epoch = [EpochRow(source, "", offset, row, row["at"]) for offset, (source, row) in enumerate(rows)]
    return Case(text, [epoch], [partitions], [False], [True], **given).records()


def driven(text: str, rows: Rows, node: str, partitions: int, now: int | None = None) -> list[Record]:
    """What comes out if the rows come one by one, the records of all keys by time and key."""
    with TopologyTestDriver(text, partitions=partitions, now=now) as driver:
        for source, row in rows:
            driver.pipe(source, row)
        driver.drain()
        return sorted(driver.read(node), key=lambda record: (record.timestamp, str(record.key)))


# ------------------------------------------------------------------------- behind a buffer, each partition at its pace

DAYS = """
topology days (clock = '{clock}');
stream sold (id string, item string, country string, at timestamp) from memory () key id timestamp at;
table costs (item string, cost bigint, at timestamp) from memory () key item timestamp at
  materialize versioned (retention = 1 day);
stream known = left join sold with costs on item grace 6 hours select id, country, cost;
table daily = aggregate known group by country window tumbling (size = 1 day, grace = 1 hour) emit final
  select count(*) as n;
sink daily to memory ();
"""
ITEMS = [f"item {number}" for number in range(8)]


def lines() -> Rows:
    """Eight items, sold all through the first evening, then in turn: 80, 10 and 8 lines a day, none of them late."""
    times = [(item, f"2026-05-01T21:{minute:02}:00Z") for minute in range(10) for item in ITEMS]
    times += [(ITEMS[0], "2026-05-02T07:00:00Z"), (ITEMS[0], "2026-05-02T14:00:00Z")]
    times += [(item, "2026-05-02T15:00:00Z") for item in ITEMS]
    times += [(item, "2026-05-03T15:00:00Z") for item in ITEMS]
    costs = [("costs", {"item": item, "cost": 3, "at": "2026-05-01T00:00:00Z"}) for item in ITEMS]
    return [
        *costs,
        *(("sold", {"id": str(n), "item": i, "country": "FR", "at": at}) for n, (i, at) in enumerate(times)),
    ]


@pytest.mark.quick(1)
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_window_behind_a_grace_loses_nothing_that_was_in_time(partitions: int) -> None:
    found = driven(DAYS.format(clock="input"), lines(), "daily", partitions)
    assert [record.value and record.value["n"] for record in found] == [80, 10, 8]


def test_by_the_clock_of_records_it_loses_what_slow_partitions_let_go_late() -> None:
    found = driven(DAYS.format(clock="records"), lines(), "daily", 4)
    assert sum(record.value["n"] for record in found if record.value) < 98


# ---------------------------------------------------------------------------------------------- the place of a release

WAITS = """
topology waits (clock = 'input');
table t (k string, v string, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 day);
stream s (k string, at bigint) from memory () key k timestamp at;
stream j = join s with t grace 5 ms select v;
sink j to memory ();
"""


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_what_waits_goes_on_right_before_the_record_that_lets_it(partitions: int) -> None:
    rows = [
        ("t", {"k": "k", "v": "v1", "at": 0}),
        ("s", {"k": "k", "at": 1}),
        ("t", {"k": "x", "v": "", "at": 50}),
        ("t", {"k": "k", "v": "v2", "at": 1}),
        ("s", {"k": "y", "at": 100}),
    ]
    assert driven(WAITS, rows, "j", partitions) == [Record({"k": "k"}, {"v": "v2"}, 1)]
    assert cut(WAITS, rows, partitions)["j"] == [("('k',)", 1, "('v2',)")]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_version_behind_that_record_is_too_late(partitions: int) -> None:
    rows = [
        ("t", {"k": "k", "v": "v1", "at": 0}),
        ("s", {"k": "k", "at": 1}),
        ("t", {"k": "x", "v": "", "at": 50}),
        ("s", {"k": "y", "at": 6}),
        ("t", {"k": "k", "v": "v2", "at": 1}),
        ("s", {"k": "y", "at": 100}),
    ]
    assert driven(WAITS, rows, "j", partitions) == [Record({"k": "k"}, {"v": "v1"}, 1)]


BESIDE = """
topology beside (clock = 'input');
stream a (k string, at bigint) from memory () key k timestamp at;
stream b (k string, at bigint) from memory () key k timestamp at;
table t (k string, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 second);
stream held = left join a with t grace 10 ms select a.at as n;
stream plain = map b select at as n;
stream both = merge held, plain;
table w = aggregate both group by k window tumbling (size = 5 ms) select count(*) as n;
sink w to memory ();
"""


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_what_comes_out_is_not_late_by_the_clock_of_the_other_source_of_its_reader(partitions: int) -> None:
    rows = [("a", {"k": "k", "at": 1}), ("b", {"k": "x", "at": 36}), ("a", {"k": "y", "at": 100})]
    expected = [("k", 1), ("x", 36), ("y", 100)]  # `b` is at 36 when k comes out, 31 ms beyond its window
    assert [(r.key["k"], r.timestamp) for r in driven(BESIDE, rows, "w", partitions)] == expected
    assert sorted((key[2], time) for key, time, _ in cut(BESIDE, rows, partitions)["w"]) == expected


TOGETHER = """
topology together (clock = 'input');
stream s (id string, country string, item string, at bigint) from memory () key id timestamp at;
table w = aggregate s group by country, item window tumbling (size = 10 ms) emit final select count(*) as n;
stream changes = to_stream w;
table listed = aggregate changes group by country select collect_list(item) as items;
sink listed to memory ();
"""


@pytest.mark.quick(2)
@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("prefix", ["", "a key of more than sixteen bytes: "])
def test_windows_that_close_together_come_by_key(partitions: int, reverse: bool, prefix: str) -> None:
    ordered = [prefix + item for item in "abcdefg"]
    items = ordered[::-1] if reverse else ordered
    rows = [("s", {"id": item, "country": "DE", "item": item, "at": 1}) for item in items]
    rows.append(("s", {"id": "", "country": "FR", "item": "z", "at": 30}))
    lists = [record.value and record.value["items"] for record in driven(TOGETHER, rows, "listed", partitions)]
    assert lists[6] == ordered
    assert cut(TOGETHER, rows, partitions)["listed"][6][2] == repr((ordered,))


# ------------------------------------------------------------------------------------------------- what moves the clock

COUNTED = """
topology counted (clock = '{clock}');
stream s (k string, keep boolean, at bigint) from memory (max_ahead = 20 ms) key k timestamp at;
stream kept = filter s where keep;
table w = aggregate kept group by k window tumbling (size = 10 ms) emit changes select count(*) as n;
sink w to memory ();
"""


def counted(clock: str, partitions: int, now: int | None = None) -> tuple[list[int], dict[str, Any]]:
    """The counts of the windows of `a` if another row, which no reader gets, comes before the last of its rows."""
    rows = [("a", True, 1), ("b", False, 40), ("a", True, 2)]
    with TopologyTestDriver(COUNTED.format(clock=clock), partitions=partitions, now=now) as driver:
        for key, keep, at in rows:
            driver.pipe("s", {"k": key, "keep": keep, "at": at})
        return [r.value["n"] for r in driver.read("w") if r.value], driver.metrics()["dropped_records"]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_row_that_is_filtered_moves_the_clock(partitions: int) -> None:
    assert counted("input", partitions) == ([1], {"w": {"window_closed": 1}})
    assert counted("records", partitions) == ([1, 2], {})


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_row_without_value_moves_the_clock(partitions: int) -> None:
    with TopologyTestDriver(COUNTED.format(clock="input"), partitions=partitions) as driver:
        driver.pipe("s", {"k": "a", "keep": True, "at": 1})
        driver.delete("s", {"k": "b"}, timestamp=40)
        driver.pipe("s", {"k": "a", "keep": True, "at": 2})
        assert len(driver.read("w")) == 1
        assert driver.metrics()["dropped_records"]["w"] == {"window_closed": 1}


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_row_in_the_future_does_not(partitions: int) -> None:
    assert counted("input", partitions, now=10) == ([1, 2], {"s": {"in_the_future": 1}})


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_table_moves_no_clock_but_its_own(partitions: int) -> None:
    text = (
        WAITS.replace("grace 5 ms select", "select")
        + """
    table w = aggregate j group by k window tumbling (size = 10 ms) emit changes select count(*) as n;
    sink w to memory ();
    """
    )
    rows = [("t", {"k": "a", "v": "v", "at": 0}), ("t", {"k": "b", "v": "v", "at": 500}), ("s", {"k": "a", "at": 3})]
    assert driven(text, rows, "w", partitions)[0].value == {"n": 1}


# --------------------------------------------------------------------------------------------- what random cases found

BEHIND = """
topology behind (clock = 'input');
table t (k string, j bigint, at bigint) from memory () key k, j timestamp at
  materialize versioned (retention = 1 second);
stream s (k string, at bigint) from memory () key k timestamp at;
stream j = left join s with t on s.k, s.at grace {grace} ms select s.at as a;
stream d = distinct j by k within 5 ms grace 3 ms;
sink d to memory ();
"""


def apart(text: str, *epochs: Rows, partitions: int = 2, drain: bool = True) -> str:
    """What differs from one partition, or from what the oracle says, if the input ends after each epoch."""
    rows = [[EpochRow(s, "", n, row, row["at"]) for n, (s, row) in enumerate(epoch)] for epoch in epochs]
    none = [False] * len(rows)
    return Case(text, rows, [partitions] * len(rows), none, [drain] * len(rows)).difference()


def test_what_passed_is_kept_while_the_clock_is_before_0() -> None:
    text = BEHIND.format(grace=500).replace("distinct j", "distinct both")
    text += "stream late = rekey j by k; stream early = map s select at as a, at as j; stream both = merge early, late;"
    rows = [("s", {"k": "a", "at": 0}), ("s", {"k": "b", "at": 3}), ("s", {"k": "a", "at": 4})]
    assert not apart(text, rows, drain=False)
    assert [(r.timestamp, r.key["k"]) for r in driven(text, rows, "d", 1)] == [(0, "a"), (3, "b")]


def test_what_passed_is_kept_when_the_input_goes_on_behind_its_end() -> None:
    first, second = [("s", {"k": "a", "at": 0}), ("s", {"k": "b", "at": 20})], [("s", {"k": "a", "at": 1})]
    assert not apart(BEHIND.format(grace=500), first, second)


@pytest.mark.parametrize("key", "abcd")
def test_the_end_of_the_input_leaves_the_same_clock_in_all_partitions(key: str) -> None:
    first = [("s", {"k": "x", "at": 22}), ("s", {"k": "y", "at": 37})]
    assert not apart(BEHIND.format(grace=11), first, [("s", {"k": key, "at": 23})])


ASKED = """
topology asked (clock = 'input');
stream s (k bigint, at bigint) from memory () key k timestamp at;
table w = aggregate s group by at as k window session (gap = 5 ms) emit changes select count(*) as n;
table late = suppress w until time limit 0 ms;
stream changes = to_stream late;
stream j = join changes with w on changes.k, changes.window_end, timestamp_millis(0) select w.n;
sink j to memory ();
"""


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_closed_session_has_left_its_group_in_partitions_without_rows_too(partitions: int) -> None:
    assert not apart(ASKED, [("s", {"k": 0, "at": 42}), ("s", {"k": 1, "at": 48})], partitions=partitions, drain=False)


OLDER = """
table t (k string, g string, at bigint) from memory () key k timestamp at materialize versioned (retention = 20 ms);
table n = aggregate t group by g select count(*) as n
  materialize versioned (retention = 5 ms, history = 'complete');
sink n to memory ();
"""


def test_the_time_of_a_group_does_not_know_whether_older_changes_were_of_one_batch() -> None:
    rows = [("x", "", 36), ("a", "g", 25), ("a", "", 29), ("b", "g", 28)]
    assert not apart(OLDER, [("t", {"k": k, "g": g, "at": at}) for k, g, at in rows])
