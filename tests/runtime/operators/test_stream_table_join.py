"""Stream-table joins: Kafka Streams' own step vectors, and what is counted on the way."""

from __future__ import annotations

import pytest

from tests.runtime.operators.driving import RECORDS, STREAM, UNVERSIONED, VERSIONED, dropped, missed, put, values
from vsc.testing import TopologyTestDriver

JOIN = "stream j = {how} s with t {grace} select s.v || '-' || coalesce(t.v, 'null') as v;"

# The 23 steps of Kafka's StreamTableJoinIntegrationTest: (side, value, time); the stream is s, the table t.
STEPS = [
    ("s", None, 1), ("t", None, 2), ("s", "A", 3), ("t", "a", 4), ("s", "B", 5), ("t", "b", 6), ("s", None, 7),
    ("t", None, 8), ("s", "C", 9), ("t", "c", 10), ("t", None, 11), ("s", None, 12), ("t", None, 13), ("t", "d", 7),
    ("s", "D", 6), ("s", None, 2), ("t", None, 3), ("t", "e", 14), ("s", "E", 15), ("s", None, 10), ("t", None, 9),
    ("s", "F", 4), ("t", "f", 3),
]  # fmt: skip

EXPECTED = {
    ("join", "unversioned", ""): {5: ["B-a@5"], 15: ["D-d@6"], 19: ["E-e@15"]},
    ("left join", "unversioned", ""): {
        3: ["A-null@3"], 5: ["B-a@5"], 9: ["C-null@9"], 15: ["D-d@6"], 19: ["E-e@15"], 22: ["F-null@4"],
    },
    ("join", "versioned", ""): {5: ["B-a@5"], 15: ["D-b@6"], 19: ["E-e@15"], 22: ["F-a@4"]},
    ("left join", "versioned", ""): {
        3: ["A-null@3"], 5: ["B-a@5"], 9: ["C-null@9"], 15: ["D-b@6"], 19: ["E-e@15"], 22: ["F-a@4"],
    },
    ("join", "versioned", "grace 2 ms"): {9: ["B-a@5"], 15: ["D-b@6"], 22: ["F-a@4"]},
    ("left join", "versioned", "grace 2 ms"): {
        5: ["A-null@3"], 9: ["B-a@5"], 15: ["D-b@6"], 19: ["C-null@9"], 22: ["F-a@4"],
    },
}  # fmt: skip


@pytest.mark.parametrize(("how", "store", "grace"), EXPECTED)
def test_kafkas_steps(how: str, store: str, grace: str) -> None:
    table = VERSIONED if store == "versioned" else UNVERSIONED
    with TopologyTestDriver(RECORDS + STREAM + table + JOIN.format(how=how, grace=grace)) as driver:
        found = {}
        for number, (side, value, time) in enumerate(STEPS, start=1):
            put(driver, side, "k", value, time)
            if results := [f"{v}@{t}" for v, t in values(driver, "j")]:
                found[number] = results
    assert found == EXPECTED[how, store, grace]


@pytest.mark.parametrize("grace", ["", "grace 0 ms", "grace 5 ms"])
def test_records_without_value_are_dropped_and_counted(grace: str) -> None:
    with TopologyTestDriver(STREAM + VERSIONED + JOIN.format(how="left join", grace=grace)) as driver:
        put(driver, "s", "k", None, 100)
        put(driver, "s", "k", "x", 1)  # not late: the record without value moved no clock
        driver.drain()
        assert values(driver, "j") == [("x-null", 1)]
        assert dropped(driver) == {"j": {"no_value": 1}}


def test_misses_are_counted_by_reason_with_the_retention_that_would_have_served() -> None:
    text = RECORDS + STREAM + VERSIONED.replace("5 minutes", "10 ms") + JOIN.format(how="left join", grace="")
    with TopologyTestDriver(text) as driver:
        put(driver, "s", "a", "1", 50)  # nothing at all
        put(driver, "t", "a", "x", 100)
        put(driver, "s", "a", "2", 99)  # before the first version
        put(driver, "t", "a", None, 105)
        put(driver, "s", "a", "3", 106)  # deleted
        put(driver, "t", "a", "y", 120)
        put(driver, "s", "a", "4", 104)  # stream time 120 - 10 = 110
        put(driver, "s", "a", "5", 101)
        put(driver, "s", "a", "6", 120)
        assert [v for v, _ in values(driver, "j")] == ["1-null", "2-null", "3-null", "4-null", "5-null", "6-y"]
        assert missed(driver) == {"j": {"no_record": 2, "tombstone": 1, "older_than_retention": 2}}
        assert driver.metrics()["retention_needed"] == {"j": 19}


def test_an_inner_join_counts_its_misses_too() -> None:
    with TopologyTestDriver(STREAM + UNVERSIONED + JOIN.format(how="join", grace="")) as driver:
        put(driver, "s", "a", "1", 5)
        assert values(driver, "j") == []
        assert missed(driver) == {"j": {"no_record": 1}}


AGES = [
    # (versions or rows of t, record's time, max_age, what is found)
    ([("x", 10)], 20, 10, "x"),
    ([("x", 10)], 21, 10, None),
    ([("x", 10)], 10, 0, "x"),
    ([("x", 10)], 11, 0, None),
    ([("x", 10), ("y", 30)], 30, 0, "y"),
]


@pytest.mark.parametrize(("store", "grace"), [(VERSIONED, ""), (VERSIONED, "grace 3 ms"), (UNVERSIONED, "")])
@pytest.mark.parametrize(("rows", "at", "max_age", "found"), AGES)
def test_a_row_may_be_as_old_as_max_age(
    store: str, grace: str, rows: list[tuple[str, int]], at: int, max_age: int, found: str | None
) -> None:
    for how in ("join", "left join"):
        text = STREAM + store + JOIN.format(how=how, grace=f"{grace} max_age {max_age} ms")
        with TopologyTestDriver(text) as driver:
            for value, time in rows:
                put(driver, "t", "a", value, time)
            put(driver, "s", "a", "1", at)
            driver.drain()
            kept = found is not None or how == "left join"
            assert values(driver, "j") == ([(f"1-{found or 'null'}", at)] if kept else [])
            assert missed(driver) == ({} if found else {"j": {"too_old": 1}})


@pytest.mark.parametrize(("store", "found"), [(VERSIONED, "1-null"), (UNVERSIONED, "1-y")])
def test_only_the_row_that_is_found_is_judged_by_its_age(store: str, found: str) -> None:
    text = STREAM + store + JOIN.format(how="left join", grace="max_age 5 ms")
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "t", "a", "y", 30)
        put(driver, "s", "a", "1", 20)  # an unversioned table has but the row of 30, which is later
        assert values(driver, "j") == [(found, 20)]


def test_why_nothing_is_there_comes_before_how_old_it_is() -> None:
    text = STREAM + VERSIONED + JOIN.format(how="left join", grace="max_age 5 ms")
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "t", "a", None, 12)
        put(driver, "s", "a", "1", 100)
        put(driver, "s", "b", "1", 100)
        assert missed(driver) == {"j": {"tombstone": 1, "no_record": 1}}


def test_a_row_that_is_too_old_has_no_event_time_and_no_key() -> None:
    items = "t.k as tk, t.v as tv, event_time(t) as since"
    with TopologyTestDriver(
        STREAM + VERSIONED + f"stream j = left join s with t max_age 5 ms select {items};"
    ) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "s", "a", "1", 16)
        assert [record.value for record in driver.read("j")] == [{"tk": None, "tv": None, "since": None}]


def test_what_was_too_old_is_kept_by_a_sink_of_what_was_missed() -> None:
    text = STREAM + VERSIONED + JOIN.format(how="join", grace="max_age 5 ms") + "sink missed to memory ();"
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "s", "a", "1", 16)
        [letter] = driver.read("missed")
        assert letter.value is not None and letter.value["reason"] == "too_old"


def test_a_row_of_a_global_table_has_the_age_of_its_own_time() -> None:
    text = (
        STREAM
        + "global table t (k string, v string) from memory () key k;"
        + "stream j = left join s with t on s.v max_age 5 ms select t.v as w;"
    )
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        for time in (9, 15, 16):
            put(driver, "s", "k", "a", time)
        assert values(driver, "j") == [("x", 9), ("x", 15), (None, 16)]
        assert missed(driver) == {"j": {"too_old": 1}}


@pytest.mark.parametrize("grace", ["", "grace 3 ms "])
def test_strictly_before_finds_the_version_before_the_record(grace: str) -> None:
    text = STREAM + VERSIONED + JOIN.format(how="left join", grace=f"{grace}strictly before")
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "t", "a", "y", 20)
        for time in (0, 10, 11, 20, 21):
            put(driver, "s", "a", "1", time)
        driver.drain()
        found = [("1-null", 0), ("1-null", 10), ("1-x", 11), ("1-x", 20), ("1-y", 21)]
        assert sorted(values(driver, "j"), key=lambda one: one[1]) == found
        assert missed(driver) == {"j": {"no_record": 2}}


def test_the_age_of_a_row_before_the_record_is_that_at_the_records_time() -> None:
    text = STREAM + VERSIONED + JOIN.format(how="left join", grace="strictly before max_age 5 ms")
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 10)
        put(driver, "s", "a", "1", 15)
        put(driver, "s", "a", "1", 16)
        assert values(driver, "j") == [("1-x", 15), ("1-null", 16)]
        assert missed(driver) == {"j": {"too_old": 1}}


@pytest.mark.parametrize(("clause", "kept"), [("", [("1-null", 4)]), ("drop older_than_retention", [])])
def test_a_left_join_can_drop_what_is_older_than_the_history(clause: str, kept: list[tuple[str, int]]) -> None:
    text = RECORDS + STREAM + VERSIONED.replace("5 minutes", "10 ms") + JOIN.format(how="left join", grace=clause)
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 5)
        put(driver, "t", "a", "y", 120)
        put(driver, "s", "a", "1", 4)
        put(driver, "s", "a", "2", 120)
        put(driver, "s", "b", "3", 120)  # that has no row: it goes on
        assert values(driver, "j") == [*kept, ("2-y", 120), ("3-null", 120)]
        assert missed(driver) == {"j": {"older_than_retention": 1, "no_record": 1}}
        assert dropped(driver) == {}


def test_event_times_of_both_sides() -> None:
    text = STREAM + VERSIONED + "stream j = left join s with t select event_time() as at, event_time(t) as since;"
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "x", 7)
        put(driver, "s", "a", "1", 9)
        put(driver, "s", "b", "1", 9)
        found, missing = driver.read("j")
        assert found.value is not None
        assert [found.value[c].timestamp() for c in ("at", "since")] == [0.009, 0.007]
        assert missing.value is not None
        assert missing.value["since"] is None


def test_a_table_seen_through_filter_and_map_keeps_as_of() -> None:
    text = (
        STREAM
        + VERSIONED
        + "table f = filter t where v <> 'no'; table m = map f select v || '!' as v;"
        + "stream j = left join s with m select s.v || '-' || coalesce(m.v, 'null') as v;"
    )
    with TopologyTestDriver(text) as driver:
        put(driver, "t", "a", "yes", 10)
        put(driver, "t", "a", "no", 20)
        put(driver, "t", "a", "new", 30)
        for time in (15, 25, 35):
            put(driver, "s", "a", "1", time)
        # at 25 the version found fails the predicate: no older one is tried
        assert values(driver, "j") == [("1-yes!", 15), ("1-null", 25), ("1-new!", 35)]
        assert missed(driver) == {"j": {"tombstone": 1}}


def test_two_joins_in_a_row_and_a_key_in_between() -> None:
    text = (
        "stream s (id string, a string) from memory () key id;"
        "table t (a string, b string) from memory () key a materialize versioned (retention = 1 minute);"
        "table u (b string, c string) from memory () key b;"
        "stream j1 = left join s with t on s.a select id, t.b as b;"
        "stream j2 = left join j1 with u on j1.b select id, u.c;"
    )
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"a": "a1", "b": "b1"}, timestamp=0)
        driver.pipe("u", {"b": "b1", "c": "c1"}, timestamp=0)
        driver.pipe("s", {"id": "1", "a": "a1"}, timestamp=5)
        driver.pipe("s", {"id": "2", "a": "a2"}, timestamp=6)
        assert [(r.key, r.value, r.timestamp) for r in driver.read("j2")] == [
            ({"b": "b1"}, {"id": "1", "c": "c1"}, 5), ({"b": None}, {"id": "2", "c": None}, 6),
        ]  # fmt: skip
        assert [(r.key, r.value) for r in driver.read("j1")] == [
            ({"a": "a1"}, {"id": "1", "b": "b1"}), ({"a": "a2"}, {"id": "2", "b": None}),
        ]  # fmt: skip
        assert dropped(driver) == {}
