"""Complete histories are right as of every time, whatever the order, cuts, restarts and partitions.

Set ``VSC_HISTORIES`` to run more seeds (``1000``) or others (``5000:5100``) than the usual few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.histories.law import Case, broken
from tests.histories.shapes import SHAPES
from tests.random_topologies.seeds import seeds
from vsc.testing import TopologyTestDriver


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_the_table_as_of_every_time_is_its_operation_over_its_inputs_as_of_that_time(shape: str) -> None:
    asked, together = seeds("VSC_HISTORIES", 2), SHAPES[shape].together
    for some in (asked[begin : begin + together] for begin in range(0, len(asked), together)):
        assert not list(broken(Case.of(some, shape))), some


JOINED = """
table a (k string, x string, at bigint) from memory () key k timestamp at delete when x is null
  materialize versioned (retention = {retention});
table b (k string, y string, at bigint) from memory () key k timestamp at delete when y is null
  materialize versioned (retention = {retention});
table j = {mode} join a with b select a.x as x, b.y as y
  materialize versioned (retention = {retention}, history = 'complete');
stream s (k string, at bigint) from memory () key k timestamp at;
stream found = left join s with j select j.x as x, j.y as y;
sink j to memory ();
sink found to memory ();
"""
Row = tuple[str, str | None, int]


def joined(rows: Sequence[Row], mode: str = "", retention: str = "1 hour") -> list[list[Any]]:
    """What goes out at each row of `a` or `b`."""
    found = []
    with TopologyTestDriver(JOINED.format(mode=mode, retention=retention)) as driver:
        for name, value, at in rows:
            driver.pipe(name, {"k": "k", "x" if name == "a" else "y": value, "at": at})
            records = driver.read("j")
            found.append([(r.value and (r.value["x"], r.value["y"]), r.timestamp) for r in records])
    return found


def test_the_first_example_of_kip_914() -> None:
    rows = [("a", "a0", 0), ("a", "a5", 5), ("b", "b2", 2), ("b", "b3", 3), ("b", "b4", 4), ("a", "a1", 1)]
    assert joined([*rows, ("a", "a1", 1)])[2:] == [
        [(("a0", "b2"), 2), (("a5", "b2"), 5)],
        [(("a0", "b3"), 3), (("a5", "b3"), 5)],
        [(("a0", "b4"), 4), (("a5", "b4"), 5)],
        [(("a1", "b2"), 2), (("a1", "b3"), 3), (("a1", "b4"), 4)],
        [],
    ]


def test_a_left_row_that_comes_behind_the_end_of_its_partner() -> None:
    rows: list[Row] = [("a", "a5", 5), ("b", "b7", 7), ("b", None, 20), ("a", "a10", 10)]
    assert joined(rows, "left") == [
        [(("a5", None), 5)],
        [(("a5", "b7"), 7)],
        [(("a5", None), 20)],
        [(("a10", "b7"), 10), (("a10", None), 20)],
    ]


def test_nothing_goes_out_below_the_retention() -> None:
    rows = [("b", "b0", 0), ("a", "a4", 4), ("a", "a30", 30), ("a", "a25", 25), ("a", "a19", 19)]
    assert joined(rows, retention="10 ms")[2:] == [[(("a30", "b0"), 30)], [(("a25", "b0"), 25)], []]
    late = [("b", "b30", 30), ("a", "a15", 15)]  # b is newer: a row of a is cut to what the join still promises
    assert joined([("a", "a0", 0), *late], "left", "10 ms")[2] == [(("a15", None), 20), (("a15", "b30"), 30)]


def test_a_stream_finds_the_row_of_its_time() -> None:
    with TopologyTestDriver(JOINED.format(mode="left", retention="1 hour")) as driver:
        for name, value, at in [("a", "a5", 5), ("b", "b7", 7), ("b", None, 20), ("a", "a10", 10)]:
            driver.pipe(name, {"k": "k", "x" if name == "a" else "y": value, "at": at})
        for at in (30, 12, 8):
            driver.pipe("s", {"k": "k", "at": at})
        found = [record.value for record in driver.read("found")]
    assert found == [{"x": "a10", "y": None}, {"x": "a10", "y": "b7"}, {"x": "a5", "y": "b7"}]


ORDERS = """
table orders (id string, state string, n bigint, at bigint) from memory () key id timestamp at
  delete when state is null materialize versioned (retention = 1 hour);
table states = aggregate orders group by state select count(*) as n, sum(n) as total
  materialize versioned (retention = 1 hour, history = 'complete');
sink states to memory ();
"""


def counted(rows: list[tuple[str, str | None, int, int]]) -> list[list[Any]]:
    """What goes out at each order."""
    found = []
    with TopologyTestDriver(ORDERS) as driver:
        for key, state, n, at in rows:
            driver.pipe("orders", {"id": key, "state": state, "n": n, "at": at})
            records = driver.read("states")
            found.append([(r.key["state"], r.value and (r.value["n"], r.value["total"]), r.timestamp) for r in records])
    return found


def test_an_order_that_comes_behind_the_end_of_its_group() -> None:
    assert counted([("o1", "A", 1, 1), ("o1", "B", 1, 4), ("o2", "A", 1, 2)]) == [
        [("A", (1, 1), 1)],
        [("A", None, 4), ("B", (1, 1), 4)],
        [("A", (2, 2), 2), ("A", (1, 1), 4)],
    ]


def test_a_late_row_holds_until_the_next_one_of_its_key() -> None:
    assert counted([("o", "A", 1, 0), ("o", "A", 1, 10), ("o", "A", 2, 5), ("o", "A", 2, 5)]) == [
        [("A", (1, 1), 0)], [], [("A", (1, 2), 5), ("A", (1, 1), 10)], [],
    ]  # fmt: skip


def test_the_last_value_is_that_of_the_row_that_began_last() -> None:
    text = ORDERS.replace("count(*) as n, sum(n) as total", "last(n) ignore nulls as n, first(n) ignore nulls as total")
    with TopologyTestDriver(text) as driver:
        for key, n, at in [("o1", 4, 0), ("o1", None, 11), ("o2", 0, 0)]:
            driver.pipe("orders", {"id": key, "state": "A", "n": n, "at": at})
        found = [(r.timestamp, r.value and tuple(r.value.values())) for r in driver.read("states")]
    assert found == [(0, (4, 4)), (11, (None, None)), (0, (0, 4)), (11, (0, 0))]


def test_results_of_results_that_are_too_old_for_all_of_them() -> None:
    text = ORDERS.replace("retention = 1 hour, history", "retention = 10 ms, history") + (
        "table sizes = aggregate states group by n select count(*) as groups "
        "materialize versioned (retention = 10 ms, history = 'complete'); sink sizes to memory ();"
    )
    with TopologyTestDriver(text) as driver:
        for key, at in [("o1", 50), ("o2", 100), ("o1", 5)]:
            driver.pipe("orders", {"id": key, "state": "A", "n": 1, "at": at})
        found = [(r.key["n"], r.timestamp, r.value and r.value["groups"]) for r in driver.read("sizes")]
    assert found == [(1, 50, 1), (1, 100, None), (2, 100, 1)]


def test_what_is_lost_is_shown_without_what_histories_add() -> None:
    with TopologyTestDriver(
        ORDERS.replace("sum(n)", "sum(10 % n)") + "sink dropped to memory ();", on_error="drop"
    ) as d:
        d.pipe("orders", {"id": "o", "state": "A", "n": 0, "at": 7})
        (record,) = d.read("dropped")
    assert record.value is not None
    assert (record.value["node"], record.value["key"]) == ("states", '{"state":"A"}')
    assert record.value["value"] == '{"new#id":"o","new#state":"A","new#n":0,"new#at":7}'


PURCHASES = """
table orders (id string, customer string, at bigint) from memory () key id timestamp at
  delete when customer is null materialize versioned (retention = 1 hour);
table customers (customer string, name string, at bigint) from memory () key customer timestamp at
  delete when name is null materialize versioned (retention = 1 hour);
table j = {mode} join orders with customers on customer select customers.name as name
  materialize versioned (retention = 1 hour, history = 'complete');
sink j to memory ();
"""


def purchased(rows: Sequence[tuple[str, str, str | None, int]], mode: str = "") -> list[list[Any]]:
    """What goes out at each order or customer."""
    found = []
    with TopologyTestDriver(PURCHASES.format(mode=mode)) as driver:
        for name, key, value, at in rows:
            columns = ("id", "customer") if name == "orders" else ("customer", "name")
            driver.pipe(name, {columns[0]: key, columns[1]: value, "at": at})
            found.append(
                [(r.key["id"], (r.value and r.value["name"]) or str(r.value), r.timestamp) for r in driver.read("j")]
            )
    return found


def test_a_customer_that_comes_behind_the_order() -> None:
    rows = [("customers", "c", "old", 0), ("orders", "o", "c", 5), ("customers", "c", "new", 2)]
    assert purchased(rows) == [[], [("o", "old", 5)], [("o", "new", 5)]]


def test_the_key_and_the_rows_of_both_sides_change_with_time() -> None:
    rows = [
        ("customers", "c", "C", 0), ("customers", "d", "D", 0), ("orders", "o", "c", 5), ("orders", "o", "d", 20),
        ("customers", "c", "C10", 10), ("orders", "o", "d", 8), ("customers", "d", None, 15), ("orders", "o", None, 12),
    ]  # fmt: skip
    assert purchased(rows, "left")[2:] == [
        [("o", "C", 5)],
        [("o", "D", 20)],
        [("o", "C10", 10)],
        [("o", "D", 8), ("o", "D", 10)],
        [("o", "{'name': None}", 15), ("o", "{'name': None}", 20)],
        [("o", "None", 12), ("o", "None", 15)],
    ]
