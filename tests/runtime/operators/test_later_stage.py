"""A stage over its key-value store: cuts, restarts, order over several inputs, and the local runtime's epochs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.oracle.engines import OnColumns, OneByOne
from tests.oracle.epochs import EpochRow, order_epoch
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan, Source
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import MOVED, Batch, Origin
from vsc.runtime.state.kv import MemoryKV, OrderedKV
from vsc.runtime.values import to_array

TEXT = """
topology t (clock = 'records');
stream s (k string, v string, a string) from memory () key k;
table t (k string, v string) from memory () key k materialize versioned (retention = 40 ms);
table u (k string, v string) from memory () key k materialize unversioned;
table w = filter u where v > 'c';
stream j = left join s with t grace 6 ms select s.v || coalesce(t.v, '-') as v, s.a;
stream x = left join j with w on j.a select j.v || coalesce(w.v, '-') as v;
"""


def plan() -> Plan:
    return compile_topology(TEXT, path="t.vdsl")


class Stores(dict[tuple[int, int], OrderedKV]):
    """State that outlives the tasks: a restart is a new runtime over the same stores."""

    def __call__(self, stage: int, partition: int) -> OrderedKV:
        return self.setdefault((stage, partition), MemoryKV())


def rows(plan: Plan, found: list[EpochRow]) -> list[tuple[str, SourceRows]]:
    """The rows of an epoch, one `SourceRows` a source partition."""
    parts: dict[tuple[str, str], list[EpochRow]] = {}
    for row in found:
        parts.setdefault((row.source, row.part), []).append(row)
    chunks = []
    for (source, part), own in parts.items():
        operation = plan.node(source).operation
        assert isinstance(operation, Source)
        columns = tuple(to_array([r.row.get(c.name) for r in own], c.type) for c in operation.columns)
        chunks.append(
            (
                source,
                SourceRows(
                    Origin(source, operation.rank, part), columns, np.array([r.offset for r in own]),
                    np.array([r.timestamp for r in own]), np.array([r.row.get("v") is None for r in own]),
                ),
            )
        )  # fmt: skip
    return chunks


def random_rows(seed: int, count: int, parts: int = 1) -> list[EpochRow]:
    rng = random.Random(seed)
    offsets: dict[tuple[str, str], int] = {}
    found, clock = [], 0
    for _ in range(count):
        clock += rng.choice((0, 1, 1, 5))
        source, part = rng.choice("sstu"), str(rng.randrange(parts))
        offset = offsets[source, part] = offsets.get((source, part), -1) + 1
        row: dict[str, Any] = {"k": rng.choice("abc"), "v": rng.choice(["b", "d", "e", None]), "a": rng.choice("abc")}
        if source != "s":
            del row["a"]
        found.append(EpochRow(source, part, offset, row, max(0, clock - rng.choice((0, 0, 3, 30, 60)))))
    return found


def seen(batches: dict[str, Batch], into: dict[str, list[Any]]) -> None:
    for name, batch in batches.items():
        columns = [c.to_pylist() for c in batch.columns]
        records = zip(*columns, batch.timestamps.tolist(), batch.present.tolist(), strict=True)
        into.setdefault(name, []).extend(records)


def one_by_one(plan: Plan, ordered: list[EpochRow]) -> dict[str, list[Any]]:
    """The meaning: every row an epoch of its own."""
    runtime = LocalRuntime(plan, Stores(), ("t", "u", "w", "j", "x"))
    found: dict[str, list[Any]] = {}
    for row in ordered:
        seen(runtime.process(rows(plan, [row])), found)
    seen(runtime.drain(), found)
    return found


@pytest.mark.slow
def test_cuts_and_restarts_do_not_show_from_one_partition_each() -> None:
    topology = plan()
    for seed in range(6):
        # rows of one source only are in order for every cut; here each epoch is ordered, then cut further
        ordered = order_epoch(topology, random_rows(seed, 80))
        expected = one_by_one(topology, ordered)
        rng = random.Random(seed)
        stores = Stores()
        found: dict[str, list[Any]] = {}
        runtime = LocalRuntime(topology, stores, ("t", "u", "w", "j", "x"))
        rest = ordered
        while rest:
            cut = rng.randrange(1, 12)
            chunk = order_epoch(topology, rest[:cut])
            if chunk != rest[:cut]:
                cut, chunk = 1, rest[:1]
            seen(runtime.process(rows(topology, chunk)), found)
            rest = rest[cut:]
            runtime = LocalRuntime(topology, stores, ("t", "u", "w", "j", "x"), starts=runtime.starts)
        seen(runtime.drain(), found)
        assert found == expected
        assert {"t", "u", "w", "j", "x"} <= set(found)


@pytest.mark.slow
def test_an_epoch_of_many_partitions_is_processed_in_its_order() -> None:
    topology = plan()
    for seed in range(6):
        epochs = [random_rows(seed * 10 + i, 40, parts=2) for i in range(2)]
        fed = [row for epoch in epochs for row in order_epoch(topology, epoch)]
        expected = one_by_one(topology, fed)
        found: dict[str, list[Any]] = {}
        runtime = LocalRuntime(topology, Stores(), ("t", "u", "w", "j", "x"))
        for epoch in epochs:
            half = len(epoch) // 2
            chunks = rows(topology, epoch)
            random.Random(seed).shuffle(chunks)
            if seed % 2:  # the pieces of a source partition share one clock
                chunks = [*rows(topology, epoch[:half]), *rows(topology, epoch[half:])]
            seen(runtime.process(chunks), found)
        seen(runtime.drain(), found)
        assert found == expected


def test_order_of_an_epoch() -> None:
    topology = plan()
    fed = [
        EpochRow("s", "p", 0, {}, 5), EpochRow("s", "p", 1, {}, 2), EpochRow("s", "p", 2, {}, None),
        EpochRow("s", "o", 0, {}, 5), EpochRow("t", "p", 0, {}, 5), EpochRow("u", "p", 0, {}, 4),
    ]  # fmt: skip
    order = [(r.source, r.part, r.offset) for r in order_epoch(topology, fed[::-1])]
    assert order == [("u", "p", 0), ("t", "p", 0), ("s", "o", 0), ("s", "p", 0), ("s", "p", 1), ("s", "p", 2)]


def test_partitioned_results_carry_the_same_records() -> None:
    topology = plan()
    fed = random_rows(3, 120)
    for partitions in (2, 5):
        # the clocks of stores are a partition's own: compare what does not depend on them
        runtime = LocalRuntime(topology, Stores(), ("u", "w"), partitions)
        alone = LocalRuntime(topology, Stores(), ("u", "w"))
        found: dict[str, list[Any]] = {}
        expected: dict[str, list[Any]] = {}
        seen(runtime.process(rows(topology, fed)), found)
        seen(alone.process(rows(topology, fed)), expected)
        assert found == expected


def test_an_empty_epoch_gives_nothing() -> None:
    runtime = LocalRuntime(plan(), Stores(), ("j",))
    assert runtime.process([]) == {}
    empty = SourceRows(
        Origin("t", 0, ""), (pa.array([], pa.string()), pa.array([], pa.string())), np.zeros(0, np.int64),
        np.zeros(0, np.int64),
    )  # fmt: skip
    assert runtime.process([("t", empty)]) == {}
    assert runtime.drain() == {}


ENGINES_TEXT = """
topology t (clock = 'records');
stream s (k string, n int) from memory () key k;
table t (k string, v string) from memory () key k materialize versioned (retention = 40 ms);
stream j = left join s with t select 10 / n as q, t.v;
"""


def stage_inputs(plan: Plan, keys: list[str], numbers: list[int], start: int) -> list[tuple[str, Batch]]:
    task = StageZero(plan, RunOptions())
    count = len(keys)
    times = np.arange(start, start + count)
    words = SourceRows(
        Origin("t", 0, ""), (pa.array(keys), pa.array([f"v{start + i}" for i in range(count)])), times, times
    )
    events = SourceRows(Origin("s", 1, ""), (pa.array(keys), pa.array(numbers, pa.int32())), times, times)
    return [*task.process("t", words).batches, *task.process("s", events).batches]


@pytest.mark.parametrize("failing", [False, True])
def test_batches_of_all_sizes_give_what_records_give(failing: bool) -> None:
    topology = compile_topology(ENGINES_TEXT, path="t.vdsl")
    options = RunOptions(on_error="drop")
    tasks = [task(topology, 1, options, frozenset({"j", "t"})) for task in (OnColumns, OneByOne)]
    rng = random.Random(1)
    start, found = 0, [dict[str, list[Any]](), dict[str, list[Any]]()]
    for count in (3, 700, 2, 900, 5):
        keys = [rng.choice("abc") for _ in range(count)]
        numbers = [0 if failing and i == 1 else 5 for i in range(count)]
        first = start - 200 if count == 2 else start  # too late for the clock that the other engine has moved
        for task, into in zip(tasks, found, strict=True):
            result = task.process(stage_inputs(topology, keys, numbers, first))
            seen(dict(result.batches), into)
            into.setdefault("metrics", []).append(result.metrics.as_dict())
        start += count
    assert found[0] == found[1]
    assert len(found[0]["t"]) == 1608
    assert len(found[0]["j"]) == (1605 if failing else 1610)


def test_what_waits_is_counted_and_comes_out_in_order() -> None:
    topology = plan()
    stage = LaterStage(topology, 1, MemoryKV(), RunOptions(), frozenset({"j"}))
    source = StageZero(topology, RunOptions())
    fed = [EpochRow("s", "", i, {"k": "a", "v": "b", "a": "c"}, t) for i, t in enumerate((0, 1, 8, 9))]
    ((_, chunk),) = rows(topology, fed)
    result = stage.process(source.process("s", chunk).batches)
    # both came out with the third record: numbered from 1 over all nodes, and what has got another key comes last
    found = dict(result.batches)
    assert found["j"].order.offset.tolist() == found["x#rekey"].order.offset.tolist() == [2, 2]
    assert found["j"].order.path[:, -1].tolist() == [1, 3]
    assert found["x#rekey"].order.path[:, -1].tolist() == [2, 4]
    assert (found["x#rekey"].order.path[:, 0] - found["j"].order.path[:, 0]).tolist() == [MOVED, MOVED]
    assert stage.held == 2
    drained = stage.process([], drain=True)
    assert sum(len(batch) for name, batch in drained.batches if name == "j") == 2
    assert stage.held == 0


@pytest.mark.parametrize("task", [OneByOne, OnColumns])
def test_what_the_end_brings_out_of_several_partitions_has_one_order(task: Any) -> None:
    topology = plan()
    source = StageZero(topology, RunOptions())
    times = {"a": 5, "b": 5, "c": 6}
    fed = [EpochRow("s", "", i, {"k": k, "v": "b", "a": "c"}, time) for i, (k, time) in enumerate(times.items())]
    drained: list[Batch] = []
    for partition in (1, 0):
        stage = task(topology, 1, RunOptions(), frozenset({"j"}), partition)
        ((_, chunk),) = rows(topology, fed[partition : partition + 2])
        drained.append(dict(stage.process(source.process("s", chunk).batches, drain=True).batches)["j"])
    both = Batch.concat(drained).sorted()
    # by event time, then by partition: whichever of them comes first
    assert both.keys[0].to_pylist() == ["a", "b", "b", "c"]
    assert both.timestamps.tolist() == both.order.offset.tolist() == [5, 5, 5, 6]
    assert (np.diff(both.order.path[:, 0])[:2] > 0).all()
