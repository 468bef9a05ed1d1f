"""Sinks of lost records: what stands in their rows, operator by operator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import vsc.runtime
from vsc.compiler import TopologyError, compile_topology
from vsc.plan import dump, load
from vsc.testing import TopologyTestDriver

PAYMENTS = "stream payments (id string, currency string, amount int, at bigint) from memory () key id timestamp at;"
RATES = "table rates (currency string, rate int, at bigint) from memory () key currency timestamp at"
VERSIONED = f"{RATES} materialize versioned (retention = 1 second, grace = 100 ms);"
JOINED = "stream priced = join payments with rates on currency{} select id, amount * rates.rate as usd;"

Fed = list[tuple[str, dict[str, Any]]]


def payment(
    id: str | None, at: int | None, amount: int = 1, currency: str | None = "EUR"
) -> tuple[str, dict[str, Any]]:
    return "payments", {"id": id, "currency": currency, "amount": amount, "at": at}


def rate(at: int, rate: int = 2) -> tuple[str, dict[str, Any]]:
    return "rates", {"currency": "EUR", "rate": rate, "at": at}


def lost(text: str, fed: Fed, name: str = "dropped", drain: bool = False, **options: Any) -> list[tuple[Any, ...]]:
    """The node, reason, source, row, key and value of what was lost."""
    found = []
    with TopologyTestDriver(text + f"sink {name} to memory ();", on_error="drop", **options) as driver:
        for source, row in fed:
            driver.pipe(source, row)
        if drain:
            driver.drain()
        for record in driver.read(name):
            v = record.value
            assert v is not None
            place, key, value = (None if v[c] is None else json.loads(v[c]) for c in ("position", "key", "value"))
            found.append((v["node"], v["reason"], v["source"], place and place["row"], key, value))
    return found


def test_rows_of_a_source() -> None:
    fed = [payment(None, 1), payment("a", None), payment("b", -1), payment("c", 90_000_000)]
    assert lost(PAYMENTS, fed, now=0) == [
        ("payments", "null_key", "payments", 0, {}, {"currency": "EUR", "amount": 1, "at": 1}),
        ("payments", "null_timestamp", "payments", 1, {"id": "a"}, {"currency": "EUR", "amount": 1}),
        ("payments", "negative_timestamp", "payments", 2, {"id": "b"}, {"currency": "EUR", "amount": 1, "at": -1}),
        ("payments", "in_the_future", "payments", 3, {"id": "c"}, {"currency": "EUR", "amount": 1, "at": 90_000_000}),
    ]


def test_a_row_says_when_and_why() -> None:
    with TopologyTestDriver(PAYMENTS + "sink dropped to memory ();", now=0) as driver:
        driver.pipe(*payment("c", 90_000_000))
        driver.pipe(*payment("d", 2**52))
        first, far = driver.read("dropped")
    assert first.value is not None and far.value is not None
    assert first.value["event_time"].isoformat() == "1970-01-02T01:00:00+00:00"
    assert first.value["message"] == "has the event time 1970-01-02 01:00:00.000, later than 1970-01-02 00:00:00.000"
    assert far.value["event_time"] is None  # no year that there is
    assert (first.timestamp, far.timestamp) == (90_000_000, 0)


def test_an_expression_that_fails() -> None:
    text = PAYMENTS + "stream some = filter payments where 10 / amount > 1;"
    with TopologyTestDriver(text + "sink dropped of some to memory ();", on_error="drop") as driver:
        driver.pipe(*payment("a", 5, amount=0))
        driver.pipe(*payment(None, 5))
        (found,) = driver.read("dropped of some")
    assert found.value == {
        "node": "some", "reason": "expression_failed", "source": "payments", "position": '{"row":0}',
        "event_time": found.value["event_time"], "key": '{"id":"a"}',  # type: ignore[index]
        "value": '{"currency":"EUR","amount":0,"at":5}', "raw": None,
        "message": "10 / amount > 1 failed: [DIVIDE_BY_ZERO] division by zero",
    }  # fmt: skip
    assert found.timestamp == 5


def test_the_stream_record_that_finds_no_row() -> None:
    text, fed = (
        PAYMENTS + VERSIONED + JOINED.format(""),
        [rate(100), payment("a", 50), payment("b", 150, currency="CHF")],
    )
    assert lost(text, fed, "missed") == [
        ("priced", "no_record", "payments", 0, {"currency": "EUR"}, {"id": "a", "amount": 1, "at": 50}),
        ("priced", "no_record", "payments", 1, {"currency": "CHF"}, {"id": "b", "amount": 1, "at": 150}),
    ]
    assert lost(text, fed, "missed of priced") == lost(text, fed, "missed")
    assert lost(text, fed) == []


def test_what_has_waited_has_a_source_but_no_position() -> None:
    text = PAYMENTS + VERSIONED + JOINED.format(" grace 50 ms")
    fed = [rate(100), payment("a", 50), payment("b", 200)]
    value = {"id": "a", "amount": 1, "at": 50}
    assert lost(text, fed, "missed") == [("priced", "no_record", "payments", None, {"currency": "EUR"}, value)]
    assert lost(text, fed[:2], "missed", drain=True) == lost(text, fed, "missed")


def test_late_rows_and_late_records() -> None:
    text = PAYMENTS + VERSIONED + (
        "table counts = aggregate payments group by currency window hopping (size = 20 ms, advance = 10 ms)"
        " select count(*) as n;"
    )  # fmt: skip
    fed = [rate(500), rate(300), payment("a", 100), payment("b", 25)]
    late = ("counts", "window_closed", "payments", 1, {"currency": "EUR"}, {"id": "b", "amount": 1, "at": 25})
    assert lost(text, fed) == [
        ("rates", "expired", "rates", 1, {"currency": "EUR"}, {"rate": 2, "at": 300}),
        late, late,  # once for each of its windows
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "reason", "statement"),
    [
        ("once", "duplicate", "stream once = distinct payments within 10 ms;"),
        ("by_amount", "null_join_key", "stream keyed = rekey payments by nullif(amount, 1) as k;"
         " table by_amount = to_table keyed;"),
        ("sessions", "window_closed", "table sessions = aggregate payments group by id window session (gap = 1 ms)"
         " select count(*) as n;"),
        ("slides", "window_closed", "table slides = aggregate payments group by id window sliding (difference = 1 ms)"
         " select count(*) as n;"),
        ("groups", "expression_failed", "table groups = aggregate payments group by id"
         " select 1 / (2 - count(*)) as n;"),
    ],
)  # fmt: skip
def test_what_other_operators_drop(node: str, reason: str, statement: str) -> None:
    fed = [payment("a", 100), payment("a", 95)]
    found = lost(PAYMENTS + statement, fed, f"dropped of {node}")
    assert found and {row[:3] for row in found} == {(node, reason, "payments")}
    assert found[-1][3] == 1 and lost(PAYMENTS + statement, fed) == found


@pytest.mark.parametrize("window", ["tumbling (size = 5 ms)", "session (gap = 5 ms)", "sliding (difference = 5 ms)"])
def test_a_window_that_fails_as_it_closes_has_no_value(window: str) -> None:
    made = (
        f"table o = aggregate payments group by currency window {window} emit final select 1 / (sum(amount) - 1) as q;"
    )
    found = lost(f"{PAYMENTS} {made}", [payment("a", 10), payment("b", 90, 3)])
    assert [(node, reason, key["currency"], value) for node, reason, _, _, key, value in found] == [
        ("o", "expression_failed", "EUR", None)
    ]


def test_a_node_of_that_name_comes_first() -> None:
    text = "stream dropped (id string, at bigint) from memory () key id timestamp at;"
    assert compile_topology(text + "sink dropped to memory ();").sinks[0].node == "dropped"
    plan = compile_topology(text + "sink dropped of dropped to memory ();")
    assert plan.sinks[0].node == "dropped of dropped"
    assert load(dump(plan)) == plan


@pytest.mark.parametrize(
    ("sink", "code", "message"),
    [
        ("dropped of both", "VSC132", "`both` never drops a record"),
        ("missed of payments", "VSC132",
         "`payments` never misses a record: only the join of a stream looks for what may not be there"),
        ("dropped of nothing", "VSC103", "there is no node `nothing`"),
        ("droped", "VSC103", "there is no node `droped`"),
        ("both of payments", "VSC021", "`both` cannot be followed by `of`"),
    ],
)  # fmt: skip
def test_what_is_refused(sink: str, code: str, message: str) -> None:
    with pytest.raises(TopologyError) as error:
        compile_topology(f"{PAYMENTS} stream both = merge payments, payments; sink {sink} to memory ();")
    found = [(d.code, d.message) for d in error.value.diagnostics if d.severity == "error"]
    assert found == [(code, message)]


def test_a_misspelt_word_is_suggested() -> None:
    with pytest.raises(TopologyError) as error:
        compile_topology(f"{PAYMENTS} sink droped to memory ();")
    assert [d.help for d in error.value.diagnostics if d.code == "VSC103"] == ["write `dropped`"]


def test_a_format_that_cannot_hold_them_is_refused() -> None:
    with pytest.raises(TopologyError) as error:
        compile_topology(
            f"{PAYMENTS} sink dropped to kafka (bootstrap_servers = 'h:1', topic = 't', format = 'string');"
        )
    assert [d.code for d in error.value.diagnostics if d.severity == "error"] == ["VSC508"]


def test_without_such_a_sink_the_plan_is_the_same_and_columns_stay_in_files() -> None:
    text = PAYMENTS + VERSIONED + JOINED.format("") + "sink priced to memory ();"
    plan, with_letters = compile_topology(text), compile_topology(text + "sink missed to memory ();")
    assert with_letters.nodes[-1].name == "missed" and "at" not in [
        c.name for c in plan.node("priced#rekey").schema.value
    ]
    assert [c.name for c in with_letters.node("priced#rekey").schema.value] == ["id", "amount", "at"]


def test_nothing_is_counted_behind_the_back_of_the_dead_letters() -> None:
    folder = Path(next(iter(vsc.runtime.__path__)))
    counting = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"metrics\.count\(", path.read_text())
    }
    places = {"operators/dead_letters.py", "spark/connectors/refusals.py", "spark/connectors/kafka/topic_ids.py"}
    assert counting == places


def test_a_late_row_of_a_table_that_several_stages_read_is_lost_once() -> None:
    text = """
    table t (k string, g string, at bigint) from memory () key k timestamp timestamp_millis(at)
      materialize versioned (retention = 10 ms);
    stream s (id string, k string, at bigint) from memory () key id timestamp timestamp_millis(at);
    stream found = join s with t on k select id, g;
    table groups = aggregate t group by g select count(*) as n;
    table sides = join t as l with t as r on l.g select r.g as other;
    sink groups to memory ();
    sink sides to memory ();
    sink found to memory ();
    sink dropped to memory ();
    """
    with TopologyTestDriver(text) as driver:
        for at in (100, 50):
            driver.pipe("t", {"k": "a", "g": "x", "at": at})
        assert driver.metrics()["dropped_records"]["t"] == {"expired": 1}
        assert [letter.value["reason"] for letter in driver.read("dropped") if letter.value is not None] == ["expired"]
