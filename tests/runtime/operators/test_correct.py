"""Joins whose results are corrected by late versions. Every expected row is worked out by hand from the contract."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

TEXT = """
table rates (currency string, rate double, at bigint, gone boolean)
from memory () key currency timestamp at delete when gone
materialize versioned (retention = {retention});
{more}
stream payments (id string, currency string, amount double, at bigint) from memory () key id timestamp at;
table priced =
  {mode} join payments with {right} on currency {grace} correct by {by} within {within} ms {clause}
  select {items};
{behind}
sink priced to memory ();
"""


class Run:
    """A driver with short ways to feed it; what each row gives is returned as (key, value, revision, time)."""

    def __init__(
        self,
        mode: str = "left",
        within: int = 20,
        clause: str = "",
        items: str = "amount * rates.rate as usd, revision() as revision",
        right: str = "rates",
        by: str = "id",
        more: str = "",
        behind: str = "",
        retention: str = "1 hour",
        partitions: int = 1,
        on_error: str = "fail",
        grace: str = "",
    ) -> None:
        text = TEXT.format(
            mode=mode, within=within, clause=clause, items=items, right=right, by=by, more=more, behind=behind,
            retention=retention, grace=grace,
        )  # fmt: skip
        self.driver = TopologyTestDriver(text, partitions=partitions, on_error=on_error)

    def rate(self, rate: float | None, at: int, currency: str = "EUR") -> list[Any]:
        """A version, or a tombstone for None."""
        self.driver.pipe("rates", {"currency": currency, "rate": rate, "at": at, "gone": rate is None})
        return self.read()

    def pay(self, id: str | None, amount: float, at: int, currency: str | None = "EUR") -> list[Any]:
        """A payment."""
        if id is None:
            raise ValueError("a source drops it")
        self.driver.pipe("payments", {"id": id, "currency": currency, "amount": amount, "at": at})
        return self.read()

    def read(self, node: str = "priced") -> list[Any]:
        """What has come out since."""
        return [
            (*r.key.values(), None if r.value is None else next(iter(r.value.values())),
             None if r.value is None else r.value.get("revision"), r.timestamp)
            for r in self.driver.read(node)
        ]  # fmt: skip

    def counted(self) -> dict[str, Any]:
        """What was counted."""
        return {name: found for name, found in self.driver.metrics().items() if found}


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_example_of_the_contract(partitions: int) -> None:
    run = Run(partitions=partitions, items="amount * rates.rate as usd, revision() as revision")
    assert run.rate(1.1, 10) == []
    assert run.pay("p1", 100, 15) == [("p1", pytest.approx(110), 0, 15)]
    assert run.pay("p2", 100, 25) == [("p2", pytest.approx(110), 0, 25)]
    assert run.rate(1.2, 20) == [("p2", 120, 1, 25)]
    assert run.rate(None, 12) == [("p1", None, 1, 15)]
    assert run.pay("p3", 100, 36) == [("p3", 120, 0, 36)]
    assert run.rate(1.15, 14) == []
    assert run.counted() == {"late_versions": {"priced": 1}, "grace_needed": {"priced": 23}}


def test_an_inner_join_sends_a_tombstone_for_a_partner_that_is_gone_and_a_row_for_one_that_comes() -> None:
    run = Run(mode="")
    assert run.pay("p1", 1, 15) == []
    assert run.rate(2, 10) == [("p1", 2, 0, 15)]
    assert run.rate(None, 12) == [("p1", None, None, 15)]
    assert run.rate(3, 14) == [("p1", 3, 2, 15)]
    assert run.counted() == {"missed_lookups": {"priced": {"no_record": 1}}}


def test_a_version_that_changes_nothing_sends_nothing_and_one_of_another_key_neither() -> None:
    run = Run()
    run.rate(2, 10)
    assert run.pay("p1", 1, 15) == [("p1", 2, 0, 15)]
    assert run.rate(2, 14) == []
    assert run.rate(3, 16) == []  # valid behind the record
    assert run.rate(9, 14, "USD") == []
    assert run.rate(4, 12) == []  # the version of 14 hides it
    assert run.rate(5, 14) == [("p1", 5, 1, 15)]  # it takes the place of the one before


def test_a_version_corrects_all_records_until_the_next_one_in_order_of_time() -> None:
    run = Run(within=100)
    run.rate(1, 10)
    for id, at in (("a", 30), ("b", 20), ("c", 50), ("d", 20)):
        run.pay(id, 1, at)
    run.rate(7, 40)
    assert run.rate(2, 15) == [("b", 2, 1, 20), ("d", 2, 1, 20), ("a", 2, 1, 30)]


def test_strictly_before_a_version_corrects_the_records_behind_its_own_moment() -> None:
    run = Run(clause="strictly before", within=100)
    run.rate(1, 10)
    for at in (20, 21, 30, 31):
        run.pay(f"p{at}", 1, at)
    run.rate(9, 30)
    assert run.rate(2, 20) == [("p21", 2, 1, 21), ("p30", 2, 1, 30)]


def test_a_record_is_kept_until_the_clock_is_more_than_within_past_its_time() -> None:
    run = Run()
    run.rate(1, 10)
    run.pay("p1", 1, 15)
    run.pay("p2", 1, 35)
    assert run.rate(2, 15) == [("p1", 2, 1, 15), ("p2", 2, 1, 35)]  # 35 - 15 is not more than 20
    run.pay("p3", 1, 36)
    assert run.rate(3, 15) == [("p2", 3, 2, 35), ("p3", 3, 1, 36)]
    assert run.counted() == {"late_versions": {"priced": 1}, "grace_needed": {"priced": 22}}


def test_a_record_that_comes_too_late_is_joined_once() -> None:
    run = Run()
    run.rate(1, 5)
    run.pay("p1", 1, 36)
    assert run.pay("p2", 1, 15) == [("p2", 1, 0, 15)]
    assert run.pay("p3", 1, 16) == [("p3", 1, 0, 16)]
    assert run.rate(2, 15) == [("p3", 2, 1, 16), ("p1", 2, 1, 36)]
    assert run.counted()["missed_lookups"] == {"priced": {"not_corrected": 1}}


def test_records_without_what_names_them_are_dropped_and_those_without_a_key_find_nothing() -> None:
    run = Run(by="nullif(id, 'x') as id")
    run.rate(1, 5)
    assert run.pay("x", 1, 10) == []
    assert run.pay("p1", 1, 10, None) == [("p1", None, 0, 10)]
    assert run.rate(2, 6) == []
    assert run.counted() == {"dropped_records": {"priced": {"null_key": 1}}}


def test_two_records_of_one_name_are_corrected_by_themselves() -> None:
    run = Run(within=100)
    run.rate(1, 5)
    assert run.pay("p", 1, 10) == [("p", 1, 0, 10)]
    assert run.pay("p", 10, 20) == [("p", 10, 0, 20)]
    assert run.rate(2, 8) == [("p", 2, 1, 10), ("p", 20, 1, 20)]


def test_max_age_hides_a_row_until_a_younger_one_comes() -> None:
    run = Run(clause="max_age 5 ms", within=100)
    run.rate(1, 10)
    assert run.pay("p", 1, 16) == [("p", None, 0, 16)]
    assert run.rate(2, 11) == [("p", 2, 1, 16)]
    assert run.rate(None, 12) == [("p", None, 2, 16)]


def test_a_table_that_is_computed_from_versions_corrects_as_well() -> None:
    more = "table doubled = map rates select rate * 2 as rate; table large = filter doubled where rate > 10;"
    run = Run(right="large", more=more, items="amount * large.rate as usd, revision() as revision")
    run.rate(6, 5)
    assert run.pay("p", 1, 10) == [("p", 12, 0, 10)]
    assert run.rate(1, 7) == [("p", None, 1, 10)]  # too small
    assert run.rate(7, 8) == [("p", 14, 2, 10)]


def test_an_aggregate_takes_the_old_row_back_and_a_filter_follows() -> None:
    behind = """
    table total = aggregate priced group by 1 as one select sum(usd) as usd, count(*) as n;
    table large = filter priced where usd > 150;
    sink total to memory (); sink large to memory ();
    """
    run = Run(behind=behind, within=100)
    run.rate(1, 10)
    run.pay("a", 100, 20)
    run.pay("b", 100, 30)
    assert [r.value for r in run.driver.read("total")] == [{"usd": 100, "n": 1}, {"usd": 200, "n": 2}]
    run.driver.read("large")
    run.rate(2, 25)
    assert [r.value for r in run.driver.read("total")] == [{"usd": 300, "n": 2}]
    assert [(r.key["id"], r.value and r.value["usd"]) for r in run.driver.read("large")] == [("b", 200)]


def test_it_is_found_by_others_and_materialized_versioned_it_has_a_right_history() -> None:
    behind = """
    stream asks (id string, at bigint) from memory () key id timestamp at;
    stream answers = left join asks with priced as r select r.usd as found;
    sink answers to memory ();
    """
    text = TEXT.format(
        mode="left", within=100, clause="", items="amount * rates.rate as usd", right="rates", by="id", more="",
        behind=behind, retention="1 hour", grace="",
    ).replace("as usd;", "as usd materialize versioned (retention = 1 hour);")  # fmt: skip
    with TopologyTestDriver(text) as driver:
        driver.pipe("rates", {"currency": "EUR", "rate": 1.0, "at": 10, "gone": False})
        driver.pipe("payments", {"id": "p", "currency": "EUR", "amount": 1.0, "at": 20})
        driver.pipe("rates", {"currency": "EUR", "rate": 2.0, "at": 15, "gone": False})
        driver.pipe("asks", {"id": "p", "at": 25})
        driver.pipe("asks", {"id": "p", "at": 19})
        assert [r.value["found"] for r in driver.read("answers") if r.value] == [2.0, None]
        found = driver.store("priced").get({"id": "p"})
        assert found is not None and (found.value["usd"], found.valid_from) == (2.0, 20)


def test_what_fails_at_first_is_dropped_and_what_fails_later_leaves_the_row_as_it_was() -> None:
    run = Run(items="10 / cast(rates.rate as int) as usd, revision() as revision", on_error="drop", within=100)
    run.rate(0, 5)
    assert run.pay("a", 1, 10) == []
    run.rate(1, 12)
    assert run.pay("b", 1, 15) == [("b", 10, 0, 15)]
    assert run.rate(0, 13) == []
    assert run.rate(2, 6) == []  # the first one was dropped, it is not kept
    assert run.rate(2, 14) == [("b", 5, 1, 15)]
    assert run.counted()["dropped_records"] == {"priced": {"expression_failed": 2}}


def test_what_is_kept_survives_a_restart_and_is_removed_by_time() -> None:
    run = Run()
    run.rate(1, 10)
    run.pay("a", 1, 20)
    run.driver.restart()
    assert run.rate(2, 15) == [("a", 2, 1, 20)]
    run.driver.restart()
    assert run.rate(3, 16) == [("a", 3, 2, 20)]
    run.pay("b", 1, 100)
    run.driver.restart()
    assert run.rate(4, 17) == [("b", 4, 1, 100)]
    kept = [len(list(kv.scan(b"", None))) for kv in run.driver._stores]
    assert max(kept) < 12


@pytest.mark.parametrize("partitions", [1, 3])
def test_what_waits_finds_the_version_when_it_goes_out_and_is_kept_from_then_on(partitions: int) -> None:
    run = Run(grace="grace 5 ms", partitions=partitions)
    run.rate(1, 10)
    assert run.pay("a", 1, 15) == []
    assert run.rate(2, 12) == []  # it still waits
    assert run.pay("b", 1, 22) == [("a", 2, 0, 15)]
    assert run.rate(3, 13) == [("a", 3, 1, 15)]
    run.driver.restart()
    assert run.pay("c", 1, 30) == [("b", 3, 0, 22)]
    assert run.pay("d", 1, 11) == [("d", 1, 0, 11)]  # late, but not too late to be corrected
    assert run.rate(4, 11) == [("d", 4, 1, 11)]
    assert run.pay("e", 1, 40) == [("c", 3, 0, 30)]
    assert run.pay("f", 1, 19) == [("f", 3, 0, 19)]  # 40 - 19 is more than 20
    assert run.rate(5, 14) == [("b", 5, 1, 22), ("c", 5, 1, 30)]
    run.driver.drain()
    assert run.read() == [("e", 5, 0, 40)]
    assert run.counted() == {
        "missed_lookups": {"priced": {"not_corrected": 1}},
        "late_versions": {"priced": 1},
        "grace_needed": {"priced": 27},
    }


def test_an_inner_join_that_waits_drops_a_record_without_key_and_a_left_one_joins_it_at_once() -> None:
    run = Run(mode="", grace="grace 5 ms")
    assert run.pay("a", 1, 15, None) == []
    assert run.counted() == {"dropped_records": {"priced": {"null_join_key": 1}}}
    run = Run(grace="grace 5 ms")
    assert run.pay("a", 1, 15, None) == [("a", None, 0, 15)]


@pytest.mark.parametrize("clause", ["", "strictly before"])
def test_with_the_length_that_a_run_advises_no_version_is_late(clause: str) -> None:
    def late(within: int) -> tuple[list[Any], dict[str, Any]]:
        run = Run(within=within, clause=clause)
        run.rate(1, 10)
        run.pay("p1", 1, 16)
        run.pay("p2", 1, 40)
        return [*run.rate(None, 20), *run.rate(2, 15)], run.counted()

    sent, counted = late(20)
    assert (sent, counted["late_versions"]) == ([("p2", None, 1, 40)], {"priced": 1})
    sent, counted = late(counted["grace_needed"]["priced"])
    assert (sent[1:], "late_versions" in counted) == ([("p1", 2, 1, 16)], False)
