"""The clocks that users are shown: the lowest of the partitions, and how far each is behind its sources."""

from __future__ import annotations

import io
import json
from typing import Any
from urllib.request import urlopen

import pytest

from tests.runtime.spark.stages.test_steps import plan
from vsc.compiler import compile_topology
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize, StoreState
from vsc.runtime.spark.report.displays import JsonDisplay
from vsc.runtime.spark.report.exporter import PrometheusDisplay
from vsc.runtime.spark.report.progress import Batch, Tracker
from vsc.runtime.spark.report.progress_text import summary_parts

HOUR, DAY = 3_600_000, 86_400_000


def batch(clock: str) -> Batch:
    """What a batch says in which the stream of the join came to 12 o'clock, and the table to 1 o'clock."""
    stores = [{"j#waiting": StoreState(stream_time=time), "t": StoreState(stream_time=HOUR)} for time in (HOUR, 7)]
    state = {f"1-{number}": StateSize(stores=store) for number, store in enumerate(stores)}
    state["2-0"] = StateSize(stores={"days#windows": StoreState(stream_time=HOUR)})
    moved = {"s": 12 * HOUR, "t": HOUR}
    report = EpochReport(0, state=state)
    if clock == "input":
        report.gone_on = moved
    else:
        report.clocks = moved
    return Tracker.after(plan(clock), [], 0.0).batch(report, 1)


@pytest.mark.parametrize(("clock", "expected"), [
    ("records", {"j#waiting": (7, 12 * HOUR - 7), "t": (HOUR, 0), "days#windows": (HOUR, 11 * HOUR)}),
    ("input", {"j#waiting": (12 * HOUR, 0), "t": (HOUR, 0), "days#windows": (11 * HOUR, HOUR)}),
])  # fmt: skip
def test_the_clock_of_a_node_is_the_lowest_of_its_partitions(clock: str, expected: dict[str, tuple[int, int]]) -> None:
    event = batch(clock)
    assert {name: (store.stream_time, event.behind[name]) for name, store in event.stores.items()} == expected
    stream = io.StringIO()
    JsonDisplay(stream).batch(event)
    told: dict[str, Any] = json.loads(stream.getvalue())
    assert {name: (store["stream_time"], store["behind"]) for name, store in told["stores"].items()} == expected
    assert told["sources"]["s"]["clock"] == 12 * HOUR


def test_prometheus_has_the_clocks() -> None:
    show = PrometheusDisplay("127.0.0.1", 0)
    try:
        show.batch(batch("input"))
        with urlopen(f"http://127.0.0.1:{show.port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
    finally:
        show.close()
    assert {
        'vsc_stream_time_ms{store="days#windows"} 3.96e+07',
        'vsc_source_clock_ms{source="s"} 4.32e+07',
        'vsc_clock_behind_ms{store="days#windows"} 3.6e+06',
    } <= set(lines)


TEXT = """
table t (k string, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
stream s (k string, at bigint) from memory () key k timestamp at;
stream j = left join s with t select t.at as since;
table n = join t with t as again select t.at as since;
sink j to memory ();
sink n to memory ();
"""


@pytest.mark.parametrize(("clocks", "expected", "summed_up"), [
    ({"t": 12 * HOUR}, {"node": "j", "behind": None}, "all of t is kept for 'j', whose stream has brought nothing yet"),
    ({"t": 12 * HOUR, "s": 2 * HOUR}, {"node": "j", "behind": 10 * HOUR},
     "t is kept for 'j', which is 10 hours behind"),
    ({"t": 12 * HOUR, "s": 11 * HOUR}, None, None),
    ({"s": 11 * HOUR}, None, None),
])  # fmt: skip
def test_what_keeps_the_history_of_a_table_is_told(
    clocks: dict[str, int], expected: dict[str, Any] | None, summed_up: str | None
) -> None:
    report = EpochReport(0, state={"1-0": StateSize(stores={"t": StoreState(stream_time=1)})})
    report.gone_on = clocks
    tracker = Tracker.after(compile_topology(TEXT, path="t.vdsl"), [], 0.0)
    event, stream = tracker.batch(report, 1), io.StringIO()
    JsonDisplay(stream).batch(event)
    assert json.loads(stream.getvalue())["stores"]["t"].get("history_kept_for") == expected
    told = dict(summary_parts(tracker.finished())).get("history")
    assert told == (None if summed_up is None else [summed_up])
