"""The state of aggregates and of suppress: restarts, cuts, the end of the input, and what leaves the store again."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow
from tests.runtime.operators.driving import dropped
from tests.runtime.operators.test_later_stage import Stores, rows, seen
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.errors import BufferFullError, StateError
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.state.kv import MemoryKV
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.slow

STREAM = "stream s (k string, v string, a string) from memory () key k;\n"
ITEMS = """select count(*) as c, count(distinct v) as d, min(v) as mn, max(v) as mx, first(v) as f, last(v) as l,
  max_by(v, a) as mb, collect_list(v) as cl, collect_set(v) as cs,
  collect_top(a, 2 by v desc) as ct, approx_percentile(length(k || v), 0.5) as p"""
FORMS = {
    "stream": f"table x = aggregate s group by a as g {ITEMS};",
    "table": f"table t = to_table s; table x = aggregate t group by a as g {ITEMS};",
    "tumbling": f"table x = aggregate s group by k window tumbling (size = 10 ms, grace = 5 ms) {ITEMS};",
    "tumbling final": f"""table x = aggregate s group by k window tumbling (size = 10 ms, grace = 5 ms) emit final
      {ITEMS};""",
    "hopping final": f"""table x = aggregate s group by k window hopping (size = 20 ms, advance = 6 ms) emit final
      {ITEMS};""",
    "sliding": f"table x = aggregate s group by k window sliding (difference = 7 ms, grace = 9 ms) {ITEMS};",
    "sliding final": f"table x = aggregate s group by k window sliding (difference = 7 ms) emit final {ITEMS};",
    "session": f"table x = aggregate s group by k window session (gap = 4 ms, grace = 9 ms) {ITEMS};",
    "session final": f"table x = aggregate s group by k window session (gap = 4 ms, grace = 9 ms) emit final {ITEMS};",
    "of windows": f"""table w = aggregate s group by k window sliding (difference = 7 ms, grace = 9 ms) {ITEMS};
      table x = aggregate w group by mn as g select count(*) as c, collect_list(c) as cl, sum(c) as n;""",
    "suppress closes": f"""table w = aggregate s group by k window session (gap = 4 ms, grace = 9 ms) {ITEMS};
      table x = suppress w until window closes;""",
    "suppress limit": """table t = to_table s; table y = suppress t until time limit 20 ms;
      table x = aggregate y group by a as g select count(*) as c, collect_list(v) as cl;""",
    "suppress bound": """table t = to_table s;
      table x = suppress t until time limit 50 ms (max_records = 2, when_full = 'emit');""",
}


def some_rows(seed: int, count: int) -> list[EpochRow]:
    rng = random.Random(seed)
    found, clock = [], 0
    for offset in range(count):
        clock += rng.choice((0, 1, 1, 2, 8))
        row: dict[str, Any] = {"k": rng.choice("abc"), "v": rng.choice("bdef"), "a": rng.choice(["x", "y", None])}
        if rng.random() < 0.1:
            row["v"] = None
        found.append(EpochRow("s", "", offset, row, max(0, clock - rng.choice((0, 0, 0, 3, 12)))))
    return found


def played(plan: Plan, fed: list[EpochRow], cuts: int | None) -> dict[str, list[Any]]:
    """What comes of the rows; with `cuts` in epochs cut at random, with a restart behind each."""
    found: dict[str, list[Any]] = {}
    stores = Stores()
    runtime = LocalRuntime(plan, stores, ("x",))
    rng = random.Random(cuts)
    rest = fed
    while rest:
        size = 1 if cuts is None else rng.randrange(1, 9)
        seen(runtime.process(rows(plan, rest[:size])), found)
        rest = rest[size:]
        if cuts is not None:
            runtime = LocalRuntime(plan, stores, ("x",), starts=runtime.starts)
    seen(runtime.drain(), found)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_cuts_and_restarts_do_not_show(form: str) -> None:
    plan = compile_topology(STREAM + FORMS[form] + "sink x to memory ();", path="t.vdsl")
    for seed in range(2):
        fed = some_rows(seed, 60)
        expected = played(plan, fed, None)
        assert len(expected["x"]) > 5
        assert played(plan, fed, seed) == expected


@pytest.mark.parametrize("form", ["tumbling final", "hopping final", "sliding final", "session final"])
def test_the_final_results_are_the_last_ones_of_every_window(form: str) -> None:
    final = compile_topology(STREAM + FORMS[form], path="t.vdsl")
    changes = compile_topology(STREAM + FORMS[form].replace("emit final", ""), path="t.vdsl")
    for seed in range(3):
        fed = some_rows(seed, 80)
        last = {record[:3]: record[3:] for record in played(changes, fed, None)["x"]}
        found = played(final, fed, None)["x"]
        assert len(found) == len({record[:3] for record in found})  # each window once
        assert {record[:3]: str(record[3:]) for record in found} == {
            window: str(rest) for window, rest in last.items() if rest[-1]
        }


@pytest.mark.parametrize("form", ["tumbling", "hopping final", "sliding", "sliding final", "session", "session final"])
def test_windows_leave_the_store_when_nothing_can_reach_them(form: str) -> None:
    plan = compile_topology(STREAM + FORMS[form], path="t.vdsl")
    stores = Stores()
    runtime = LocalRuntime(plan, stores, ("x",))
    sizes = []
    for offset in range(300):
        row = {"k": "ab"[offset % 2], "v": str(offset), "a": "x"}
        runtime.process(rows(plan, [EpochRow("s", "", offset, row, offset * 6)]))
        sizes.append(sum(len(kv) for kv in stores.values() if isinstance(kv, MemoryKV)))
    assert max(sizes[200:]) <= max(sizes[:100])


def test_late_records_are_counted() -> None:
    text = (
        STREAM
        + """
    table w = aggregate s group by k window hopping (size = 20 ms, advance = 10 ms) select count(*) as c;
    table l = aggregate s group by k window sliding (difference = 5 ms) select count(*) as c;
    table e = aggregate s group by k window session (gap = 5 ms) select count(*) as c;"""
    )
    with TopologyTestDriver(text) as driver:
        for time in (0, 100, 50, 89):
            driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=time)
        assert len(driver.read("w")) == 1 + 2 + 0 + 1 - 1 + 1 - 1
        # 50: two hopping windows; 89: one of its two is open still ([80, 100) closed at 100), none otherwise
        assert dropped(driver)["w"] == {"window_closed": 4}
        assert dropped(driver)["l"] == {"window_closed": 2}
        assert dropped(driver)["e"] == {"window_closed": 2}


@pytest.mark.parametrize(("clock", "sent"), [("records", []), ("input", [{"c": 1}])])
def test_a_record_without_value_is_dropped_and_moves_the_clock_of_the_input_only(clock: str, sent: list[Any]) -> None:
    text = f"topology t (clock = '{clock}');" + STREAM
    text += "table w = aggregate s group by k window tumbling (size = 10 ms) emit final select count(*) as c;"
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=0)
        driver.delete("s", {"k": "a"}, timestamp=50)
        assert [r.value for r in driver.read("w")] == sent
        assert dropped(driver) == {"w": {"no_value": 1}}


def test_no_window_is_lost_when_stream_time_jumps() -> None:
    text = STREAM + "table w = aggregate s group by k window tumbling (size = 20 ms) emit final select count(*) as c;"
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=5)
        driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=1045)
        assert [(r.value, r.timestamp) for r in driver.read("w")] == [({"c": 1}, 5)]  # D15


def test_a_session_is_open_up_to_its_last_millisecond() -> None:
    text = STREAM + "table w = aggregate s group by k window session (gap = 5 ms, grace = 10 ms) select count(*) as c;"
    for clock, count in ((15, 2), (16, 1)):
        with TopologyTestDriver(text) as driver:
            driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=0)
            driver.pipe("s", {"k": "b", "v": "x", "a": "y"}, timestamp=clock)
            driver.read("w")
            driver.pipe("s", {"k": "a", "v": "x", "a": "y"}, timestamp=1)
            assert driver.read("w")[-1].value == {"c": count}  # D16


def test_the_end_of_the_input_goes_through_the_stages_in_their_order() -> None:
    text = (
        STREAM
        + """
    table w = aggregate s group by k window tumbling (size = 10 ms) emit final select count(*) as c;
    table n = aggregate w group by c as g select count(*) as windows;
    table x = suppress n until time limit 1 hour;"""
    )
    plan = compile_topology(text, path="t.vdsl")
    runtime = LocalRuntime(plan, Stores(), ("w", "n", "x"))
    found: dict[str, list[Any]] = {}
    for offset, (key, time) in enumerate((("a", 1), ("b", 3), ("a", 4), ("b", 11))):
        seen(runtime.process(rows(plan, [EpochRow("s", "", offset, {"k": key, "v": "x", "a": ""}, time)])), found)
    assert [r[0] for r in found["w"]] == ["a", "b"] and "x" not in found
    tasks = [task for stage in runtime._later for task in stage]
    assert sum(task.held for task in tasks) == 1 + 2  # a window, and what became of two others
    found.clear()
    seen(runtime.drain(), found)
    assert [r[0] for r in found["w"]] == ["b"]
    assert sorted(r[:2] for r in found["x"]) == [(1, 2), (2, 1)]
    assert sum(task.held for task in tasks) == 0
    found.clear()
    seen(runtime.process(rows(plan, [EpochRow("s", "", 9, {"k": "b", "v": "x", "a": ""}, 12)])), found)
    assert "w" not in found  # its window was final


def test_a_full_suppress_fails_or_sends_early() -> None:
    table = "table t (k string, v string) from memory () key k;\n"
    full = "table x = suppress t until time limit 1 hour (max_records = 2, when_full = '{}');"
    with TopologyTestDriver(table + full.format("emit")) as driver:
        for n, key in enumerate("abac"):
            driver.pipe("t", {"k": key, "v": str(n)}, timestamp=n)
        assert [(r.key, r.value, r.timestamp) for r in driver.read("x")] == [({"k": "a"}, {"v": "2"}, 2)]
        assert driver.metrics()["held_records"] == {"x": 3}
    with TopologyTestDriver(table + full.format("fail")) as driver:
        driver.pipe("t", {"k": "a", "v": "x"}, timestamp=0)
        driver.pipe("t", {"k": "b", "v": "x"}, timestamp=0)
        with pytest.raises(BufferFullError, match=r"VSC908.*'x'.*max_records = 2"):
            driver.pipe("t", {"k": "c", "v": "x"}, timestamp=0)


@pytest.mark.parametrize(("clock", "sums"), [("records", [3, 6]), ("input", [2, 5])])
def test_behind_a_suppress_old_rows_are_those_that_were_sent(clock: str, sums: list[int]) -> None:
    text = (
        f"topology t (clock = '{clock}');"
        + """table t (k string, v int) from memory () key k;
    table x = suppress t until time limit 10 ms;
    table n = aggregate x group by 'all' as g select sum(v) as s;"""
    )
    with TopologyTestDriver(text) as driver:
        for value, time in ((1, 0), (2, 5), (3, 10), (4, 11), (5, 12), (6, 30)):
            driver.pipe("t", {"k": "a", "v": value}, timestamp=time)
        assert [r.value for r in driver.read("n")] == [{"s": s} for s in sums]  # D17


def test_a_versioned_result_store_does_not_make_an_aggregate_forget() -> None:
    text = """table t (k string, g string) from memory () key k;
    table n = aggregate t group by g select count(*) as c materialize versioned (retention = 1 hour);"""
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "g": "x"}, timestamp=10)
        driver.delete("t", {"k": "a"}, timestamp=20)
        driver.pipe("t", {"k": "b", "g": "x"}, timestamp=15)  # older than the group's tombstone
        driver.pipe("t", {"k": "c", "g": "x"}, timestamp=16)
        assert [(r.value, r.timestamp) for r in driver.read("n")] == [
            ({"c": 1}, 10), (None, 20), ({"c": 1}, 20), ({"c": 2}, 20),
        ]  # fmt: skip  # D18, and at the time of the newest result (D33)


def test_the_state_of_another_format_version_is_refused() -> None:
    kv = MemoryKV()
    key = b"\0\1pm"
    kv.write([(key, struct.pack("<4sHHqqqqqq", b"VSTA", 3, 0, 7, 6, 5, 4, 3, 2))])
    with pytest.raises(StateError, match="format version 2"):
        AggregateState(kv, b"p", True)
