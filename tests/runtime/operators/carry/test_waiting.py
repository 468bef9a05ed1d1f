"""Records that wait for other sources while the topology changes: they go on where their readers are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.oracle import Stores
from tests.runtime.operators.carry.carrying import carried, compiled, epoch, run
from tests.runtime.operators.carry.test_carry import FIRST, GLOBAL, NODES, OTHER, PLAIN, SECOND, SOURCES, STREAM, TABLE
from vsc.plan.nodes import Plan
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.in_step import NO_COLUMNS, Frontier, InStep
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.result import StageResult
from vsc.runtime.records import Batch, Metrics, Order, Origin
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.waiting import STEPS, WaitingBatches

PART = 30
"""From this time on, what has been read waits at first."""
LIMIT = Frontier(PART, 0, "")
NAMES = ("joined", "waited", "counts", "sums", "both", "named", "moved")
CALM = "".join(NODES[name] for name in NAMES)

STARTS: Mapping[str, int] = {}


class Waits(LaterStage):
    """A stage whose inputs from the sources are in step."""

    frontier: Frontier | None = None

    def __init__(
        self, plan: Plan, stage: int, kv: OrderedKV, options: RunOptions, observe: frozenset[str], partition: int = 0
    ) -> None:
        super().__init__(plan, stage, kv, options, observe, partition)
        self._read = plan.stages[0].nodes
        self._in_step = InStep(kv, {node.name: node.schema for node in plan.nodes})

    def process(
        self,
        inputs: Sequence[tuple[str, Batch]],
        drain: bool = False,
        starts: Mapping[str, int] = STARTS,
        quiet: Mapping[str, int] = STARTS,
    ) -> StageResult:
        come = [one for one in inputs if one[0] in self._read]
        others = [one for one in inputs if one[0] not in self._read]
        *first, last = self._portions(come)
        results = [super(Waits, self).process(portion, starts=starts, quiet=quiet) for portion in first]
        results.append(super().process([*last, *others], drain, starts, quiet))  # the end comes with what it releases
        metrics = Metrics()
        for result in results:
            metrics.merge(result.metrics)
        found: dict[str, list[Batch]] = {}
        for name, batch in (one for result in results for one in result.batches):
            found.setdefault(name, []).append(batch)
        return StageResult(tuple((name, Batch.concat(parts)) for name, parts in found.items()), metrics)

    def _portions(self, come: Sequence[tuple[str, Batch]]) -> list[list[tuple[str, Batch]]]:
        return list(self._in_step.portions(come, self.frontier))


class Held(Waits):
    frontier = LIMIT


def waiting(plan: Plan, stores: Stores, partitions: int) -> list[tuple[int, str, int]]:
    """How many records wait in each stage for which node."""
    found: dict[tuple[int, str], int] = {}
    for stage in plan.stages[1:]:
        for partition in range(partitions):
            store = WaitingBatches(stores(stage.id, partition))
            rows = [one for _, one in store.before(None)]
            assert len(store) == sum(one.records for one in rows)
            for one in rows:
                found[stage.id, one.port] = found.get((stage.id, one.port), 0) + one.records
    return sorted((stage, port, count) for (stage, port), count in found.items())


def half(text: str, rows: Sequence[tuple[Any, ...]], partitions: int) -> tuple[Plan, Stores, Any]:
    plan, stores = compiled(text), Stores()
    sent = run(plan, [epoch(plan, rows)], stores, partitions, later_stage=Held)
    return plan, stores, sent


REORDERED = OTHER + GLOBAL + PLAIN + TABLE.replace(" w bigint, at bigint", " w bigint, at bigint, z string") + STREAM


@pytest.mark.quick(2)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 4), (4, 1), (2, 3)])
@pytest.mark.parametrize("new", [SOURCES + CALM, REORDERED + CALM, SOURCES + NODES["moved"] + NODES["waited"]])
def test_what_waits_goes_on_in_order(new: str, before: int, after: int) -> None:
    old_plan, stores, _ = half(SOURCES + CALM, FIRST, before)
    new_plan = compiled(new)
    state = carried(old_plan, new_plan, stores, before, after)
    same_plan, whole, _ = half(new, FIRST, after)
    assert waiting(new_plan, state, after) == waiting(same_plan, whole, after) != []
    later = [epoch(new_plan, SECOND, len(FIRST))]
    sent, expected = (run(new_plan, later, kept, after, True, later_stage=Waits) for kept in (state, whole))
    assert sent == expected
    assert waiting(new_plan, state, after) == []


def test_literal_values() -> None:
    old = STREAM + TABLE + NODES["joined"]
    rows = [("t", "a", 1, 10), ("s", "a", 5, 29), ("s", "a", 6, 30), ("t", "a", 2, 31), ("s", "a", 7, 32)]
    old_plan, stores, sent = half(old, rows, 1)
    assert sent["joined"] == {"('a',)": [(29, "(5, 1)")]}
    new_plan = compiled(TABLE + STREAM + NODES["joined"].replace("joined", "j2"))
    assert waiting(old_plan, stores, 1) == [(1, "s", 2), (1, "t", 1)]
    state = carried(old_plan, new_plan, stores, 1, 3)
    sent = run(new_plan, [[]], state, 3, later_stage=Waits)
    assert sent["j2"] == {"('a',)": [(30, "(6, 1)"), (32, "(7, 2)")]}


def test_records_without_a_key_are_spread_like_others() -> None:
    old = STREAM + TABLE + "stream n = left join s with t on nullif(s.k, 'b') select v, w;\n"
    rows = [("t", "a", 1, 10), ("s", "a", 5, 31), ("s", "b", 6, 32), ("s", "a", 7, 33), ("s", "b", 8, 34)]
    plan, stores, _ = half(old, rows, 2)
    state = carried(plan, plan, stores, 2, 3)
    assert waiting(plan, state, 3) == [(1, "n#rekey", 4)]
    assert run(plan, [[]], state, 3, later_stage=Waits)["n"] == {
        "('a',)": [(31, "(5, 1)"), (33, "(7, 1)")], "(None,)": [(32, "(6, None)"), (34, "(8, None)")],
    }  # fmt: skip


MAPPED = "stream m = map s select v{};\nstream j = join m with t on k select v, w{};\n"


def test_a_column_that_waiting_records_do_not_have_is_not_made_up() -> None:
    rows = [("t", "a", 1, 10), ("s", "a", 5, 40), ("s", "a", 6, 41)]
    old_plan, stores, _ = half(STREAM + TABLE + MAPPED.format("", ""), rows, 1)
    unread = compiled(STREAM + TABLE + MAPPED.format(", v + 1 as x", ""))
    sent = run(unread, [[]], carried(old_plan, unread, stores), later_stage=Waits)
    assert sent["j"] == {"('a',)": [(40, "(5, 1)"), (41, "(6, 1)")]}
    with pytest.raises(ConfigurationError, match="records wait for others \\(2 of 'm'\\), and would not reach"):
        carried(old_plan, compiled(STREAM + TABLE + MAPPED.format(", v + 1 as x", ", x")), stores)


def test_a_column_that_nothing_had_read_is_not_made_up() -> None:
    rows = [("t", "a", 1, 10), ("s", "a", 5, 40), ("s", "a", 6, 41)]
    join = "stream j = left join s with t select {};\n"
    old_plan, stores, _ = half(STREAM + TABLE + join.format("w"), rows, 1)
    carried(old_plan, compiled(STREAM + TABLE + join.format("w + 1 as w")), stores)
    with pytest.raises(ConfigurationError, match="records wait for others \\(2 of 's'\\), and would not reach"):
        carried(old_plan, compiled(STREAM + TABLE + join.format("v, w")), stores)


FILTERED = "stream f = filter s where v > 1;\ntable c = aggregate f group by k select count(*) as n;\n"


def test_what_would_be_lost_is_refused_before_anything_is_written() -> None:
    new = STREAM + FILTERED.replace("stream f = filter s where v > 1;\n", "").replace("aggregate f", "aggregate s")
    old_plan, stores, _ = half(STREAM + FILTERED, [("s", "a", 5, 40), ("s", "b", 1, 41), ("s", "b", 2, 42)], 2)
    with pytest.raises(ConfigurationError) as caught:
        carried(old_plan, compiled(new), stores, 2, 1, reset=["c", "c#groups"])
    assert caught.value.message == (
        "records wait for others (2 of 'f'), and would not reach all that reads them in the new topology"
    )
    # Another predicate: they have passed the old one, and go on. A branch that is gone takes them with it.
    new_plan = compiled(STREAM + FILTERED.replace("v > 1", "v > 3"))
    state = carried(old_plan, new_plan, stores, 2, 1, reset=["c", "c#groups"])
    assert run(new_plan, [[]], state, 1, later_stage=Waits)["c"] == {"('a',)": [(40, "(1,)")], "('b',)": [(42, "(1,)")]}
    gone = compiled(STREAM + NODES["once"])
    assert waiting(gone, carried(old_plan, gone, stores, 2, 1), 1) == []


# `c` reads `via` in the stage that reads the sources, since the join with a global table is not by key.
def test_what_one_of_two_readers_would_lose_is_refused() -> None:
    old = STREAM + GLOBAL + NODES["named"] + "table c = aggregate s group by k select count(*) as n;\n"
    through = old.replace("table c = aggregate s", "stream via = map s select *;\ntable c = aggregate via")
    rows = [("g", "a", "x", 10), ("s", "a", 5, 40), ("s", "b", 6, 41)]
    old_plan, stores, _ = half(old, rows, 2)
    with pytest.raises(ConfigurationError, match="records wait for others \\(2 of 's'\\), and would not reach"):
        carried(old_plan, compiled(through), stores, 2, 2)
    # A new reader begins with the records that are read from now on, and one that is gone loses nothing.
    only = STREAM + GLOBAL + NODES["named"]
    old_plan, stores, _ = half(only, rows, 2)
    new_plan = compiled(through)
    sent = run(new_plan, [[]], carried(old_plan, new_plan, stores, 2, 2), 2, later_stage=Waits)
    assert sent["named"] == {"('a',)": [(40, "(5, 'x')")]}
    assert "c" not in sent
    old_plan, stores, _ = half(old, rows, 2)
    gone = compiled(only)
    assert (1, "s", 2) in waiting(gone, carried(old_plan, gone, stores, 2, 2), 2)


STEPPING = STREAM + TABLE + "stream j = left join s with t on k grace 1 hour select v, w;\n"
STEPS_OF = {"s": [31, 35], "t": [33]}
Found = dict[tuple[int, int], list[tuple[str, int, int, int]]]


def by_input(text: str) -> Plan:
    return replace(compiled(text), clock="input")


def with_steps(plan: Plan, partitions: int, everywhere: bool) -> Stores:
    """State in which a step of each source waits behind another one, in the first partition or in all."""
    stores = Stores()
    for partition in range(partitions if everywhere else 1):
        in_step = InStep(stores(1, partition), {})
        for source, times in STEPS_OF.items():
            time, count = np.array(times), len(times)
            order = Order(time, np.zeros(count, np.int32), time * 10, np.zeros((count, 0), np.int64))
            origin = Origin(source, plan.node(source).source.rank, "f")
            steps = Batch(NO_COLUMNS, (origin,), order, time, np.ones(count, np.bool_), (), ())
            assert list(in_step.portions([(STEPS, steps)], LIMIT)) == [[]]
    return stores


def waiting_steps(plan: Plan, stores: Stores, partitions: int) -> Found:
    """By stage and partition, the steps that wait: source, rank, time, offset."""
    found: Found = {}
    for stage in plan.stages[1:]:
        for partition in range(partitions):
            store = WaitingBatches(stores(stage.id, partition))
            batches = [Batch.from_ipc(one.data, NO_COLUMNS) for _, one in store.before(None) if one.port == STEPS]
            assert store.steps == sum(map(len, batches))
            rows = [
                (b.origins[o].source, b.origins[o].rank, int(time), int(offset))
                for b in batches
                for time, o, offset in zip(b.order.time, b.order.origin, b.order.offset, strict=True)
            ]  # fmt: skip
            if rows:
                found[stage.id, partition] = sorted(rows)
    return found


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2), (2, 3)])
def test_each_partition_has_each_waiting_step_once(before: int, after: int) -> None:
    old = by_input(STEPPING)
    stores = with_steps(old, before, everywhere=True)
    new = by_input(STEPPING.replace("stream s", "stream s2").replace("join s ", "join s2 "))
    expected = [("s", 1, 31, 310), ("s", 1, 35, 350)]
    told = [("t", 0, 33, 330)]
    assert waiting_steps(old, stores, before)[1, before - 1] == sorted(expected + told)
    found = waiting_steps(old, carried(old, old, stores, before, after), after)
    assert found == {(1, p): sorted(expected + (told if p == 0 else [])) for p in range(after)}
    by_records = replace(old, clock="records")
    assert waiting_steps(old, carried(old, by_records, stores, before, after), after) == {}
    renamed = carried(old, new, stores, before, after)
    assert [step[2] for step in waiting_steps(new, renamed, after)[1, after - 1] if step[0] == "s2"] == [31, 35]


def test_waiting_records_are_the_steps_where_there_were_none() -> None:
    rows = [("s", "a", 1, 31), ("s", "b", 2, 30), ("s", "c", 3, 35), ("s", "b", 4, 36), ("t", "a", 1, 33)]
    old, stores, _ = half("topology t (clock = 'records');" + STEPPING, rows, 2)
    new = replace(old, clock="input")
    state = carried(old, new, stores, 2, 3)
    steps = waiting_steps(new, state, 3)
    assert {step[2] for step in steps[1, 2]} == {31, 35, 36}
    assert steps[1, 2] == steps[1, 1] == [step for step in steps[1, 0] if step[0] == "s"]
    assert [step for step in steps[1, 0] if step[0] == "t"] == [("t", 0, 33, 4)]
    assert sorted(row[2] for row in waiting(new, state, 3) if row[1] == "s") == [4]
