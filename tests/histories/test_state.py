"""What complete histories keep: it is bounded by the retention, and can be looked into."""

from __future__ import annotations

import pytest

from tests.histories.test_law import ORDERS, PURCHASES
from vsc.plan.operations import Aggregate
from vsc.plan.types import BIGINT, BINARY, BOOLEAN
from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.runtime.operators.views.question import question
from vsc.runtime.state.joined import unpacked
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.testing import TopologyTestDriver


def _rows(driver: TopologyTestDriver, letter: bytes = b"") -> int:
    """How many rows there are; those of aggregates that begin with a letter, if one is given."""
    keys = [key for kv in driver._written.values() for key, _ in kv.scan(b"", None)]
    return sum(1 for key in keys if not letter or _letter(key) == letter)


def _letter(key: bytes) -> bytes:
    """What the row of an aggregate begins with."""
    start = int.from_bytes(key[:2], "big") + 2
    return key[start : start + 1] if key[:start].endswith(b"a") else b""


@pytest.mark.slow
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


@pytest.mark.parametrize("calls", ["sum(n) as total", "last(n) as total"])
def test_entries_of_format_4_are_read_and_become_chunks(calls: str) -> None:
    """Those that have a row each: a late row, and what time forgets, find them as well."""
    text = ORDERS.replace("1 hour", "100 ms").replace("sum(n) as total", calls)
    first = [("o1", "A", 1, 10), ("o2", "A", 2, 20), ("o1", "B", 1, 30), ("o3", "A", 4, 40), ("o2", "A", 3, 50)]
    second: list[tuple[str, str | None, int, int]] = [
        ("o4", "A", 8, 25),
        ("o3", "A", 5, 15),
        ("o1", None, 1, 12),
        ("o5", "A", 7, 60),
        ("o6", "B", 1, 300),
    ]
    sent = []
    for former in (False, True):
        with TopologyTestDriver(text) as driver:
            for key, state, n, at in first:
                driver.pipe("orders", {"id": key, "state": state, "n": n, "at": at})
            if former:
                assert sum(_with_rows_of_entries(kv, driver) for kv in driver._written.values()) > 4
                assert _rows(driver, b"h") > 4
                assert _rows(driver, b"c") == 0
                driver.restart()
            for id, became, count, time in second:
                driver.pipe("orders", {"id": id, "state": became, "n": count, "at": time})
            sent.append([(r.key, r.value, r.timestamp) for r in driver.read("states")])
            assert _rows(driver, b"h") == 0
            assert _rows(driver, b"c") > 0
    assert sent[0] == sent[1]


def _with_rows_of_entries(kv: OrderedKV, driver: TopologyTestDriver) -> int:
    """Writes chunks as rows of entries; returns how many."""
    operation = next(node.operation for node in driver.plan.nodes if isinstance(node.operation, Aggregate))
    args = [arg.type for call in operation.calls for arg in call.args]
    now = RowCodec([BINARY, BOOLEAN, BIGINT, BIGINT, BOOLEAN, BIGINT, *args, *args])
    was, count = RowCodec(now.types[1:]), 0
    for key, value in list(kv.scan(b"", None)):
        start = int.from_bytes(key[:2], "big") + 2
        if _letter(key) != b"c":
            continue
        head, group = key[:start], key[start + 10 : -8]
        kv.write([], [key])
        _, times, rows = unpacked([value])
        for time, row in zip(times.tolist(), rows.to_pylist(), strict=True):
            ident, *rest = now.decode(row)
            width = key[start + 1]
            name = head + b"h" + bytes((width,)) + (time >> width).to_bytes(8, "big") + group
            kv.write([(name + time.to_bytes(8, "big") + ident, was.encode(rest))])
            count += 1
    return count


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
