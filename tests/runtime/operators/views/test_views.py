"""Stores looked into: every kind of store that a plan has, and what each answers."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.views import Entry, StoreInfo
from vsc.runtime.operators.views.catalog import find_store, open_view, stores_of
from vsc.runtime.operators.views.question import question
from vsc.runtime.operators.views.view import byte_size
from vsc.testing import TopologyTestDriver

FILES = "from files (path = 'x', format = 'json')"
TOPOLOGY = f"""
topology t (clock = 'records');
table rates (currency string, rate bigint, at bigint, gone boolean) {FILES} key currency timestamp at
  delete when gone materialize versioned (retention = 100 ms);
table people (id bigint, name string, at bigint) {FILES} key id timestamp at materialize unversioned;
stream orders (id bigint, currency string, person bigint, at bigint) {FILES} key id timestamp at;
table latest = to_table orders materialize unversioned;
stream priced = join orders with rates on currency grace 20 ms select rate;
table named = join latest with people on person select name, currency;
table totals = aggregate orders group by currency select count(*) as n, sum(person) as persons;
table hourly = aggregate orders group by currency window tumbling (size = 10 ms, grace = 5 ms) select count(*) as n;
table visits = aggregate orders group by currency window session (gap = 10 ms, grace = 5 ms) select count(*) as n;
table closed = suppress hourly until window closes;
sink priced to noop (); sink named to noop (); sink totals to noop (); sink visits to noop (); sink closed to noop ();
"""


@pytest.fixture(scope="module")
def driver() -> Any:
    with TopologyTestDriver(TOPOLOGY) as driver:
        for at, rate in ((0, 1), (40, 2), (150, 3)):
            driver.pipe("rates", {"currency": "EUR", "rate": rate, "at": at})
        driver.pipe("rates", {"currency": "GBP", "rate": 7, "at": 60})
        driver.delete("rates", {"currency": "GBP"}, timestamp=120)
        driver.pipe("people", {"id": 1, "name": "ann", "at": 0})
        for number, at in enumerate((3, 8, 14, 60)):
            driver.pipe("orders", {"id": number, "currency": "EUR", "person": 1, "at": at})
        yield driver


def info(driver: TopologyTestDriver, name: str) -> StoreInfo:
    return find_store(driver.plan, name)


def ask(driver: TopologyTestDriver, name: str, **asked: Any) -> list[Entry]:
    store = info(driver, name)
    kv = driver._stores[store.stage - 1]
    return list(open_view(driver.plan, store, kv).answer(question(store, **asked)))


def shown(entries: list[Entry]) -> list[tuple[Any, ...]]:
    return [(e.status.value, e.key, e.value, *e.extra) for e in entries]


def test_every_place_where_something_is_kept_is_a_store(driver: TopologyTestDriver) -> None:
    kinds = {(s.name, s.owner, s.kind) for s in stores_of(driver.plan)}
    assert kinds >= {
        ("rates", "rates", "versioned"),
        ("people", "people", "unversioned"),
        ("latest", "latest", "unversioned"),
        ("priced#waiting", "priced", "waiting"),
        ("named#subscriptions", "named", "subscriptions"),
        ("totals#groups", "totals", "groups"),
        ("hourly#windows", "hourly", "windows"),
        ("visits#sessions", "visits", "sessions"),
        ("closed#suppressed", "closed", "suppressed"),
    }


def test_the_parts_of_the_plans_stores_are_all_that_its_stages_keep(driver: TopologyTestDriver) -> None:
    for stage, kv in enumerate(driver._stores, start=1):
        stores = [s for s in stores_of(driver.plan) if s.stage == stage]
        everything = sum(len(key) + len(value) for key, value in kv.scan(b"", None))
        assert sum(byte_size(store, kv) for store in stores) == everything


def test_a_versioned_store_answers_as_of_a_time(driver: TopologyTestDriver) -> None:
    eur, gbp = {"currency": "EUR"}, {"currency": "GBP"}
    assert shown(ask(driver, "rates", key=eur)) == [("version", ("EUR",), (3, 150, None), 150, None)]
    assert shown(ask(driver, "rates", key=eur, as_of=149)) == [("version", ("EUR",), (2, 40, None), 40, 150)]
    assert shown(ask(driver, "rates", key=eur, as_of=49)) == [("older_than_retention", ("EUR",), None, None, 50)]
    assert shown(ask(driver, "rates", key=gbp)) == [("tombstone", ("GBP",), None, 120, None)]
    assert shown(ask(driver, "rates", key=gbp, as_of=119)) == [("version", ("GBP",), (7, 60, None), 60, 120)]
    assert shown(ask(driver, "rates", key=gbp, as_of=55)) == [("no_record", ("GBP",), None, None, None)]
    assert shown(ask(driver, "rates", key={"currency": "USD"})) == [("no_record", ("USD",), None, None, None)]


def test_a_history_is_newest_first_and_says_where_it_ends(driver: TopologyTestDriver) -> None:
    eur = {"currency": "EUR"}
    newest, older = ("version", ("EUR",), (3, 150, None), 150, None), ("version", ("EUR",), (2, 40, None), 40, 150)
    assert shown(ask(driver, "rates", key=eur, history=True)) == [newest, older]
    assert shown(ask(driver, "rates", key=eur, history=True, end=149)) == [older]
    assert shown(ask(driver, "rates", key=eur, history=True, start=150)) == [newest]
    too_old = ("older_than_retention", ("EUR",), None, None, 50)
    assert shown(ask(driver, "rates", key=eur, history=True, start=0)) == [newest, older, too_old]
    assert [e.status for e in ask(driver, "rates", key={"currency": "GBP"}, history=True)] == ["tombstone", "version"]
    assert [e.status for e in ask(driver, "rates", key={"currency": "X"}, history=True)] == ["no_record"]


def test_a_scan_takes_ranges_of_keys_and_of_times(driver: TopologyTestDriver) -> None:
    assert [(e.status, e.key) for e in ask(driver, "rates")] == [("version", ("EUR",)), ("tombstone", ("GBP",))]
    assert [e.key for e in ask(driver, "rates", from_key={"currency": "F"})] == [("GBP",)]
    assert [e.key for e in ask(driver, "rates", to_key={"currency": "EUR"})] == [("EUR",)]
    assert [e.value for e in ask(driver, "rates", history=True, start=60, end=100)] == [(2, 40, None), (7, 60, None)]
    assert [e.key for e in ask(driver, "latest", from_key={"id": 1}, to_key={"id": 2})] == [(1,), (2,)]


def test_an_unversioned_store_has_one_row_a_key_and_no_history(driver: TopologyTestDriver) -> None:
    assert shown(ask(driver, "people", key={"id": 1})) == [("row", (1,), ("ann", 0), 0, None)]
    assert shown(ask(driver, "people", key={"id": 2})) == [("no_record", (2,), None, None, None)]
    with pytest.raises(ConfigurationError, match=r"'people' \(unversioned\) keeps no history"):
        ask(driver, "people", key={"id": 1}, history=True)
    with pytest.raises(ConfigurationError, match="cannot answer as of a time"):
        ask(driver, "people", key={"id": 1}, as_of=3)


def test_groups_and_windows_show_their_results(driver: TopologyTestDriver) -> None:
    assert shown(ask(driver, "totals#groups", key={"currency": "EUR"})) == [("row", ("EUR",), (4, 4), 60, 4)]
    assert shown(ask(driver, "totals#groups", key={"currency": "X"})) == [("no_record", ("X",), None, None, None)]
    assert shown(ask(driver, "hourly#windows")) == [("open", ("EUR", 60_000, 70_000), (1,), 60, 1)]
    assert shown(ask(driver, "visits#sessions")) == [("open", ("EUR", 60_000, 60_000), (1,), 60, 1)]
    whole = {"currency": "EUR", "window_start": 60, "window_end": 70}
    assert len(ask(driver, "hourly#windows", key=whole)) == 1
    assert len(ask(driver, "hourly#windows", from_key={"currency": "EUR"}, to_key={"currency": "EUR"})) == 1
    assert not ask(driver, "hourly#windows", from_key={"currency": "F"})


def test_what_waits_tells_when_it_is_due(driver: TopologyTestDriver) -> None:
    assert shown(ask(driver, "priced")) == [("waiting", ("EUR",), (), 60, 80)]
    assert not ask(driver, "priced", key={"currency": "GBP"})
    assert shown(ask(driver, "closed#suppressed")) == [("waiting", ("EUR", 60_000, 70_000), (1,), 60, 75)]


def test_subscriptions_are_found_by_what_they_refer_to(driver: TopologyTestDriver) -> None:
    found = ask(driver, "named#subscriptions", key={"id": 1})
    assert [(e.key, e.value[0] if e.value else None) for e in found] == [((1,), 0), ((1,), 1), ((1,), 2), ((1,), 3)]
    assert not ask(driver, "named#subscriptions", key={"id": 2})
    assert not ask(driver, "named#subscriptions", from_key={"id": 2})
    store = info(driver, "named#subscriptions")
    assert ([c.name for c in store.key], store.value[0].name) == (["id"], "left_id")


def test_views_know_their_rows_and_clocks(driver: TopologyTestDriver) -> None:
    found = {}
    for store in stores_of(driver.plan):
        view = open_view(driver.plan, store, driver._stores[store.stage - 1])
        found[store.name] = (view.rows(), view.stream_time)
    assert found["rates"] == (4, 150)
    assert found["people"] == (1, None)
    assert found["latest"] == (4, None)
    assert found["priced#waiting"] == (1, 60)
    assert found["named#subscriptions"] == (4, None)
    assert found["totals#groups"] == (1, None)
    assert found["visits#sessions"] == (1, 60)
    assert found["closed#suppressed"] == (1, 60)


@pytest.mark.parametrize(
    ("store", "asked", "words"),
    [
        ("rates", {"key": {"money": "EUR"}}, "'rates' has no key column 'money'"),
        ("rates", {"key": {}}, "the key of 'rates' lacks 'currency'"),
        ("rates", {"key": {"currency": None}}, "key column 'currency' of 'rates' is null"),
        ("people", {"key": {"id": "one"}}, "key column 'id' of 'people': 'one' is not a value of type bigint"),
        ("hourly#windows", {"key": {"currency": "EUR"}}, "the key of 'hourly#windows' lacks 'window_start'"),
        ("hourly#windows", {"from_key": {"window_start": 0}}, "the key of 'hourly#windows' lacks 'currency'"),
        ("rates", {"history": True, "start": 2, "end": 1}, "there are no times from 2 to 1"),
        ("nothing", {}, "there is no store 'nothing'"),
    ],
)
def test_a_question_without_an_answer_is_refused(
    driver: TopologyTestDriver, store: str, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ask(driver, store, **asked)
    assert words in refused.value.message
