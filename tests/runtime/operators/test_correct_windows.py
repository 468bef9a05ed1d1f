"""Sliding windows and sessions over corrected results: where they are depends on which rows there are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.test_correct import Run
from tests.runtime.operators.test_correct_chains import kept

BEHIND = """
table windows = aggregate priced group by 1 as one window {window} select count(*) as n, sum(usd) as usd;
table closed = suppress windows until window closes;
table final = aggregate priced group by 1 as one window {window} emit final select count(*) as n, sum(usd) as usd;
sink windows to memory (); sink closed to memory (); sink final to memory ();
"""


def started(window: str, mode: str = "", partitions: int = 1) -> Run:
    """A run in which there is a rate."""
    run = Run(mode=mode, behind=BEHIND.format(window=window), partitions=partitions)
    run.rate(1, 1)
    return run


def read(run: Run, node: str = "windows") -> list[Any]:
    """What has come out since: start, end, count and sum of a window, or None, and the time."""
    return [
        (*(int(bound.timestamp() * 1000) for bound in list(r.key.values())[1:]),
         None if r.value is None else tuple(r.value.values()), r.timestamp)
        for r in run.driver.read(node)
    ]  # fmt: skip


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_row_that_goes_splits_its_session_and_one_that_comes_back_joins_the_parts(partitions: int) -> None:
    run = started("session (gap = 5 ms)", partitions=partitions)
    for id, at in (("a", 10), ("b", 14), ("c", 18)):
        run.pay(id, 1, at)
    assert read(run)[-1] == (10, 18, (3, 3), 18)
    run.driver.restart()
    run.rate(2, 15)
    assert read(run) == [(10, 18, (3, 4), 18)]
    run.rate(None, 11)  # nothing is valid at 14
    assert read(run) == [(10, 18, None, 18), (10, 10, (1, 1), 10), (18, 18, (1, 2), 18)]
    run.driver.restart()
    run.rate(5, 12)
    assert read(run) == [(10, 10, None, 10), (18, 18, None, 18), (10, 18, (3, 8), 18)]
    run.rate(None, 2)
    assert read(run) == [(10, 18, None, 18), (14, 18, (2, 7), 18)]
    run.pay("d", 1, 43)  # 18 + 5 + 1 + 20 is 44
    assert (read(run, "final"), read(run, "closed")) == ([], [])
    run.pay("e", 1, 44)
    assert read(run, "final") == read(run, "closed") == [(14, 18, (2, 7), 18)]


def test_sliding_windows_go_with_the_row_that_they_end_at_or_begin_behind() -> None:
    run = started("sliding (difference = 5 ms)")
    for id, at in (("a", 10), ("b", 14)):
        run.pay(id, 1, at)
    assert read(run) == [(5, 10, (1, 1), 10), (9, 14, (2, 2), 14), (11, 16, (1, 1), 14)]
    run.rate(2, 12)
    assert read(run) == [(9, 14, (2, 3), 14), (11, 16, (1, 2), 14)]
    run.rate(None, 2)  # nothing is valid at 10
    assert read(run) == [(5, 10, None, 10), (11, 16, None, 14), (9, 14, (1, 2), 14)]
    run.pay("c", 1, 40)
    assert read(run, "final") == read(run, "closed") == [(9, 14, (1, 2), 14)]


def test_a_row_that_comes_too_late_for_its_session_is_counted() -> None:
    run = started("session (gap = 5 ms)", mode="left")
    run.pay("a", 1, 10)
    run.pay("b", 1, 60)
    read(run)
    run.pay("c", 1, 12)  # it would be in the session of 10, which has closed
    assert read(run) == []
    assert run.counted()["dropped_records"] == {"windows": {"window_closed": 1}, "final": {"window_closed": 1}}
    assert read(run, "final") == [(10, 10, (1, 1), 10)]


@pytest.mark.parametrize("window", ["session (gap = 5 ms)", "sliding (difference = 5 ms)"])
def test_rows_of_closed_windows_are_not_kept(window: str) -> None:
    run = started(window)
    with run.driver.batch():
        for at in range(0, 1000, 10):
            run.pay(f"p{at}", 1, at)
    found = kept(run.driver)
    assert found["windows#windows" if "sliding" in window else "windows#sessions"] == 3  # since 990 - 20 - 6
    with run.driver.batch():
        run.pay("last", 1, 5000)
    assert kept(run.driver)["windows#windows" if "sliding" in window else "windows#sessions"] == 1
