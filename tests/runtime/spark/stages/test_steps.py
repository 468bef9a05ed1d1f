"""The steps of the input's clock on their way: which are sent to whom, in how many bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.errors import CheckpointError
from vsc.runtime.operators.in_step import NO_COLUMNS
from vsc.runtime.operators.steps import StepsTo, stages_in_step, steps_to
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize, TaskCounters
from vsc.runtime.spark.exchange.pace import Pace, Wait
from vsc.runtime.spark.stages.steps import StepsRouter, packed, unpacked
from vsc.runtime.state.waiting import STEPS

TEXT = """
stream s (k string, c string, at bigint) from memory () timestamp at;
stream o (k string, at bigint) from memory () timestamp at;
table t (k string, w bigint, at bigint) from memory () key k timestamp at
materialize versioned (retention = 1 day);
stream j = left join s with t on k grace 1 hour select c, w;
table days = aggregate j group by c window tumbling (size = 1 day, grace = 1 hour) emit final select count(*) as n;
table plain = aggregate o group by k select count(*) as n;
"""


def plan(clock: str = "input") -> Plan:
    chosen: Any = clock
    return replace(compile_topology(TEXT, path="t.vdsl", variables={}), clock=chosen)


def steps(times: list[int], parts: list[str], places: list[int] | None = None, source: str = "s") -> Batch:
    """Steps at offsets that count from 1, of the parts at `places`."""
    time, count = np.array(times, dtype=np.int64), len(times)
    order = Order(
        time, np.array(places or [0] * count, np.int32), np.arange(1, count + 1), np.zeros((count, 0), np.int64)
    )
    origins = tuple(Origin(source, 1, part) for part in parts)
    return Batch(NO_COLUMNS, origins, order, time, np.ones(count, dtype=np.bool_), (), ())


def test_steps_go_where_something_waits_for_their_time_or_where_it_is_told() -> None:
    assert steps_to(plan()) == {"s": StepsTo((1, 2), 1), "o": StepsTo((), 1), "t": StepsTo((), 1)}
    assert stages_in_step(plan()) == (1, 2)
    assert steps_to(plan("records")) == {}
    assert stages_in_step(plan("records")) == (1,)


@pytest.mark.parametrize(("source", "waits", "expected"), [
    ("s", False, [(1, 0), (1, 1), (2, 0), (2, 1)]), ("s", True, [(1, 0), (1, 1), (2, 0), (2, 1)]),
    ("o", False, []), ("o", True, [(1, 0)]), ("t", True, [(1, 0)]),
])  # fmt: skip
def test_every_partition_gets_what_its_stage_waits_for(
    source: str, waits: bool, expected: list[tuple[int, int]]
) -> None:
    router = StepsRouter(plan(), source, 2, Pace({"s": Wait()} if waits else {}))
    some = router.needed(steps([5, 7], ["a"], source=source))
    rows = list(router.route(some)) if len(some) else []
    assert [(row.dest, row.partition, row.port) for row in rows] == [(*place, STEPS) for place in expected]
    assert all(unpacked(row.payload).order.time.tolist() == [5, 7] for row in rows)


WINDOWS = """
stream s (k string, at bigint) from memory () key k timestamp at;
table a = aggregate s group by k window tumbling (size = 10 ms, grace = 3 ms) emit final select count(*) as n;
table h = aggregate s group by k window hopping (size = 12 ms, advance = 6 ms) select count(*) as n;
table b = suppress h until window closes;
"""


@pytest.mark.parametrize(
    ("text", "waits", "sent"),
    [
        (WINDOWS, False, [0, 3, 6, 12, 13, 19, 36]),  # beyond 3, 13, 23 ... or 0, 6, 12 ...
        (WINDOWS, True, [0, 1, 3, 4, 5, 6, 12, 13, 17, 19, 20, 36]),
        (WINDOWS + "table l = suppress a until time limit 1 ms;", False, [0, 1, 3, 4, 5, 6, 12, 13, 17, 19, 20, 36]),
    ],
)
def test_where_only_windows_wait_just_the_steps_are_sent_at_which_one_can_close(
    text: str, waits: bool, sent: list[int]
) -> None:
    compiled = compile_topology(text, path="t.vdsl", variables={})
    router = StepsRouter(compiled, "s", 1, Pace({"s": Wait()} if waits else {}))
    rows = list(router.route(steps([0, 1, 3, 4, 5, 6, 12, 13, 17, 19, 20, 36], ["a"])))
    assert {tuple(unpacked(row.payload).order.time.tolist()) for row in rows} == {tuple(sent)}


def test_what_moves_no_clock_is_not_sent() -> None:
    router = StepsRouter(plan(), "s", 1, Pace(starts={"s": 5}))
    found = router.needed(steps([9, 3, 5, 6, 9, 8], ["a", "b"], [1, 1, 0, 0, 0, 1]))
    (one, _) = router.route(found)
    got = unpacked(one.payload)
    assert got.order.time.tolist() == [6, 8, 9]
    assert [got.origins[i].part for i in got.order.origin] == ["a", "b", "a"]
    assert got.order.offset.tolist() == [4, 6, 5]
    assert got.timestamps.tolist() == [6, 8, 9]


def test_a_step_takes_few_bytes() -> None:
    times = (np.arange(8000, dtype=np.int64) * 60_000 + 1_700_000_000_000).tolist()
    whole = steps(times, ["file:/data/flights.parquet"])
    data = packed(whole)
    assert len(data) < 1000
    again = unpacked(data)
    assert again.order.time.tolist() == times
    assert again.order.offset.tolist() == list(range(1, 8001))
    assert again.origins == whole.origins


def test_the_pace_of_an_epoch_has_the_clocks_at_its_start() -> None:
    before = Pace.load('{"waits":{},"waiting":{},"now":null,"latest":{}}')
    assert before.starts == {}
    counters = TaskCounters(1, 0, state=StateSize(waiting=1, steps=2))
    counters.passed("s", 7)
    counters.passed("s", 6)
    report = EpochReport.gather(0, [counters.row().payload])
    assert report.gone_on == {"s": 7}
    kept = EpochReport.from_dict(report.as_dict())
    assert kept.gone_on == {"s": 7}
    pace = Pace(starts={"s": 9, "t": 1})
    assert pace.clocks_after(kept) == {"s": 9, "t": 1}
    assert Pace().clocks_after(kept) == {"s": 7}
    assert pace.left(kept) == {"1-0": 3}
    assert Pace.load(pace.dump()) == pace
    with pytest.raises(CheckpointError, match="damaged"):
        Pace.load('{"waits":{},"waiting":{},"starts":{"s":"7"}}')
