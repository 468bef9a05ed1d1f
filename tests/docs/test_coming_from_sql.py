"""The page "Coming from SQL": its blocks are one topology, and give what the words that people bring stand for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vsc.compiler import check_topology
from vsc.testing import Record, TopologyTestDriver

PAGE = (Path(__file__).parents[2] / "docs/coming-from-sql.md").read_text(encoding="utf-8")
SOURCES, *BLOCKS = re.findall(r"^```vdsl\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
MINUTE = 60_000


def driver_of(node: str) -> TopologyTestDriver:
    """The sources, and the block that declares `node`."""
    [block] = [block for block in BLOCKS if f" {node} =" in block]
    return TopologyTestDriver(SOURCES + block, variables={"brokers": "-"})


def values(record: Record) -> dict[str, Any]:
    """The value columns of a record that has a value."""
    assert record.value is not None
    return dict(record.value)


def test_all_blocks_are_one_topology_without_findings() -> None:
    found = check_topology(SOURCES + "".join(BLOCKS), path="shop.vdsl")
    assert [each for each in found if each.code != "VSC123"] == []  # nodes that reach no sink


def test_lag_is_the_value_before_in_event_time() -> None:
    with driver_of("steps") as driver:
        for value, at in [(1.0, 1), (5.0, 3), (2.0, 2), (9.0, 60)]:
            driver.pipe("readings", {"sensor": "a", "value": value, "at": at * MINUTE})
        assert [tuple(values(record).values()) for record in driver.read("steps")] == [
            (1.0, None, None),
            (2.0, 1.0, 1.0),
            (5.0, 2.0, 3.0),
        ]


def test_a_running_total_has_a_change_for_each_record() -> None:
    with driver_of("running") as driver:
        for number, amount in enumerate([10, 20, 5]):
            driver.pipe("orders", {"id": str(number), "customer": "c", "amount": amount, "at": 10 - number})
        changes = [(values(record)["total"], values(record)["orders"]) for record in driver.read("running")]
        assert changes == [(10, 1), (30, 2), (35, 3)]


def test_a_lookback_has_a_result_for_each_record() -> None:
    with driver_of("features") as driver:
        for number, (amount, at) in enumerate([(10, 0), (20, 30), (5, 70)]):
            driver.pipe("orders", {"id": str(number), "customer": "c", "amount": amount, "at": at * MINUTE})
        found = [list(values(record).values()) for record in driver.read("features")]
        assert found == [["0", 1, 10, 10], ["1", 2, 30, 20], ["2", 2, 25, 5]]


def test_a_place_of_the_ranking_is_a_row() -> None:
    with driver_of("ranked") as driver:
        for number, amount in enumerate([10, 30, 20, 40]):
            row = {"id": str(number), "customer": f"c{number}", "product": "tea", "amount": amount, "at": number}
            driver.pipe("orders", row)
        last = {record.key["place"]: values(record)["best"]["customer"] for record in driver.read("ranked")}
        assert last == {0: "c3", 1: "c1", 2: "c2"}


def test_a_silent_sensor_comes_out_after_its_gap() -> None:
    with driver_of("silent") as driver:
        driver.pipe("readings", {"sensor": "a", "value": 1.0, "at": 0})
        driver.pipe("readings", {"sensor": "b", "value": 2.0, "at": 10 * MINUTE})
        assert driver.read("silent") == []
        driver.pipe("readings", {"sensor": "b", "value": 2.0, "at": 10 * MINUTE + 1})
        assert [(record.key["sensor"], values(record)["value"]) for record in driver.read("silent")] == [("a", 1.0)]
