"""`collect_top`: its order, and what of a group its state keeps."""

from __future__ import annotations

import random

from tests.oracle.epochs import EpochRow
from tests.runtime.operators.test_later_stage import Stores, rows
from vsc.compiler import compile_topology
from vsc.runtime.local import LocalRuntime
from vsc.runtime.state.kv import MemoryKV
from vsc.testing import TopologyTestDriver

COLUMNS = "(id bigint, k string, n bigint, x double) from memory () key id;"
CALLS = "collect_top(n, 2 by x desc) as most, collect_top(n, 3 by x) as least"
FED = [(1, 2.0), (2, 5.0), (3, 5.0), (4, None), (None, 9.0), (6, -0.0), (7, 0.0)]


def test_the_first_rows_in_order_and_of_equal_ones_those_that_came_first() -> None:
    with TopologyTestDriver(f"stream s {COLUMNS} table a = aggregate s group by k select {CALLS};") as driver:
        for time, (n, x) in enumerate(FED):
            driver.pipe("s", {"id": time, "k": "a", "n": n, "x": x}, timestamp=100 - time)
        values = [record.value for record in driver.read("a")]
    assert values == [
        {"most": [1], "least": [1]},
        {"most": [2, 1], "least": [1, 2]},
        {"most": [2, 3], "least": [1, 2, 3]},
        {"most": [2, 3], "least": [1, 2, 3]},
        {"most": [None, 2], "least": [1, 2, 3]},
        {"most": [None, 2], "least": [6, 1, 2]},
        {"most": [None, 2], "least": [6, 7, 1]},
    ]


def test_of_a_table_the_next_row_comes_up_where_one_is_taken_back() -> None:
    with TopologyTestDriver(f"table t {COLUMNS} table a = aggregate t group by k select {CALLS};") as driver:
        for id, x in enumerate((5.0, 4.0, 3.0, 2.0, 1.0)):
            driver.pipe("t", {"id": id, "k": "a", "n": id, "x": x}, timestamp=id)
        driver.restart()
        driver.delete("t", {"id": 1}, timestamp=10)
        driver.pipe("t", {"id": 0, "k": "a", "n": 0, "x": 0.5}, timestamp=11)
        driver.pipe("t", {"id": 2, "k": "b", "n": 2, "x": 3.0}, timestamp=12)
        found = {record.key["k"]: record.value for record in driver.read("a")}
    assert found == {"a": {"most": [3, 4], "least": [0, 4, 3]}, "b": {"most": [2], "least": [2]}}


def entries_of(kind: str, window: str, count: int) -> int:
    """How many rows the store has after so many of one group."""
    columns, call = "(id bigint, k string, v bigint) from memory () key id", "collect_top(v, 3 by v desc) as t"
    plan = compile_topology(f"{kind} s {columns}; table a = aggregate s group by k {window} select {call};", path="t")
    stores, rng = Stores(), random.Random(1)
    runtime = LocalRuntime(plan, stores, ("a",))
    fed = [EpochRow("s", "", i, {"id": i, "k": "a", "v": rng.randrange(1000)}, i) for i in range(count)]
    for start in range(0, count, 20):
        runtime.process(rows(plan, fed[start : start + 20]))
    return sum(len(kv) for kv in stores.values() if isinstance(kv, MemoryKV))


def test_the_state_of_a_stream_has_no_more_rows_than_are_collected() -> None:
    for window in ("", "window session (gap = 1 hour)", "window tumbling (size = 1 day)"):
        assert 3 < entries_of("stream", window, 20) == entries_of("stream", window, 400) < 12
    assert entries_of("table", "", 400) > 400
