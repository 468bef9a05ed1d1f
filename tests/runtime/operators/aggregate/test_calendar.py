"""Windows by the calendar, as the test driver computes them: days on which clocks are changed, and what is behind."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from vsc.plan.clocks import node_clocks
from vsc.testing import TopologyTestDriver

BERLIN = ZoneInfo("Europe/Berlin")
TEXT = """
topology shop (clock = '{clock}');
stream sales (shop string, amount int, at timestamp) from memory () key shop timestamp at;
table daily =
  aggregate sales group by shop window tumbling (size = 1 day, zone = 'Europe/Berlin', grace = 1 hour) {emit}
  select sum(amount) as amount, sum(10 / (amount - 7)) as odd;
table seen = materialize daily unversioned;
sink seen to memory ();
"""


def sales(day: datetime, hours: int) -> list[dict[str, Any]]:
    """A sale in every hour, by two shops in turn; a few are an hour late."""
    rows = [{"shop": "ab"[n % 2], "amount": n + 10, "at": day + timedelta(hours=n)} for n in range(hours)]
    for n in range(3, hours, 7):
        rows[n - 1], rows[n] = rows[n], rows[n - 1]
    return rows


def local_days(rows: list[dict[str, Any]]) -> dict[tuple[str, datetime, datetime], int]:
    """What each shop sold on each day in Berlin, under the bounds of the day."""
    sums: Counter[tuple[str, datetime, datetime]] = Counter()
    for row in rows:
        date = row["at"].astimezone(BERLIN).date()
        begin, end = (datetime(day.year, day.month, day.day, tzinfo=BERLIN) for day in (date, date + timedelta(days=1)))
        sums[row["shop"], begin.astimezone(UTC), end.astimezone(UTC)] += row["amount"]
    return dict(sums)


@pytest.mark.quick(1)
@pytest.mark.parametrize("clock", ["input", "records"])
@pytest.mark.parametrize("emit", ["emit final", "emit changes"])
@pytest.mark.parametrize("day", [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, 6, tzinfo=UTC)])
def test_days_over_both_changes_of_the_clocks(day: datetime, emit: str, clock: str) -> None:
    rows = sales(day, 80)
    expected = local_days(rows)
    assert {(end - begin).total_seconds() / 3600 for _, begin, end in expected} >= {24, 23 if day.month == 3 else 25}
    for partitions, each in ((1, 1), (1, len(rows)), (3, 13)):
        with TopologyTestDriver(TEXT.format(clock=clock, emit=emit), partitions=partitions) as driver:
            for first in range(0, len(rows), each):
                with driver.batch():
                    for row in rows[first : first + each]:
                        driver.pipe("sales", row)
            driver.drain()
            found = {tuple(record.key.values()): (record.value or {})["amount"] for record in driver.read("seen")}
            assert found == expected
            assert driver.metrics()["dropped_records"] == {}


def test_a_record_that_fails_is_in_no_day_and_the_others_are_as_without_it() -> None:
    rows = sales(datetime(2026, 3, 28, tzinfo=UTC), 60)
    bad = {"shop": "a", "amount": 7, "at": rows[30]["at"]}
    for emit in ("emit final", "emit changes"):
        with TopologyTestDriver(TEXT.format(clock="input", emit=emit), partitions=1, on_error="drop") as driver:
            with driver.batch():
                for row in (*rows[:30], bad, *rows[30:]):
                    driver.pipe("sales", row)
            driver.drain()
            found = {tuple(record.key.values()): (record.value or {})["amount"] for record in driver.read("seen")}
            assert found == local_days(rows)
            assert driver.metrics()["dropped_records"] == {"daily": {"expression_failed": 1}}


def test_what_is_behind_waits_for_the_longest_day() -> None:
    with TopologyTestDriver(TEXT.format(clock="input", emit="emit final") + "sink daily to memory ();") as driver:
        assert node_clocks(driver.plan)["seen"].hold == (24 + 7 + 1) * 3_600_000
