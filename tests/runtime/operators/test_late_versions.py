"""Versions of a table that come later than a join of a stream has waited for them are counted, and how late they were.

What each expects is worked out by hand from the rule: late is what the clock of the join, less its grace, has reached.
"""

from __future__ import annotations

from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

TEXT = """
topology priced_payments (clock = '{clock}');
table rates (currency string, rate double, at bigint, gone boolean)
from memory () key currency timestamp at delete when gone
materialize versioned (retention = {retention});
{more}
stream payments (id string, currency string, at bigint) from memory () key id timestamp at;
{stream}
stream priced = left join {left} with {right} on currency {clause} select id, rate;
sink priced to memory ();
"""


def counted(
    *rows: tuple[str, int],
    clause: str = "",
    right: str = "rates",
    more: str = "",
    left: str = "payments",
    stream: str = "",
    clock: str = "input",
    retention: str = "1 hour",
    partitions: int = 1,
    drain: bool = False,
) -> tuple[Any, Any]:
    """Late versions and the grace that they need, after rows of a source: r and p, and x for a rate's tombstone, of a
    currency of its own from the fourth letter on."""
    text = TEXT.format(
        clause=clause, right=right, more=more, left=left, stream=stream, clock=clock, retention=retention
    )
    with TopologyTestDriver(text, partitions=partitions) as driver:
        for number, (what, at) in enumerate(rows):
            currency = what[1:] or "EUR"
            if what[0] == "p":
                driver.pipe("payments", {"id": str(number), "currency": currency, "at": at})
            else:
                driver.pipe("rates", {"currency": currency, "rate": 1.0, "at": at, "gone": what[0] == "x"})
        if drain:
            driver.drain()
        found = driver.metrics()
    return found["late_versions"].get("priced", 0), found.get("grace_needed", {}).get("priced")


def test_the_example_of_the_contract() -> None:
    assert counted(("r", 10), ("p", 25), ("r", 20)) == (1, 6)


def test_tombstones_and_versions_of_keys_without_records_count_and_the_latest_decides() -> None:
    assert counted(("r", 10), ("p", 25), ("x", 20), ("rUSD", 25), ("r", 26)) == (2, 6)


@pytest.mark.parametrize(
    ("clause", "late", "needed"),
    [
        ("grace 4 ms", 1, 6),
        ("grace 5 ms", 1, 6),
        ("grace 6 ms", 0, None),
        ("strictly before", 1, 5),
        ("grace 4 ms strictly before", 1, 5),
        ("grace 5 ms strictly before", 0, None),
    ],
)
def test_a_version_is_late_once_the_clock_less_the_grace_has_reached_it(
    clause: str, late: int, needed: int | None
) -> None:
    assert counted(("r", 10), ("p", 25), ("r", 20), clause=clause) == (late, needed)


def test_the_clock_is_that_of_the_stream_less_what_holds_its_records_back() -> None:
    early = "table older (currency string, n int, at bigint) from memory () key currency timestamp at "
    early += "materialize versioned (retention = 1 hour);"
    waited = "stream waited = left join payments with older on currency grace 7 ms select id, n;"
    rows = (("p", 25), ("r", 19), ("r", 18), ("r", 17))
    assert counted(*rows, more=early, stream=waited, left="waited") == (2, 2)  # the clock of `priced` is 18
    assert counted(*rows) == (3, 9)


def test_a_version_that_the_store_refuses_does_not_count() -> None:
    assert counted(("r", 100), ("p", 100), ("r", 89), ("r", 90), retention="10 ms") == (1, 11)


def test_the_history_behind_a_filter_counts() -> None:
    more = "table low = filter rates where rate < 0; table lower = map low select rate;"
    assert counted(("p", 25), ("r", 20), right="lower", more=more) == (1, 6)


def test_an_unversioned_table_and_the_clock_of_records_count_nothing() -> None:
    more = "table now = materialize rates unversioned;"
    assert counted(("p", 25), ("r", 20), right="now", more=more) == (0, None)
    assert counted(("p", 25), ("r", 20), clock="records") == (0, None)


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_clock_goes_on_with_records_of_all_keys(partitions: int) -> None:
    rows = [("p" + "ABCDEFGH"[i], 10 * i) for i in range(8)] + [("r" + "ABCDEFGH"[i], 65 + i) for i in range(8)]
    assert counted(*rows, partitions=partitions) == (6, 6)


def test_within_one_epoch_the_place_of_the_version_decides() -> None:
    with TopologyTestDriver(
        TEXT.format(clause="", right="rates", more="", left="payments", stream="", clock="input", retention="1 hour"),
        partitions=2,
    ) as driver:
        with driver.batch():
            for at in (10, 30, 20):  # the third comes after the second, whose time the payments have not reached
                driver.pipe("rates", {"currency": "EUR", "rate": 1.0, "at": at, "gone": False})
            for number, at in enumerate((25, 28, 31)):
                driver.pipe("payments", {"id": str(number), "currency": "USD", "at": at})
        assert driver.metrics()["late_versions"] == {"priced": 1}
        assert driver.metrics()["grace_needed"] == {"priced": 9}


def test_a_stream_of_the_table_itself_has_waited_for_no_version() -> None:
    text = """
    topology own (clock = 'input');
    table t (k string, n int, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
    stream changes = to_stream t;
    stream j = join changes as a with t as b select a.n as n, b.n as m;
    sink j to memory ();
    """
    with TopologyTestDriver(text) as driver:
        for at in (1, 2, 2, 5, 3):
            driver.pipe("t", {"k": "a", "n": at, "at": at})
        assert driver.metrics()["late_versions"] == {"j": 2}  # the second 2, which the first may have missed, and 3
        assert driver.metrics()["grace_needed"] == {"j": 3}


FINAL = """
table counts = aggregate payments group by currency window tumbling (size = 10 ms) emit final select max(id) as id;
stream changes = to_stream counts;
stream closed = rekey changes by currency as key;
"""


def test_records_that_come_ahead_of_the_clock_may_have_missed_what_is_behind_them() -> None:
    """A window of 0 to 10 goes out at 12, at its last record's time of 9. The clock behind it is then 2."""
    rows = ("r", 2), ("p", 9), ("p", 12), ("r", 5)
    assert counted(*rows, stream=FINAL, left="closed") == (1, 1)
    assert counted(*rows, stream=FINAL, left="closed", clause="grace 1 ms") == (0, None)
    assert counted(*rows[:3], ("r", 12), stream=FINAL, left="closed") == (0, None)
