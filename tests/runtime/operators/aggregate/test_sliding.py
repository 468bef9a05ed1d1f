"""Sliding windows whose results are aggregated again: the old row of a window is what was sent of it (D29)."""

from __future__ import annotations

import pytest

from vsc.testing import TopologyTestDriver


@pytest.mark.parametrize("clock", ["input", "records"])
@pytest.mark.parametrize(
    ("times", "windows_of_one"),
    [
        ([433, 434], 2),  # of 433, behind it, and the one of both, which begins with what the first has
        ([10, 31], 2),  # of 10, and of 31, which is also the one right after 10 and made twice
    ],
)
def test_an_aggregate_counts_a_window_once(clock: str, times: list[int], windows_of_one: int) -> None:
    text = f"""
    topology t (clock = '{clock}');
    stream s (k string, at bigint) from memory () key k timestamp timestamp_millis(at);
    table windows = aggregate s group by k window sliding (difference = 20 ms, grace = 3 ms) select count(*) as n;
    table sizes = aggregate windows group by n as n select count(*) as windows, collect_list(window_start) as starts;
    sink sizes to memory ();
    """
    with TopologyTestDriver(text) as driver:
        for at in times:
            driver.pipe("s", {"k": "a", "at": at})
        of_one = [record.value for record in driver.read("sizes") if record.key == {"n": 1}][-1]
    assert of_one is not None
    assert of_one["windows"] == len(of_one["starts"]) == windows_of_one
