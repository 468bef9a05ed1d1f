"""Sessions whose results are still asked for after they have closed, and sessions of one moment (D28)."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.testing import TopologyTestDriver


def results(text: str, sink: str, rows: list[tuple[str, int]]) -> list[Any]:
    """The values at a sink, given rows of a key and a time, and the end of the input."""
    with TopologyTestDriver(text) as driver:
        for key, at in rows:
            driver.pipe("s", {"k": key, "at": at})
        driver.drain()
        return [record.value for record in driver.read(sink)]


def test_a_closed_session_does_not_hide_an_open_one_that_begins_before_it() -> None:
    text = """
    stream s (k string, at bigint) from memory () key k timestamp timestamp_millis(at);
    table sessions = aggregate s group by k window session (gap = 10 ms) emit final select collect_list(at) as times;
    table both = left join sessions as l with sessions as r select l.times as times;
    stream seen = to_stream both;
    sink seen to memory ();
    """
    # b closes a's first session; a's second one then grows backwards, to before the first one or to its very start
    for late in (54, 55):
        found = results(text, "seen", [("a", 55), ("b", 67), ("a", 59), ("a", late), ("a", 64)])
        assert [value["times"] for value in found[::2]] == [[55], [late, 59, 64], [67]]
        assert found[::2] == found[1::2]


@pytest.mark.parametrize(("clock", "counts"), [("input", [1, 1, None, 1]), ("records", [1, 2, 1, 2])])
def test_an_aggregate_counts_a_session_of_one_moment_once(clock: str, counts: list[int | None]) -> None:
    text = f"""
    topology t (clock = '{clock}');
    stream s (k string, at bigint) from memory () key k timestamp timestamp_millis(at);
    table sessions = aggregate s group by k window session (gap = 10 ms) select count(*) as n;
    table total = aggregate sessions group by 1 as one select count(*) as n;
    sink total to memory ();
    """
    found = results(text, "total", [("a", 8), ("a", 8), ("a", 11)])
    assert [value and value["n"] for value in found] == counts
