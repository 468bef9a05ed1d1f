"""Foreign-key joins on whole columns against record by record: results, their order, metrics and subscriptions."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from tests.oracle.engines import OnColumns, OneByOne
from tests.runtime.operators.test_equal_to_records import KEYS, LIMITS
from tests.runtime.operators.topologies import Record, batches, collected
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch

JOINS = {
    "inner": "table j = join l with r on l.s select l.v + r.v as v, r.s as s, r.k as theirs;",
    "left": "table j = left join l with r on l.s select l.v as v, r.v as w, event_time() as at;",
    "stored": "table j = left join l with r on l.s select r.v as w materialize unversioned;",
    "filtered": """
        table high = filter r where v > 2;
        table next = map l select v + 1 as v, s;
        table j = join next with high on next.s select next.v as v, high.v as w;
    """,
    "itself": "table j = join l as one with l as other on one.s select one.v as v, other.v as w;",
    "itself_left": "table j = left join l as one with l as other on one.s select one.v as v, other.v as w;",
    "again": """
        table i = left join l with r on l.s select r.v as v, r.s as s materialize unversioned;
        table j = left join i with l on i.s select i.v as v, l.v as w;
    """,
}


def topology(join: str, left: str, right: str) -> Plan:
    read = "r" if " r " in JOINS[join] else "l"
    return compile_topology(
        f"""
        topology foreign;
        table l (k string, v bigint, s string) from memory () key k materialize {left};
        table r (k string, v bigint, s string) from memory () key k materialize {right};
        {JOINS[join]}
        table kept = map {read} select v;
        sink j to memory ();
        sink kept to memory ();
        """,
        path="foreign.vdsl",
    )


TASKS: dict[str, Any] = {"records": OneByOne, "columns": OnColumns}


class Stages:
    """All stages of a plan but 0, by one engine, on one partition."""

    def __init__(self, plan: Plan, engine: str) -> None:
        self._plan = plan
        observe = frozenset(s.node for s in plan.sinks)
        options = RunOptions(on_error="drop")
        self._tasks = [TASKS[engine](plan, s.id, options, observe) for s in plan.stages[1:]]

    def process(self, read: list[tuple[str, Batch]]) -> list[Any]:
        given, results = list(read), []
        for task, stage in zip(self._tasks, self._plan.stages[1:], strict=True):
            wanted = {i.node for i in stage.inputs}
            result = task.process([(name, batch) for name, batch in given if name in wanted])
            results.append(result)
            given += result.batches
        return results

    def content(self) -> list[Any]:
        """What all stages keep."""
        return [task.content() for task in self._tasks]


def history(rng: random.Random, length: int) -> list[Record]:
    clock, found = 0, []
    for _ in range(length):
        clock += rng.choice((0, 0, 1, 1, 2, 7))
        row = None if rng.random() < 0.25 else (rng.choice((None, *range(6))), rng.choice((None, *KEYS)))
        time = max(0, clock - rng.choice((0, 0, 1, 2, 3, 5, 8, 20)))
        found.append((rng.choice("lllr"), rng.choice(KEYS), time, row))
        if row is not None and rng.random() < 0.2:
            found.append(found[-1])  # a row that is what it was before
    return found


def run(plan: Plan, engine: str, records: list[Record], rng: random.Random) -> tuple[Any, Any, Any]:
    stages = Stages(plan, engine)
    marks = sorted({0, len(records), *rng.sample(range(len(records)), rng.randrange(4))})
    entering = {i.node for s in plan.stages[1:] for i in s.inputs}
    results = []
    for start, end in pairwise(marks):
        part = [(i, records[i]) for i in range(start, end) if records[i][0] in entering]
        results += stages.process(batches(part, rng)) if part else []
    return (*collected(results), stages.content())


@pytest.mark.quick(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("join", JOINS)
def test_equal_to_record_by_record(join: str, seed: int) -> None:
    rng = random.Random(seed)
    retention, grace = LIMITS[seed % len(LIMITS)]
    clauses = [f"versioned (retention = {retention} ms, grace = {grace} ms)", "unversioned"]
    plan = topology(join, rng.choice(clauses), rng.choice(clauses))
    records = history(rng, 120)
    one_by_one, in_columns = (run(plan, engine, records, random.Random(seed)) for engine in ("records", "columns"))
    assert in_columns[0] == one_by_one[0]
    assert in_columns[1] == one_by_one[1]
    assert in_columns[2] == one_by_one[2]
