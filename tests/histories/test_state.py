"""What complete histories keep: it is bounded by the retention, and can be looked into."""

from __future__ import annotations

from tests.histories.test_law import ORDERS, PURCHASES
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.operators.views.question import question
from vsc.testing import TopologyTestDriver


def _rows(driver: TopologyTestDriver) -> int:
    return sum(sum(1 for _ in kv.scan(b"", None)) for kv in driver._written.values())


def test_what_is_older_than_the_retention_is_forgotten() -> None:
    kept = []
    with TopologyTestDriver(ORDERS.replace("1 hour", "100 ms")) as driver:
        for begin in range(0, 8000, 500):
            with driver.batch():
                for at in range(begin, begin + 500, 5):
                    driver.pipe("orders", {"id": f"o{at % 7}", "state": "AB"[at % 2], "n": 1, "at": at})
                    driver.pipe("orders", {"id": f"p{at % 3}", "state": "AB"[at % 2], "n": 2, "at": max(at - 20, 0)})
            kept.append(_rows(driver))
    assert max(kept[10:]) <= max(kept[:10])


def test_subscriptions_can_be_looked_into() -> None:
    with TopologyTestDriver(PURCHASES.format(mode="left")) as driver:
        driver.pipe("customers", {"customer": "c", "name": "C", "at": 0})
        for order, customer, at in (("o", "c", 5), ("q", "c", 6), ("q", "d", 9)):
            driver.pipe("orders", {"id": order, "customer": customer, "at": at})
        store = next(one for one in stores_of(driver.plan) if one.name == "j#subscriptions")
        view = open_view(driver.plan, store, driver._open(store.stage, 0))
        assert view.rows() == 2
        assert [(e.key, e.value, e.extra) for e in view.answer(question(store))] == [
            (("c",), ("o",), (5,)), (("d",), ("q",), (9,)),
        ]  # fmt: skip
        assert [e.value for e in view.answer(question(store, key={"customer": "d"}))] == [("q",)]
