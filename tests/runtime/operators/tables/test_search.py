"""Searching a batch's timeline, against a scan of every entry."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.runtime.operators.tables.search import NONE, Timeline, latest_before

HUGE = 2**61
TIMES = st.integers(0, 6) | st.sampled_from([0, HUGE, HUGE + 1])
Entry = tuple[int, int, int]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """Entries (key, time, arrival) and look-ups of the same form; every arrival is used once."""
    stored = draw(st.lists(st.tuples(st.integers(0, 2), TIMES), unique=True, max_size=8))
    kinds = draw(st.lists(st.tuples(st.booleans(), st.integers(0, 2), TIMES), max_size=25))
    entries = [(k, t, -1) for k, t in sorted(stored)]
    entries += [(k, t, i) for i, (is_put, k, t) in enumerate(kinds) if is_put]
    return entries, [(k, t, i) for i, (is_put, k, t) in enumerate(kinds) if not is_put]


def columns(rows: list[Entry]) -> list[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, 3).T)


@settings(max_examples=400, deadline=None)
@given(batches())
def test_answers_are_those_of_a_scan(batch: tuple[list[Entry], list[Entry]]) -> None:
    entries, queries = batch
    entry_key, entry_time, entry_arrival = columns(entries)
    timeline = Timeline(3, entry_key, entry_time, entry_arrival)
    key, time, arrival = columns(queries)
    known, newest = timeline.newest_time(key, arrival)
    as_of = timeline.as_of(key, time, arrival)
    before = latest_before(entry_key, entry_arrival, key, arrival)
    top = timeline.newest(key, arrival)
    for i, (k, t, a) in enumerate(queries):
        seen = [(entry[1], entry[2], n) for n, entry in enumerate(entries) if entry[0] == k and entry[2] < a]
        candidates = [entry for entry in seen if entry[0] <= t]
        assert as_of[i] == (max(candidates)[2] if candidates else NONE)
        assert bool(known[i]) == bool(seen)
        assert top[i] == (max(seen)[2] if seen else NONE)
        if seen:
            assert newest[i] == max(seen)[0]
        assert before[i] == (max((entry[1], entry[2]) for entry in seen)[1] if seen else NONE)


def test_look_ups_that_arrive_before_a_long_run_of_versions() -> None:
    versions, lookups = 5000, 300
    key = np.zeros(versions, dtype=np.int64)
    time = np.arange(versions, dtype=np.int64)
    arrival = np.arange(versions, dtype=np.int64) + np.where(time % 2 == 0, 0, versions)
    timeline = Timeline(1, key, time, arrival)
    at = timeline.as_of(np.zeros(lookups, np.int64), np.full(lookups, versions), np.arange(lookups) * 14 + 1)
    assert at.tolist() == [int(max(t for t in range(0, versions, 2) if t < a)) for a in range(1, lookups * 14, 14)]


def test_many_look_ups_at_once() -> None:
    rng = np.random.default_rng(3)
    key, time = rng.integers(0, 50, 900), rng.integers(0, 400, 900)
    order = np.lexsort((time, key))
    timeline = Timeline(50, key[order], time[order], np.full(900, -1))
    wanted, at_time = rng.integers(0, 50, 10_000), rng.integers(0, 400, 10_000)
    found = timeline.as_of(wanted, at_time, np.arange(10_000))
    entries = list(zip(key[order].tolist(), time[order].tolist(), range(900), strict=True))
    for i in range(0, 10_000, 97):
        candidates = [(t, n) for k, t, n in entries if k == wanted[i] and t <= at_time[i]]
        assert found[i] == (max(candidates)[1] if candidates else NONE)
