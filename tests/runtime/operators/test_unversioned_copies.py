"""An unversioned copy of a versioned table ends with the row that is the newest there (D35), however late rows come."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.compiler import check_topology
from vsc.testing import TopologyTestDriver

TEXT = """
topology copies (clock = '{clock}');
table rates (k string, rate int, at bigint, gone boolean) from memory () key k timestamp at delete when gone
  materialize versioned (retention = 1 hour);
table known = filter rates where rate > 0;
table copy = {made};
table calm = suppress copy until time limit 1 ms;
sink copy to memory ();
sink calm to memory ();
sink dropped of copy to memory ();
"""
MADE = {
    "materialize": "materialize rates unversioned",
    "of a filter": "materialize known unversioned",
    "expiring": "materialize rates unversioned (expire = 1 hour)",
    "filter": "filter rates where rate > 1 materialize unversioned",
    "map": "map rates select rate materialize unversioned",
}


def copied(made: str, clock: str = "input") -> tuple[list[tuple[Any, int]], dict[str, int]]:
    """What the copy sends of a row of 20, a late one of 10, a deletion of 30 and a late row of 25; what it drops."""
    with TopologyTestDriver(TEXT.format(made=made, clock=clock)) as driver:
        for rate, at, gone in ((2, 20, False), (3, 10, False), (0, 30, True), (4, 25, False)):
            driver.pipe("rates", {"k": "a", "rate": rate, "at": at, "gone": gone})
        sent = [(r.value and r.value["rate"], r.timestamp) for r in driver.read("copy")]
        dropped = driver.metrics()["dropped_records"].get("copy", {})
        assert isinstance(dropped, dict)
        assert len(driver.read("dropped of copy")) == sum(dropped.values())
        return sent, dropped


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_late_row_does_not_take_the_place_of_a_newer_one(made: str) -> None:
    assert copied(made) == ([(2, 20), (None, 30)], {"out_of_order": 2})


def test_a_newer_row_that_a_filter_removes_stays_removed() -> None:
    sent, dropped = copied("filter rates where rate > 2 materialize unversioned")
    assert (sent, dropped) == ([(None, 20), (None, 30)], {"out_of_order": 2})


def test_by_the_clock_of_records_it_is_as_in_kafka_streams() -> None:
    sent, dropped = copied(MADE["materialize"], "records")
    assert (sent, dropped) == ([(2, 20), (3, 10), (None, 30), (4, 25)], {})


def test_the_history_that_tells_late_rows_is_not_called_unread() -> None:
    found = check_topology("""
table rates (k string, rate int, at bigint) from memory () key k timestamp at
  materialize versioned (retention = 1 hour);
table copy = materialize rates unversioned;
sink copy to memory ();
""")
    assert not found


def test_what_expiring_copies_drop_has_a_sink() -> None:
    found = check_topology("""
table rates (k string, rate int, at bigint) from memory () key k timestamp at;
table copy = materialize rates unversioned (expire = 1 hour);
sink copy to memory ();
sink dropped of copy to memory ();
""")
    assert not found
