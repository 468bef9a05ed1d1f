"""Chains: joins whose left input is itself the result of a corrected join. The rows are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.runtime.operators.views.catalog import open_view, stores_of
from vsc.testing import TopologyTestDriver

TEXT = """
table prices (sku string, price int, at bigint, gone boolean)
from memory () key sku timestamp at delete when gone materialize versioned (retention = 1 hour);
table customers (customer string, country string, at bigint, gone boolean)
from memory () key customer timestamp at delete when gone materialize versioned (retention = 1 hour);
table rates (country string, rate int, at bigint, gone boolean)
from memory () key country timestamp at delete when gone materialize versioned (retention = 1 hour);
stream lines (id string, sku string, customer string, n int, at bigint) from memory () key id timestamp at;
table priced =
  {first} join lines with prices on sku {grace} correct by id within 20 ms
  select customer, n * price as amount, revision() as revision;
{between}
table placed =
  {second} join {of} with customers on customer correct {by} within 10 ms
  select country, amount, revision() as revision;
table done = {third} join placed with rates on country correct within 30 ms
  select amount * rate as usd, revision() as revision;
table total = aggregate done group by 1 as one select sum(usd) as usd, count(*) as n;
table days =
  aggregate done group by 1 as one window tumbling (size = 20 ms) emit final select sum(usd) as usd, count(*) as n;
sink priced to memory (); sink placed to memory (); sink done to memory (); sink total to memory ();
sink days to memory ();
"""


class Run:
    """A driver with short ways to feed it; what each row gives is returned by node: (key, first column, revision)."""

    def __init__(
        self,
        first: str = "left",
        second: str = "left",
        third: str = "left",
        partitions: int = 1,
        by: str = "",
        grace: str = "",
        between: str = "",
        of: str = "priced",
    ) -> None:
        text = TEXT.format(first=first, second=second, third=third, by=by, grace=grace, between=between, of=of)
        self.driver = TopologyTestDriver(text, partitions=partitions)

    def row(self, source: str, key: str, value: object, at: int) -> dict[str, list[Any]]:
        """A version of a table, or a tombstone for None."""
        names = {"prices": ("sku", "price"), "customers": ("customer", "country"), "rates": ("country", "rate")}
        values = dict(zip(names[source], (key, value), strict=True))
        self.driver.pipe(source, {**values, "at": at, "gone": value is None})
        return self.read()

    def line(self, id: str, at: int, sku: str = "a", customer: str | None = "c") -> dict[str, list[Any]]:
        """An order line of two pieces."""
        self.driver.pipe("lines", {"id": id, "sku": sku, "customer": customer, "n": 2, "at": at})
        return self.read()

    def read(self) -> dict[str, list[Any]]:
        """What has come out since."""
        found = {}
        for node, shown in (("priced", "amount"), ("placed", "country"), ("done", "usd")):
            rows = [
                (*r.key.values(), *(("gone",) if r.value is None else (r.value[shown], r.value["revision"])))
                for r in self.driver.read(node)
            ]
            if rows:
                found[node] = rows
        return found


def started(**how: Any) -> Run:
    """A run in which everything has its first version."""
    run = Run(**how)
    run.row("prices", "a", 3, 1)
    run.row("customers", "c", "DE", 1)
    run.row("rates", "DE", 1, 1)
    run.row("rates", "US", 2, 1)
    return run


@pytest.mark.parametrize("partitions", [1, 3])
def test_each_table_of_a_chain_corrects_the_row_and_what_moves_is_removed_first(partitions: int) -> None:
    run = started(partitions=partitions)
    assert run.line("x", 10) == {"priced": [("x", 6, 0)], "placed": [("x", "DE", 0)], "done": [("x", 6, 0)]}
    assert run.row("prices", "a", 5, 5) == {
        "priced": [("x", 10, 1)], "placed": [("x", "DE", 1)], "done": [("x", 10, 1)],
    }  # fmt: skip
    run.driver.restart()
    assert run.row("customers", "c", "US", 9) == {"placed": [("x", "US", 2)], "done": [("x", "gone"), ("x", 20, 0)]}
    assert run.row("rates", "US", 4, 8) == {"done": [("x", 40, 1)]}
    assert run.row("rates", "DE", 9, 8) == {}
    assert run.row("customers", "c", None, 9) == {"placed": [("x", None, 3)], "done": [("x", "gone"), ("x", None, 0)]}
    assert run.driver.read("total")[-1].value == {"usd": None, "n": 1}


def test_a_tombstone_takes_the_row_back_all_along_the_chain() -> None:
    run = started(first="", second="", third="")
    assert run.line("x", 10)["done"] == [("x", 6, 0)]
    gone = [("x", "gone")]
    assert run.row("prices", "a", None, 5) == {"priced": gone, "placed": gone, "done": gone}
    assert run.row("rates", "DE", 7, 6) == {}
    assert run.row("prices", "a", 4, 5) == {"priced": [("x", 8, 2)], "placed": [("x", "DE", 0)], "done": [("x", 56, 0)]}
    assert run.row("customers", "c", "FR", 6) == {"placed": [("x", "FR", 1)], "done": gone}
    assert run.row("rates", "FR", 1, 2) == {"done": [("x", 8, 0)]}
    assert run.driver.read("total")[-1].value == {"usd": 8, "n": 1}


def test_holds_add_up() -> None:
    run = started()
    run.line("x", 10)
    run.line("y", 30)  # 30 - 10 is not more than 20
    assert run.row("prices", "a", 5, 5)["done"] == [("x", 10, 1), ("y", 10, 1)]
    run.line("u", 31)
    assert run.row("prices", "a", 6, 6)["done"] == [("y", 12, 2), ("u", 12, 1)]
    run.line("z", 40)  # the second join's clock is 20
    assert [id for id, *_ in run.row("customers", "c", "US", 5)["placed"]] == ["x", "y", "u", "z"]
    run.line("w", 41)
    assert [id for id, *_ in run.row("customers", "c", "DE", 6)["placed"]] == ["y", "u", "z", "w"]
    run.line("v", 71)  # the third one's clock is 41
    assert run.row("rates", "US", 3, 2) == {}
    found = run.driver.metrics()
    assert found["late_versions"] == {"priced": 2, "placed": 2, "done": 1}
    assert found["grace_needed"] == {"priced": 26, "placed": 16, "done": 40}


def test_final_windows_behind_a_chain_close_when_nothing_can_change_any_more() -> None:
    run = started()
    run.line("x", 10)
    run.line("y", 70)
    run.row("rates", "DE", 5, 9)
    run.line("u", 79)
    assert run.driver.read("days") == []
    run.line("z", 80)  # 20 + 20 + 10 + 30
    assert [record.value for record in run.driver.read("days")] == [{"usd": 30, "n": 1}]


def test_filters_and_maps_may_stand_between() -> None:
    between = """
    table named = map priced select customer, amount + 1 as amount; table large = filter named where amount > 10;
    """
    run = started(between=between, of="large", by="by id", second="")
    assert run.line("x", 10) == {"priced": [("x", 6, 0)]}
    assert run.row("prices", "a", 5, 5) == {
        "priced": [("x", 10, 1)], "placed": [("x", "DE", 0)], "done": [("x", 11, 0)],
    }  # fmt: skip
    assert run.row("prices", "a", 1, 6) == {
        "priced": [("x", 2, 2)], "placed": [("x", "gone")], "done": [("x", "gone")],
    }  # fmt: skip
    assert run.row("prices", "a", 6, 6)["placed"] == [("x", "DE", 0)]


def test_rows_without_a_key_to_look_up_by_follow_their_updates() -> None:
    run = started()
    assert run.line("x", 10, customer=None) == {
        "priced": [("x", 6, 0)], "placed": [("x", None, 0)], "done": [("x", None, 0)],
    }  # fmt: skip
    assert run.row("prices", "a", 5, 5)["placed"] == [("x", None, 0)]
    assert run.driver.read("total")[-1].value == {"usd": None, "n": 1}
    run = started(second="")
    assert run.line("x", 10, customer=None) == {"priced": [("x", 6, 0)]}
    assert run.driver.metrics()["dropped_records"] == {"placed": {"null_join_key": 1}}


def test_a_grace_in_the_first_join_is_one_for_the_chain() -> None:
    run = started(grace="grace 5 ms")
    assert run.line("x", 10) == {}
    assert run.row("customers", "c", "US", 9) == {}
    assert run.row("rates", "US", 4, 8) == {}
    assert run.line("y", 15) == {"priced": [("x", 6, 0)], "placed": [("x", "US", 0)], "done": [("x", 24, 0)]}


def test_a_second_line_of_the_same_name_takes_the_place_of_the_first() -> None:
    run = started()
    run.line("x", 10)
    assert run.line("x", 12, sku="b") == {
        "priced": [("x", None, 0)], "placed": [("x", "gone"), ("x", "DE", 0)], "done": [("x", "gone"), ("x", None, 0)],
    }  # fmt: skip
    assert run.driver.read("total")[-1].value == {"usd": None, "n": 1}
    assert run.row("customers", "c", "US", 11)["placed"] == [("x", "US", 1)]


def test_a_row_that_cannot_be_computed_is_none() -> None:
    text = TEXT.replace("amount * rate as usd", "100 / amount * rate as usd") + "sink dropped to memory ();"
    with TopologyTestDriver(
        text.format(first="left", second="left", third="left", by="", grace="", between="", of="priced"),
        on_error="drop",
    ) as driver:
        for source, row in (
            ("prices", {"sku": "a", "price": 5, "at": 1}), ("customers", {"customer": "c", "country": "DE", "at": 1}),
            ("rates", {"country": "DE", "rate": 1, "at": 1}),
            ("lines", {"id": "x", "sku": "a", "customer": "c", "n": 2, "at": 10}),
            ("prices", {"sku": "a", "price": 0, "at": 5}), ("prices", {"sku": "a", "price": 10, "at": 6}),
        ):  # fmt: skip
            driver.pipe(source, row if source == "lines" else {**row, "gone": False})
        done = [record.value and record.value["usd"] for record in driver.read("done")]
        assert done == [10, None, 5]
        assert driver.metrics()["dropped_records"] == {"done": {"expression_failed": 1}}
        (lost,) = driver.read("dropped")
        assert lost.value is not None
        assert (lost.value["key"], lost.value["value"]) == ('{"country":"DE"}', '{"id":"x","amount":0,"revision":1}')


def kept(driver: TopologyTestDriver) -> dict[str, int]:
    """By store how many rows lie in the partitions, whatever the clock lets its users see."""
    found: dict[str, int] = {}
    for store in stores_of(driver.plan):
        for partition in range(driver._partitions):
            view = open_view(driver.plan, store, driver._open(store.stage, partition))
            found[store.name] = found.get(store.name, 0) + view.rows()
    return found


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_that_nothing_can_correct_any_more_are_forgotten(partitions: int) -> None:
    run = started(partitions=partitions)
    with run.driver.batch():
        for at in range(60):
            run.line(f"x{at}", 100 + at)
    run.driver.restart()
    with run.driver.batch():
        for at in range(60, 180):
            run.line(f"x{at}", 100 + at)
    found = kept(run.driver)
    lengths = {"priced": 20 + 10, "placed": 20 + 10 + 30}  # until the clock of the next join is its length past a row
    for name, length in lengths.items():
        assert found[name] == found[f"{name}#expiring"]
        assert length < found[name] <= length + (1 if partitions == 1 else 10), name  # each goes by its last record
    assert found["done"] == 180  # an aggregate takes back what is replaced, however late
    assert run.driver.read("total")[-1].value == {"usd": 180 * 6, "n": 180}


def test_a_line_that_comes_again_when_its_row_is_forgotten_begins_anew() -> None:
    run = started(second="", third="")
    assert run.line("x", 10)["done"] == [("x", 6, 0)]
    gone = [("x", "gone")]
    assert run.line("x", 30, customer="d") == {"priced": [("x", 6, 0)], "placed": gone, "done": gone}
    run = started(second="", third="")
    run.line("x", 10)
    run.line("y", 41)  # 41 - 20 is more than 10 past the first one
    assert run.line("x", 41, customer="d") == {"priced": [("x", 6, 0)]}
