"""`reorder`: the order in which records go on, what is dropped, what the end of the input and a new length leave."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.oracle import Stores
from tests.random_topologies.test_partitions import PARTITIONS, apart
from tests.runtime.operators.carry.carrying import carried, compiled, epoch, run
from tests.runtime.operators.driving import dropped
from vsc.compiler import check_topology
from vsc.runtime.operators.reorder import places
from vsc.runtime.operators.views.catalog import find_store, open_view
from vsc.runtime.operators.views.question import question
from vsc.runtime.records import NO_WORD, ORDINARY, Order, Origin
from vsc.runtime.state.grace_buffer import key_of, place_of, placed_key
from vsc.testing import TopologyTestDriver

SOURCE = "stream s (k string, v int, at bigint) from memory () key k timestamp at{};"
BEHIND = SOURCE.format(" reorder within 10 ms")
CARRIED = """stream s (k string, v string, at bigint) from memory () key k timestamp at;
stream r = reorder s within 10 ms; sink r to memory ();"""
STATEMENT = SOURCE.format("") + "stream r = reorder s within 10 ms;"

Row = tuple[str | None, int | None, int]
"""Key, value, event time."""


def piped(driver: TopologyTestDriver, rows: list[Row], node: str) -> list[tuple[Any, Any, int]]:
    for k, v, at in rows:
        driver.pipe("s", {"k": k, "v": v, "at": at})
    return [(r.key["k"], r.value and r.value["v"], r.timestamp) for r in driver.read(node)]


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize(("text", "node"), [(BEHIND, "s"), (STATEMENT, "r")])
def test_records_go_on_by_time_and_place_whatever_their_key(text: str, node: str, partitions: int) -> None:
    with TopologyTestDriver(text + "sink dropped to memory ();", partitions=partitions) as driver:
        rows: list[Row] = [("z", 1, 30), ("y", 2, 25), ("c", 3, 25), ("a", 4, 25), ("b", 5, 21), ("z", 6, 19)]
        assert piped(driver, rows, node) == []
        assert piped(driver, [("a", 7, 20), ("q", 8, 34)], node) == [("a", 7, 20), ("b", 5, 21)]
        assert piped(driver, [("q", 9, 35)], node) == [("y", 2, 25), ("c", 3, 25), ("a", 4, 25)]
        assert dropped(driver) == {node: {"out_of_order": 1}}
        assert driver.metrics()["grace_needed"] == {node: 11}
        lost = [letter.value for letter in driver.read("dropped")]
        assert [(one["node"], one["reason"], one["key"]) for one in lost if one] == [
            (node, "out_of_order", '{"k":"z"}')
        ]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_behind_the_end_of_the_input_nothing_goes_back(partitions: int) -> None:
    with TopologyTestDriver(STATEMENT, partitions=partitions) as driver:
        piped(driver, [("a", 1, 50), ("b", 2, 45)], "r")
        driver.drain()
        assert piped(driver, [], "r") == [("b", 2, 45), ("a", 1, 50)]
        driver.restart()
        assert piped(driver, [("c", 3, 49), ("d", 4, 50), ("e", 5, 51)], "r") == [("d", 4, 50)]
        assert dropped(driver) == {"r": {"out_of_order": 1}}
        assert piped(driver, [("c", 6, 61)], "r") == [("e", 5, 51)]


def test_records_without_a_value_or_a_key_wait_too() -> None:
    text = """table t (k string, v int, at bigint) from memory () key k timestamp at;
    stream s (id string, k string, at bigint) from memory () key id timestamp at;
    stream changes = reorder c within 10 ms; stream c = to_stream t;
    stream j = left join s with t on s.k select id, v; stream o = reorder j within 10 ms;"""
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "v": 1, "at": 20})
        driver.delete("t", {"k": "b"}, timestamp=15)
        driver.delete("t", {"k": "a"}, timestamp=21)
        driver.pipe("t", {"k": "b", "v": 2, "at": 60})
        assert [(r.key["k"], r.value, r.timestamp) for r in driver.read("changes")] == [
            ("b", None, 15), ("a", {"v": 1, "at": 20}, 20), ("a", None, 21),
        ]  # fmt: skip
        for id, k, at in (("x", None, 5), ("y", "a", 4), ("z", "a", 15)):
            driver.pipe("s", {"id": id, "k": k, "at": at})
            driver.restart()
        assert [(r.key["k"], r.timestamp) for r in driver.read("o")] == [("a", 4), (None, 5)]


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_table_of_reordered_records_is_never_out_of_order(partitions: int) -> None:
    text = BEHIND + "table t = to_table s materialize versioned (retention = 1 day); stream c = to_stream t;"
    with TopologyTestDriver(text, partitions=partitions) as driver:
        rows: list[Row] = [("a", n, at) for n, at in enumerate((10, 3, 12, 7, 9, 20, 11, 15, 30))]
        found = piped(driver, rows, "c")
        assert [at for _, _, at in found] == [3, 7, 9, 10, 11, 12, 15, 20]
        assert driver.metrics()["dropped_records"] == {}


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_versions_of_an_aggregate_of_reordered_records_are_its_history(partitions: int) -> None:
    """So `vsc check` does not warn of them (VSC311)."""
    rng = random.Random(5)
    rows = [(f"k{n % 5}", n, 10 * n + rng.randrange(90)) for n in range(60)]
    text = SOURCE.format(" reorder within 100 ms") + (
        "stream some = filter s where v % 7 <> 0; stream moved = rekey some by v % 3 as g;"
        "table sums = aggregate moved group by g select sum(v) as v, count(*) as n"
        "  materialize versioned (retention = 1 hour);"
        "stream j = join s with sums on v % 3 select n; sink j to noop ();"
    )
    assert "VSC311" not in {one.code for one in check_topology(text)}
    with TopologyTestDriver(text, partitions=partitions) as driver:
        for row in rows:
            driver.pipe("s", dict(zip("kv", row[:2], strict=True)) | {"at": row[2]})
        driver.drain()
        assert driver.metrics()["dropped_records"] == {}
        store = driver.store("sums")
        for time in range(0, 700, 7):
            for group in range(3):
                values = [v for _, v, at in rows if at <= time and v % 7 and v % 3 == group]
                found = store.get({"g": group}, as_of=time)
                assert (found and found.value) == ({"v": sum(values), "n": len(values)} if values else None)


def test_what_time_has_released_is_put_in_order_as_well() -> None:
    text = """topology released;
    table t (k string, n int, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 day);
    stream s (k string, v int, at bigint) from memory () key k timestamp at;
    stream j = left join s with t grace 5 ms select v; stream i = map s select v; stream both = merge j, i;
    stream r = reorder both within 8 ms; table l = aggregate r group by 1 as one select collect_list(v) as vs;
    sink l to memory (); sink r to memory ();"""
    rows = [("s", {"k": k, "v": v, "at": at}) for k, v, at in (("b", 1, 9), ("a", 2, 9), ("c", 3, 4), ("a", 4, 30))]
    assert not apart(text, rows[:2], rows[2:], partitions=3)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(("within", "expected"), [(4, [13, 18, 22, 22]), (25, [12, 13, 18, 22, 22])])
def test_a_new_length_lets_nothing_go_back(within: int, expected: list[int], partitions: int) -> None:
    old, new = compiled(CARRIED), compiled(CARRIED.replace("10 ms", f"{within} ms"))
    stores = Stores()
    first = run(old, [epoch(old, [("s", "a", "1", 10), ("s", "b", "2", 13), ("s", "a", "3", 22)])], stores, 2)
    assert [time for records in first["r"].values() for time, _ in records] == [10]
    moved = carried(old, new, stores, 2, partitions)
    rows = [("s", "c", "4", 11), ("s", "c", "5", 12), ("s", "d", "6", 18), ("s", "e", "7", 22), ("s", "e", "8", 47)]
    found = run(new, [epoch(new, rows, start=3)], moved, partitions)["r"]
    assert sorted(time for records in found.values() for time, _ in records) == expected


@pytest.mark.parametrize("key", ["", "key k"])
def test_records_without_a_key_move_to_other_partitions(key: str) -> None:
    """Without key columns, or with a null in the key that a left join has kept."""
    text = f"""stream s (k string, v string, at bigint) from memory () {key} timestamp at;
    table t (k string, w string, at bigint) from memory () key k timestamp at;
    stream j = left join s with t on nullif(s.v, 'x') select s.v;
    stream r = reorder {"j" if key else "s"} within 10 ms; sink r to memory ();"""
    plan, stores = compiled(text), Stores()
    run(plan, [epoch(plan, [("s", "a", "x", 10), ("s", "b", "y", 12)])], stores, 2)
    moved = carried(plan, plan, stores, 2, 5)
    found = run(plan, [epoch(plan, [("s", "c", "z", 30)], start=2)], moved, 5)["r"]
    assert sorted(time for records in found.values() for time, _ in records) == [10, 12]


def test_the_store_shows_what_waits() -> None:
    with TopologyTestDriver(STATEMENT) as driver:
        piped(driver, [("b", 1, 30), ("a", None, 22), ("c", 3, 21)], "r")
        store = find_store(driver.plan, "r#waiting")
        view = open_view(driver.plan, store, driver._open(1, 0), driver._runtime.starts)
        assert (view.stream_time, view.held, view.rows()) == (30, 3, 3)
        shown = [(entry.key, entry.value, entry.extra) for entry in view.answer(question(store))]
        assert shown == [(("c",), (3, 21), (21, 31)), (("a",), (None, 22), (22, 32)), (("b",), (1, 30), (30, 40))]


def test_places_compare_like_the_order() -> None:
    origins = (Origin("s", 1, "p\0a"), Origin("s", 1, "p"), Origin("t", 0, "z"))
    path, none = [[3], [1], [1], [1], [2], [2]], [NO_WORD, NO_WORD]
    moment = [[ORDINARY, 0, 0, 0, *none], [ORDINARY, 0, 0, 0, *none], [5, 2, 9, 0, 7, NO_WORD], [5, 2, 9, 0, 7, -3],
              [5, 1, 9, 0, 8, 8], [ORDINARY, 0, 0, 0, *none]]  # fmt: skip

    def array(values: Any) -> Any:
        return np.array(values, dtype=np.int64)

    order = Order(array([1] * 6), np.array([0, 1, 2, 2, 2, 2], np.int32), array([-4, 300, 0, 0, 0, 1]), array(path),
                  array(moment))  # fmt: skip
    found = places(array([7] * 6), order, array([1] * 6), origins)
    assert sorted(range(6), key=found.__getitem__) == [4, 2, 3, 5, 1, 0]
    assert [place_of(placed_key(place, b"a\0\0b")) for place in found] == found
    assert {key_of(placed_key(place, b"a\0\0b")) for place in found} == {b"a\0\0b"}
