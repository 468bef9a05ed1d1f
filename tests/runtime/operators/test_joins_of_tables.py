"""Joins of tables, streams made of them, and streams that give several records: what the recordings do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

STAFF = "table staff (id string, boss string, n int) from memory () key id;\n"
DOCS = "stream docs (id string, words array<string>, n int) from memory () key id;\n"
A_AND_B = """
table a (k string, v int) from memory () key k materialize versioned (retention = 1 hour);
table b (k string, v int) from memory () key k;
"""


def found(driver: TopologyTestDriver, node: str) -> list[tuple[Any, ...]]:
    """The records of a node since the last question: key columns, the other columns or None, time."""
    return [
        (*r.key.values(), None if r.value is None else tuple(r.value.values()), r.timestamp) for r in driver.read(node)
    ]


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_answer_to_a_left_row_that_has_changed_is_void(partitions: int) -> None:
    text = (
        STAFF + "table t = join staff as s with staff as b on s.boss select s.n as own, b.n as boss; sink t to noop ();"
    )
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("staff", {"id": "a", "boss": "a", "n": 1}, timestamp=1)
        driver.pipe("staff", {"id": "b", "boss": "a", "n": 2}, timestamp=2)
        assert found(driver, "t") == [("a", (1, 1), 1), ("b", (2, 1), 2)]
        driver.pipe("staff", {"id": "a", "boss": "a", "n": 3}, timestamp=3)
        assert found(driver, "t") == [("b", (2, 3), 3), ("a", (3, 3), 3)]
        driver.pipe("staff", {"id": "a", "boss": "a", "n": 3}, timestamp=4)  # the row is what it was: both are valid
        assert found(driver, "t") == [("a", (3, 3), 4), ("b", (2, 3), 4), ("a", (3, 3), 4)]
        driver.delete("staff", {"id": "a"}, timestamp=5)
        assert found(driver, "t") == [("b", None, 5), ("a", None, 5)]


def test_a_left_row_without_foreign_key_is_kept_by_a_left_join() -> None:
    text = STAFF + (
        "table t = left join staff as s with staff as b on s.boss select s.n as own, b.n as boss; sink t to noop ();"
    )
    with TopologyTestDriver(text) as driver:
        driver.pipe("staff", {"id": "a", "boss": None, "n": 1}, timestamp=1)
        driver.delete("staff", {"id": "a"}, timestamp=2)
        assert found(driver, "t") == [("a", (1, None), 1), ("a", None, 2)]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("mode", "on"), [("", ""), ("left ", ""), ("outer ", ""), ("", " on l.ref"), ("left ", " on l.ref")]
)
def test_the_event_time_of_a_result_is_that_of_the_later_row(mode: str, on: str, partitions: int) -> None:
    text = f"""
    table l (k string, ref string) from memory () key k;
    table r (k string) from memory () key k;
    table j = {mode}join l with r{on} select event_time() as t, event_time(l) as one, event_time(r) as other;
    sink j to noop ();
    """
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("l", {"k": "x", "ref": "x"}, timestamp=5)
        driver.pipe("r", {"k": "x"}, timestamp=9)
        driver.pipe("l", {"k": "x", "ref": "x"}, timestamp=7)
        driver.pipe("l", {"k": "x", "ref": "x"}, timestamp=11)
        driver.pipe("r", {"k": "y"}, timestamp=12)
        rows = [r.value for r in driver.read("j")]
    times = [tuple(None if t is None else t.microsecond // 1000 for t in row.values()) for row in rows if row]
    alone = [] if mode == "" else [(5, 5, None)]
    assert times == [*alone, (9, 5, 9), (9, 7, 9), (11, 11, 9), *([(12, None, 12)] if mode == "outer " else [])]


def test_what_is_not_the_newest_of_a_versioned_side_is_dropped_and_counted() -> None:
    text = A_AND_B + "table j = outer join a with b select a.v as a, b.v as b; sink j to noop ();"
    with TopologyTestDriver(text) as driver:
        driver.pipe("a", {"k": "x", "v": 1}, timestamp=10)
        driver.pipe("a", {"k": "x", "v": 2}, timestamp=9)
        driver.pipe("b", {"k": "x", "v": 3}, timestamp=12)
        driver.pipe("b", {"k": "x", "v": 4}, timestamp=5)
        assert found(driver, "j") == [("x", (1, None), 10), ("x", (1, 3), 12), ("x", (1, 4), 10)]
        assert driver.metrics()["dropped_records"] == {"j": {"out_of_order": 1}}


def test_a_join_without_store_is_looked_into_by_joining_anew() -> None:
    text = (
        A_AND_B
        + """
    stream s (k string, n int) from memory () key k;
    table j = left join a with b select a.v + coalesce(b.v, 0) as v;
    stream r = left join s with j select n, j.v as v, event_time(j) as since;
    sink r to noop ();
    """
    )
    with TopologyTestDriver(text) as driver:
        driver.pipe("a", {"k": "x", "v": 1}, timestamp=10)
        driver.pipe("b", {"k": "x", "v": 5}, timestamp=20)
        driver.pipe("b", {"k": "y", "v": 5}, timestamp=20)
        driver.pipe("s", {"k": "x", "n": 1}, timestamp=5)
        driver.pipe("s", {"k": "y", "n": 2}, timestamp=25)
        (first, second) = driver.read("r")
        assert (first.value or {})["v"] == 6
        assert (first.value or {})["since"].timestamp() == 0.02
        assert second.value == {"n": 2, "v": None, "since": None}


def test_explode_gives_a_record_for_each_element() -> None:
    text = DOCS + (
        "stream w = explode docs by words as word; stream n = filter w where n > 0;"
        "stream r = rekey n by word; table c = aggregate r group by word select count(*) as c, last(n) as n;"
        "sink c to noop (); sink w to noop ();"
    )
    with TopologyTestDriver(text) as driver:
        driver.pipe("docs", {"id": "1", "words": ["b", "a", "b"], "n": 1}, timestamp=1)
        driver.pipe("docs", {"id": "2", "words": [], "n": 1}, timestamp=2)
        driver.pipe("docs", {"id": "3", "words": None, "n": 1}, timestamp=3)
        driver.delete("docs", {"id": "4"}, timestamp=4)
        driver.pipe("docs", {"id": "5", "words": ["a", None], "n": 2}, timestamp=5)
        assert [(r.value or {})["word"] for r in driver.read("w")] == ["b", "a", "b", "a", None]
        assert found(driver, "c") == [("b", (1, 1), 1), ("a", (1, 1), 1), ("b", (2, 1), 1), ("a", (2, 2), 5)]
        dropped = driver.metrics()["dropped_records"]
        assert dropped["w"] == {"no_value": 1}
        assert dropped["c"] == {"null_join_key": 1}


def test_merged_columns_go_by_name() -> None:
    text = """
    stream a (k string, v int, w string) from memory () key k;
    stream b (k string, w string, v int) from memory () key k;
    stream m = merge a, b;
    sink m to noop ();
    """
    with TopologyTestDriver(text) as driver:
        driver.pipe("a", {"k": "x", "v": 1, "w": "p"}, timestamp=1)
        driver.pipe("b", {"k": "x", "v": 2, "w": "q"}, timestamp=2)
        driver.delete("b", {"k": "x"}, timestamp=3)
        assert found(driver, "m") == [("x", (1, "p"), 1), ("x", (2, "q"), 2), ("x", None, 3)]


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize(("mode", "expected"), [("", ["1-one"]), ("left ", ["1-one", "2-", "3-"])])
def test_every_partition_sees_a_global_table_whole(partitions: int, mode: str, expected: list[str]) -> None:
    text = f"""
    global table g (id int, name string) from memory () key id;
    stream s (k string, id int) from memory () key k;
    stream j = {mode}join s with g on s.id select cast(s.k as string) || '-' || coalesce(g.name, '') as v;
    sink j to noop ();
    """
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("g", {"id": 7, "name": "one"}, timestamp=1)
        assert len(driver.read("g")) == 1
        for key, wanted in (("1", 7), ("2", 8), ("3", None)):
            driver.pipe("s", {"k": key, "id": wanted}, timestamp=2)
        assert [(r.value or {})["v"] for r in driver.read("j")] == expected
        assert driver.metrics()["missed_lookups"] == {"j": {"no_record": 1}}
        null_keys = {} if mode else {"j": {"null_join_key": 1}}
        assert driver.metrics()["dropped_records"] == null_keys


def test_a_row_goes_from_group_to_group() -> None:
    text = STAFF + ("table c = aggregate staff group by boss select count(*) as c, sum(n) as n; sink c to noop ();")
    with TopologyTestDriver(text) as driver:
        driver.pipe("staff", {"id": "a", "boss": "x", "n": 1}, timestamp=1)
        driver.pipe("staff", {"id": "b", "boss": "x", "n": 2}, timestamp=2)
        driver.pipe("staff", {"id": "a", "boss": "y", "n": 5}, timestamp=3)
        driver.pipe("staff", {"id": "b", "boss": None, "n": 5}, timestamp=4)
        assert found(driver, "c") == [
            ("x", (1, 1), 1), ("x", (2, 3), 2), ("x", (1, 2), 3), ("y", (1, 5), 3), ("x", None, 4)
        ]  # fmt: skip
        assert driver.metrics()["dropped_records"] == {"c": {"null_join_key": 1}}


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_table_meets_its_own_aggregate_as_it_was_first(partitions: int) -> None:
    text = STAFF + (
        "table c = aggregate staff group by id select sum(n) as n;"
        "table j = join staff with c select staff.n as own, c.n as sum; sink j to noop ();"
    )
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("staff", {"id": "a", "boss": "x", "n": 1}, timestamp=1)
        driver.pipe("staff", {"id": "a", "boss": "x", "n": 2}, timestamp=2)
        assert found(driver, "j") == [("a", (1, 1), 1), ("a", (2, 1), 2), ("a", (2, 2), 2)]


@pytest.mark.parametrize("store", ["", " materialize unversioned", " materialize versioned (retention = 1 hour)"])
@pytest.mark.parametrize("form", ["a with a as r", "a with odd as r", "odd with a as r"])
def test_a_row_that_both_sides_lose_at_once_leaves_the_join(form: str, store: str) -> None:
    text = (
        "table a (k string, v int, gone boolean) from memory () key k delete when gone;\n"
        f"table odd = filter a where v % 2 = 1;\ntable t = join {form} select v as v{store}; sink t to noop ();"
    ).replace("select v as", "select r.v as")
    with TopologyTestDriver(text) as driver:
        driver.pipe("a", {"k": "x", "v": 1}, timestamp=1)
        assert found(driver, "t")[-1] == ("x", (1,), 1)
        driver.pipe("a", {"k": "x", "gone": True}, timestamp=2)
        assert found(driver, "t")[-1] == ("x", None, 2)
        driver.pipe("a", {"k": "y", "gone": True}, timestamp=3)
        assert found(driver, "t") == []


@pytest.mark.parametrize("store", ["", " materialize unversioned"])
def test_what_was_never_sent_or_is_deleted_already_is_not_deleted(store: str) -> None:
    text = (
        "table l (k string, v int, gone boolean) from memory () key k delete when gone;\n"
        "table r (k string, v int, gone boolean) from memory () key k delete when gone;\n"
        "table both = left join l with r select l.v as v, r.v as w;\n"
        f"table t = join both with r select r.v as v{store};\nsink t to noop ();"
    )
    given = [("l", 1), ("r", 3), ("r", None), ("l", None), ("l", 2), ("l", None), ("r", 5), ("r", None)]
    expected = [("x", (3,), 1), ("x", (3,), 1), ("x", None, 2)]
    with TopologyTestDriver(text) as driver:
        for at, (table, v) in enumerate(given):
            driver.pipe(table, {"k": "x", "v": v, "gone": v is None}, timestamp=at)
        assert found(driver, "t") == expected
