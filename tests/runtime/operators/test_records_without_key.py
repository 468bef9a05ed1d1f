"""A left join of a stream with a table keeps a record whose key has a null (D26). It has no key from there on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.driving import dropped
from vsc.compiler import compile_topology
from vsc.plan.keyless import nullable_keys
from vsc.testing import TopologyTestDriver

SOURCES = """
table products (sku string, name string, at bigint) from memory ()
key sku timestamp at materialize versioned (retention = 1 hour);
table places (area int, shop string, city string) from memory () key area, shop;
global table codes (code string, text string) from memory () key code;
stream orders (id bigint, sku string, area int, shop string, at bigint) from memory () key id timestamp at;
"""
PRICED = "stream priced = left join orders with products on sku {grace} select id, area, shop, name;"

Rows = list[tuple[dict[str, Any], dict[str, Any] | None, int]]


def given(driver: TopologyTestDriver, node: str) -> Rows:
    return [(record.key, record.value, record.timestamp) for record in driver.read(node)]


def order(driver: TopologyTestDriver, id: int, at: int, sku: str | None = None, **columns: Any) -> None:
    driver.pipe("orders", {"id": id, "sku": sku, "at": at, **columns})


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_second_of_two_left_joins_keeps_what_the_first_did_not_find(partitions: int) -> None:
    text = SOURCES + PRICED.format(grace="") + (
        "table shops (name string, shop string) from memory () key name;"
        "stream placed = left join priced with shops on name select id, shops.shop as found;"
        "stream third = left join placed with shops select id, shops.shop as again;"
    )  # fmt: skip
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("products", {"sku": "s", "name": "soap", "at": 0})
        driver.pipe("shops", {"name": "soap", "shop": "north"}, timestamp=0)
        for number, sku in enumerate(("s", "unknown", None), 1):
            order(driver, number, number, sku)
        assert given(driver, "priced")[1:] == [
            ({"sku": "unknown"}, {"id": 2, "area": None, "shop": None, "name": None}, 2),
            ({"sku": None}, {"id": 3, "area": None, "shop": None, "name": None}, 3),
        ]
        assert given(driver, "placed") == [
            ({"name": "soap"}, {"id": 1, "found": "north"}, 1),
            ({"name": None}, {"id": 2, "found": None}, 2),
            ({"name": None}, {"id": 3, "found": None}, 3),
        ]
        assert [(key, value) for key, value, _ in given(driver, "third")] == [
            ({"name": "soap"}, {"id": 1, "again": "north"}),
            ({"name": None}, {"id": 2, "again": None}),
            ({"name": None}, {"id": 3, "again": None}),
        ]
        assert driver.metrics()["dropped_records"] == {}
        assert driver.metrics()["missed_lookups"] == {"priced": {"no_record": 1}}


def test_of_several_key_columns_each_keeps_its_value() -> None:
    text = SOURCES + (
        "stream placed = left join orders with places on area, upper(shop) as at_shop "
        "select id, places.area as area2, city;"
    )  # fmt: skip
    with TopologyTestDriver(text, partitions=3) as driver:
        driver.pipe("places", {"area": 1, "shop": "A", "city": "Rome"}, timestamp=0)
        order(driver, 1, 1, area=1, shop="a")
        order(driver, 2, 2, area=1)
        order(driver, 3, 3, shop="a")
        assert [(key, value) for key, value, _ in given(driver, "placed")] == [
            ({"area": 1, "at_shop": "A"}, {"id": 1, "area2": 1, "city": "Rome"}),
            ({"area": 1, "at_shop": None}, {"id": 2, "area2": None, "city": None}),
            ({"area": None, "at_shop": "A"}, {"id": 3, "area2": None, "city": None}),
        ]


def test_with_grace_it_goes_out_at_once_and_moves_no_clock() -> None:
    with TopologyTestDriver("topology t (clock = 'records');" + SOURCES + PRICED.format(grace="grace 10 ms")) as driver:
        order(driver, 1, 5, "s")
        order(driver, 2, 100)  # would release the first one
        assert [value["id"] for _, value, _ in given(driver, "priced") if value] == [2]
        driver.pipe("products", {"sku": "s", "name": "soap", "at": 0})
        order(driver, 3, 4)
        assert [value["id"] for _, value, _ in given(driver, "priced") if value] == [3]
        order(driver, 4, 15, "s")
        driver.drain()
        assert [(value["id"], value["name"]) for _, value, _ in given(driver, "priced") if value] == [
            (1, "soap"), (4, "soap"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("stream x = filter priced where id > 0;", True),
        ("stream x = map priced select id;", True),
        ("stream x = explode priced by array(id) as one;", True),
        ("stream x = merge priced, priced;", True),
        ("stream x = left join priced with codes on shop select id;", True),
        ("stream x = left join priced with products select id;", True),
        ("stream x = left join priced with products grace 1 ms select id;", True),
        ("stream x = left join priced with products on shop select id;", True),
        ("stream x = distinct priced by id within 1 ms;", True),
        ("stream x = rekey priced by id;", True),
        ("stream x = distinct priced within 1 ms;", False),
        ("stream x = join priced with products select id;", False),
        ("stream x = join priced with products grace 1 ms select id;", False),
        ("stream x = join priced with products on sku select id;", False),
        ("stream x = rekey priced by sku as k;", True),
        ("table x = to_table priced;", False),
        ("table x = aggregate priced group by sku select count(*) as n;", False),
        ("table x = aggregate priced group by sku as other select count(*) as n;", False),
        ("table x = aggregate priced group by sku window tumbling (size = 1 ms) select count(*) as n;", False),
        ("table x = aggregate priced group by sku window sliding (difference = 1 ms) select count(*) as n;", False),
        ("table x = aggregate priced group by sku window session (gap = 1 ms) select count(*) as n;", False),
    ],
)
def test_what_needs_a_key_drops_it_and_counts_it(statement: str, kept: bool) -> None:
    with TopologyTestDriver(SOURCES + PRICED.format(grace="") + statement, partitions=2) as driver:
        order(driver, 1, 1, shop="a")
        driver.drain()
        assert len(driver.read("priced")) == 1
        assert bool(driver.read("x")) == kept
        assert driver.metrics()["dropped_records"] == ({} if kept else {"x": {"null_join_key": 1}})


def test_a_dead_letter_of_it_has_what_there_is_of_its_key() -> None:
    text = SOURCES + (
        "stream placed = left join orders with places on area, shop select id, city;"
        "table newest = to_table placed;"
        "sink dropped to memory ();"
    )  # fmt: skip
    with TopologyTestDriver(text) as driver:
        order(driver, 7, 1, area=3)
        [(_, letter, _)] = given(driver, "dropped")
        assert letter is not None
        assert {name: letter[name] for name in ("node", "reason", "key", "value")} == {
            "node": "newest", "reason": "null_join_key", "key": '{"area":3}', "value": '{"id":7}',
        }  # fmt: skip


def test_the_plan_says_which_key_columns_may_be_null() -> None:
    text = SOURCES + (
        "stream a = left join orders with products on sku select id, sku as k, area, shop;"  # renamed
        "stream b = filter a where id > 0;"
        "stream c = merge a, b;"
        "stream d = distinct a by id within 1 ms;"
        "stream e = distinct a within 1 ms;"
        "stream f = left join a with codes on k select id;"
        "stream g = join a with products select id;"
        "stream h = left join orders with products on cast(id as string) select area;"
        "stream i = left join orders with products on coalesce(sku, 'none') select id;"
        "stream j = left join a with places on area, 'x' as shop select id;"
        "stream l = rekey a by area;"
        "table m = to_table a;"
        "stream n = to_stream m;"
        "stream o = left join n with products select id;"
        "stream p = left join a with products on try_cast(cast(id as string) as string) as q select area;"
    )  # fmt: skip
    nullable = nullable_keys(compile_topology(text, path="t.vdsl"))
    assert {name: set(columns) for name, columns in nullable.items() if columns and "#" not in name} == {
        "a": {"k"}, "b": {"k"}, "c": {"k"}, "d": {"k"}, "f": {"k"}, "j": {"area"}, "l": {"area"}, "p": {"q"},
    }  # fmt: skip


KEYED = "stream keyed = rekey orders by upper(sku) as sku;"


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_rekey_keeps_it_and_what_needs_the_key_counts_it(partitions: int) -> None:
    text = SOURCES + KEYED + (
        "stream few = filter keyed where id > 1;"
        "table newest = to_table keyed;"
        "table counted = aggregate keyed group by sku select count(*) as n;"
        "stream found = join keyed with products select id, name;"
    )  # fmt: skip
    with TopologyTestDriver(text, partitions=partitions) as driver:
        for number, sku in enumerate(("a", None, "b"), 1):
            order(driver, number, number, sku)
        assert [(key["sku"], value["id"]) for key, value, _ in given(driver, "few") if value] == [(None, 2), ("B", 3)]
        assert [key["sku"] for key, _, _ in given(driver, "counted")] == ["A", "B"]
        found = dropped(driver)
    assert {node: reasons["null_join_key"] for node, reasons in found.items()} == {
        "newest": 1, "counted": 1, "found": 1
    }  # fmt: skip


def test_a_rekey_in_front_of_an_upsert_drops_it() -> None:
    text = (
        SOURCES + KEYED + "stream some = filter keyed where id > 0; sink some to delta (path = '-', mode = 'upsert');"
    )
    with TopologyTestDriver(text) as driver:
        for number, sku in enumerate(("a", None), 1):
            order(driver, number, number, sku)
        assert [key["sku"] for key, _, _ in given(driver, "some")] == ["A"]
        assert driver.metrics()["dropped_records"] == {"keyed": {"null_join_key": 1}}


def test_a_rekey_in_front_of_an_upsert_drops_it_for_others_too_which_may_have_one_of_their_own() -> None:
    text = SOURCES + KEYED + (
        "stream logged = rekey orders by upper(sku) as sku;"
        "sink keyed to delta (path = '-', mode = 'upsert'); sink keyed to memory (); sink logged to memory ();"
    )  # fmt: skip
    with TopologyTestDriver(text) as driver:
        for number, sku in enumerate(("a", None), 1):
            order(driver, number, number, sku)
        assert [key["sku"] for key, _, _ in given(driver, "keyed")] == ["A"]
        assert [key["sku"] for key, _, _ in given(driver, "logged")] == ["A", None]
        assert driver.metrics()["dropped_records"] == {"keyed": {"null_join_key": 1}}
