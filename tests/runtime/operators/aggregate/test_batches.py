"""Aggregates on whole columns beside the other engine: taking turns, overflow, the end of the input, refusals."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.engines import OnColumns, OneByOne
from tests.runtime.operators.topologies import (
    CALLS,
    Builder,
    Record,
    S,
    V,
    batches,
    collected,
    groups,
    unversioned,
    versioned,
    windows,
)
from vsc.plan.expressions import Call, Cast, Literal
from vsc.plan.nodes import AggregateCall, Materialize, Plan, Window
from vsc.plan.types import BIGINT, DOUBLE, ArrayType
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.state.kv import MemoryKV
from vsc.testing import TopologyTestDriver

TUMBLING = Window("tumbling", 5, 5, 3)


def history(sources: list[str], seed: int, length: int = 120) -> list[Record]:
    rng = random.Random(seed)
    return [
        (rng.choice(sources), rng.choice("abc"), max(0, i // 2 - rng.choice((0, 0, 1, 4, 20))), (rng.randrange(6), "x"))
        for i in range(length)
    ]


def run(plan: Plan, records: list[Record], engine: str, parts: int = 1, drain: bool = False) -> Any:
    """What comes out of the parts; then the state. On columns, each part has a task of its own over one state."""
    kv, options, observe, results = MemoryKV(), RunOptions(on_error="drop"), frozenset(plan.stages[1].nodes), []
    task: OneByOne | OnColumns = OneByOne(plan, 1, options, observe)
    size = len(records) // parts
    for number in range(parts):
        part = [(i, records[i]) for i in range(number * size, (number + 1) * size)]
        if engine == "columns":
            task = OnColumns(plan, 1, options, observe, kv=kv)
        results.append(task.process(batches(part, random.Random(0)), drain=drain and number == parts - 1))
    return (*collected(results), task.content(), task.held)


@pytest.mark.parametrize("topology", [groups, windows])
def test_every_part_has_a_task_of_its_own(topology: Callable[[int, int], Plan]) -> None:
    plan = topology(3, 2)
    records = history([i.node for i in plan.stages[1].inputs], 1)
    assert run(plan, records, "columns", 6) == run(plan, records, "records", 6)


def test_at_the_end_of_the_input_all_windows_come_out() -> None:
    plan = windows(3, 2)
    records = history(["s", "p"], 2)
    found = run(plan, records, "columns", 3, drain=True)
    assert found == run(plan, records, "records", 3, drain=True)
    assert found[3] == 0
    last = max(time for node, _, time, _ in records if node == "s")
    size = 4
    assert {row[-1][1] for row in found[0]["each_final"]} >= {last // size * size * 1000}


def test_a_sum_that_overflows_has_no_result_until_it_fits_again() -> None:
    b = Builder()
    b.source("s", "stream")
    b.aggregate("sums", "s", calls=CALLS[2:3])
    plan = b.plan()
    records: list[Record] = [("s", "a", i, (v, None)) for i, v in enumerate((2**62, 2**62 - 1, 1, -(2**62), 5, 5))]
    for parts in (1, 6):
        found = run(plan, records, "columns", parts)
        values = [row[-1][1] for row in found[0]["sums"]]
        assert values == [2**62, 2**63 - 1, 2**62, 2**62 + 5, 2**62 + 10]
        assert found[1].as_dict()["dropped_records"] == {"sums": {"expression_failed": 1}}


@pytest.mark.parametrize("engine", ["records", "columns"])
def test_a_late_record_on_which_a_call_fails_is_a_failure(engine: str) -> None:
    b = Builder()
    b.source("s", "stream")
    share = Call("divide", (Literal(6.0, DOUBLE), Cast(V, DOUBLE)), DOUBLE)
    b.aggregate("made", "s", TUMBLING, calls=[AggregateCall("sum", (share,), False, DOUBLE, "sum(6 / v)")])
    records: list[Record] = [("s", "a", 40, (2, None)), ("s", "a", 1, (0, None)), ("s", "a", 2, (1, None))]
    found = run(b.plan(), records, engine)
    assert [row[-1][-1] for row in found[0]["made"]] == [3.0]
    assert found[1].as_dict()["dropped_records"] == {"made": {"expression_failed": 1, "window_closed": 1}}


SESSION = replace(TUMBLING, kind="session", advance=0)
SLIDING = replace(TUMBLING, kind="sliding", advance=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"calls": [AggregateCall("count", (V,), True, BIGINT, "count(distinct v)")]},
        {"calls": [AggregateCall("collect_list", (S,), False, ArrayType(S.type), "collect_list(s)")]},
        {"store": versioned("made", 5)},
        {"window": SLIDING},
        {"window": SESSION},
    ],
)
def test_aggregates_that_go_record_by_record(options: dict[str, Any], seed: int) -> None:
    b = Builder()
    b.source("s", "stream")
    b.aggregate("made", "s", **{"calls": CALLS[:1], **options})
    records = history(["s"], seed)
    assert run(b.plan(), records, "columns") == run(b.plan(), records, "records")


def test_stores_behind_windows() -> None:
    b = Builder()
    b.source("s", "stream")
    b.aggregate("made", "s", TUMBLING)
    b.add("copy", "table", Materialize(), ["made"], b.plan().node("made").schema, unversioned("copy"))
    records = history(["s"], 1)
    assert run(b.plan(), records, "columns", 3) == run(b.plan(), records, "records")


def test_calls_that_differ_in_the_sign_of_a_zero_are_two() -> None:
    text = """
    stream s (id int, x double) from memory () key id;
    table a = aggregate s group by 1 as one
      select max(cast(x * 0e0 as string)) as zero, max(cast(x * -0e0 as string)) as negative;
    """
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"id": 1, "x": 2.0}, timestamp=1)
        assert [record.value for record in driver.read("a")] == [{"zero": "0.0", "negative": "-0.0"}]
