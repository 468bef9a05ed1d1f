"""`explode`: a record for each element of an array, or for each entry of a map, in its order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vsc.testing import TopologyTestDriver

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT = """stream s (k string, counts map<string, int>) from memory () key k;
stream entries = explode s by counts as entry;
stream words = map entries select entry.key as word, entry.value as many;"""


def test_the_entries_of_a_map() -> None:
    with TopologyTestDriver(TEXT) as driver:
        driver.pipe("s", {"k": "a", "counts": {"x": 1, "b": None}}, timestamp=5)
        driver.pipe("s", {"k": "b", "counts": {}}, timestamp=6)
        driver.pipe("s", {"k": "c", "counts": None}, timestamp=7)
        driver.pipe("s", {"k": "d", "counts": {"": 2}}, timestamp=8)
        found = [(r.key["k"], r.value["word"], r.value["many"], r.timestamp) for r in driver.read("words") if r.value]
    assert found == [("a", "x", 1, 5), ("a", "b", None, 5), ("d", "", 2, 8)]


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ("(nth, line)", [{"n": 7, "nth": 0, "line": "x"}, {"n": 7, "nth": 1, "line": "y"}]),
        ("(n, items)", [{"n": 0, "items": "x"}, {"n": 1, "items": "y"}]),
        ("(line, n)", [{"n": "x", "line": 0}, {"n": "y", "line": 1}]),
    ],
)
def test_the_positions_of_an_array(names: str, values: list[dict[str, object]]) -> None:
    text = f"""stream s (k string, n bigint, items array<string>) from memory () key k;
    stream lines = explode s by items as {names};"""
    with TopologyTestDriver(text) as driver:
        for at, items in enumerate((["x", "y"], [], None, [None])):
            driver.pipe("s", {"k": "a", "n": 7, "items": items}, timestamp=at)
        found = [(record.timestamp, record.value or {}) for record in driver.read("lines")]
    assert [(at, {name: row[name] for name in values[0]}) for at, row in found[:2]] == [(0, row) for row in values]
    ((at, last),) = found[2:]
    position, element = names.strip("()").split(", ")
    assert (at, last[position], last[element]) == (3, 0, None)


TABLE = """table t (k string, n bigint, items array<string>) from memory () key k {kept};
table lines = explode t by items as (line, items) {own};
"""


def test_a_changed_array_of_a_table_changes_what_differs_and_removes_what_is_gone() -> None:
    with TopologyTestDriver(TABLE.format(kept="", own="materialize")) as driver:
        steps: list[tuple[int, list[str | None] | None]] = [(1, ["a", "b"]), (2, ["a", "c", None]), (3, ["a", "c"])]
        for at, items in (*steps, (4, None), (5, ["x"]), (6, [])):
            driver.pipe("t", {"k": "k", "n": 7, "items": items}, timestamp=at)
        found = [(r.timestamp, r.key["line"], r.value and r.value["items"]) for r in driver.read("lines")]
        left = [driver.store("lines").get({"k": "k", "line": line}) for line in range(3)]
    assert found == [
        (1, 0, "a"), (1, 1, "b"), (2, 1, "c"), (2, 2, None), (3, 2, None), (4, 0, None), (4, 1, None), (5, 0, "x"),
        (6, 0, None),
    ]  # fmt: skip
    assert left == [None, None, None]


def test_a_row_of_a_table_takes_its_elements_with_it() -> None:
    with TopologyTestDriver(TABLE.format(kept="", own="")) as driver:
        driver.pipe("t", {"k": "a", "n": 1, "items": ["x", "y"]}, timestamp=1)
        driver.pipe("t", {"k": "b", "n": 1, "items": ["x"]}, timestamp=2)
        driver.pipe("t", {"k": "a", "n": 2, "items": ["x", "y"]}, timestamp=3)
        driver.delete("t", {"k": "a"}, timestamp=4)
        found = [(r.timestamp, *r.key.values(), r.value and r.value["n"]) for r in driver.read("lines")]
    assert found == [
        (1, "a", 0, 1), (1, "a", 1, 1), (2, "b", 0, 1), (3, "a", 0, 2), (3, "a", 1, 2), (4, "a", 0, None),
        (4, "a", 1, None),
    ]  # fmt: skip


def test_a_late_row_of_a_versioned_table_changes_no_element() -> None:
    with TopologyTestDriver(TABLE.format(kept="materialize versioned (retention = 1 hour)", own="")) as driver:
        driver.pipe("t", {"k": "a", "n": 1, "items": ["x"]}, timestamp=10)
        driver.pipe("t", {"k": "a", "n": 1, "items": ["late", "later"]}, timestamp=5)
        assert [(r.timestamp, r.key["line"], r.value and r.value["items"]) for r in driver.read("lines")] == [
            (10, 0, "x")
        ]
        assert driver.metrics()["dropped_records"] == {"lines": {"out_of_order": 1}}


def test_the_elements_of_windows_are_rows_of_these_windows() -> None:
    text = """stream s (k string, v string, at bigint) from memory () key k timestamp at;
    table w = aggregate s group by k window tumbling (size = 10 ms) select collect_set(v) as seen;
    table rows = explode w by seen as (nth, seen);
    table closed = suppress rows until window closes;"""
    with TopologyTestDriver(text) as driver:
        for at, v in ((1, "a"), (2, "b"), (12, "c"), (30, "d")):
            driver.pipe("s", {"k": "k", "v": v, "at": at})
        found = [(*r.key.values(), r.value and r.value["seen"]) for r in driver.read("closed")]
    moments = [EPOCH + timedelta(milliseconds=ms) for ms in (0, 10, 20)]
    assert found == [
        ("k", 0, *moments[:2], "a"), ("k", 1, *moments[:2], "b"), ("k", 0, *moments[1:], "c"),
    ]  # fmt: skip


def test_rows_equal_but_for_the_sign_of_a_zero_differ() -> None:
    text = """table t (k string, xs array<double>) from memory () key k;
    table rows = explode t by xs as (nth, xs);"""
    with TopologyTestDriver(text) as driver:
        for at, xs in ((1, [0.0, float("nan")]), (2, [-0.0, float("nan")])):
            driver.pipe("t", {"k": "k", "xs": xs}, timestamp=at)
        assert [(r.timestamp, r.key["nth"]) for r in driver.read("rows")] == [(1, 0), (1, 1), (2, 0)]


@pytest.mark.parametrize("clock", ["input", "records"])
def test_the_newest_elements_are_those_of_the_newest_row_by_arrival(clock: str) -> None:
    text = f"topology t (clock = '{clock}');" + TABLE.format(kept="", own="materialize versioned (retention = 1 hour)")
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "n": 1, "items": ["x", "y"]}, timestamp=10)
        driver.pipe("t", {"k": "a", "n": 1, "items": ["late"]}, timestamp=5)
        found = [driver.store("lines").get({"k": "a", "line": line}) for line in range(2)]
    assert [row and row.value["items"] for row in found] == ["late", None]
