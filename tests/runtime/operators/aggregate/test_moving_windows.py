"""Session and sliding windows: in batches as record by record, failures included, and with few reads of the store."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.oracle.engines import OnColumns, OneByOne
from tests.runtime.operators.test_equal_to_records import KEYS, run
from tests.runtime.operators.topologies import (
    CALLS,
    COUNT_AND_LAST,
    KEY,
    NEXT,
    ROW,
    V_IS_ODD,
    Builder,
    Record,
    V,
    batches,
    collected,
    item,
    number,
    unversioned,
)
from vsc.plan.expressions import Call
from vsc.plan.expressions import Column as Ref
from vsc.plan.nodes import AggregateCall, Column, Filter, Map, Plan, Schema, Window
from vsc.plan.types import BIGINT, STRING, TIMESTAMP, ArrayType
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.state.kv import MemoryKV

pytestmark = pytest.mark.slow

LIMITS = [(1, 0), (2, 3), (4, 1), (9, 20), (3, 100)]
"""Gap or difference, and grace."""
TIMES = list(range(0, 400, 7))
BIG = 2**62
BESIDE = (
    AggregateCall("count", (), False, BIGINT, "count(*)"),
    AggregateCall("collect_list", (V,), False, ArrayType(BIGINT), "collect_list(v)"),
    AggregateCall("count", (V,), True, BIGINT, "count(distinct v)"),
)
BOUNDS = Schema((KEY, Column("window_start", TIMESTAMP), Column("window_end", TIMESTAMP)), ROW.value)
NEVER_TWO = Call("modulo", (number(7), Call("subtract", (Ref(0, "#0", BIGINT), number(2)), BIGINT)), BIGINT)
"""Fails for two rows."""
FRAIL = (item("v", NEVER_TWO), item("s", Ref(0, "#13", STRING)))
FRAIL_BESIDE = (item("v", NEVER_TWO), item("n", Ref(0, "#2", BIGINT)), item("l", Ref(0, "#1", ArrayType(BIGINT))))


def moving(kind: Any, size: int, grace: int) -> Plan:
    window = Window(kind, size, 0, grace)
    b = Builder()
    b.source("s", "stream")
    b.aggregate("each", "s", window)
    b.aggregate("final", "s", window, final=True)
    b.aggregate("kept", "s", window, items=COUNT_AND_LAST, store=unversioned("kept"))
    b.add("kept_odd", "table", Filter(V_IS_ODD), ["kept"], BOUNDS)  # asks for the rows before
    b.aggregate("frail", "s", window, items=FRAIL)
    b.add("frail_next", "table", Map(NEXT), ["frail"], BOUNDS)
    b.add("frail_odd", "table", Filter(V_IS_ODD), ["frail_next"], BOUNDS)
    b.aggregate("frail_final", "s", window, final=True, items=FRAIL, store=unversioned("frail_final"))
    b.aggregate("beside", "s", window, calls=BESIDE)
    b.aggregate("beside_frail", "s", window, calls=BESIDE, items=FRAIL_BESIDE, store=unversioned("beside_frail"))
    b.aggregate("beside_final", "s", window, final=True, calls=BESIDE, items=FRAIL_BESIDE)
    b.aggregate("sums", "s", window, calls=CALLS[2:3])
    return b.plan()


def history(seed: int, big: bool) -> list[Record]:
    rng = random.Random(seed)
    clock, found = 0, []
    for _ in range(200):
        clock += rng.choice((0, 0, 1, 1, 2, 7))
        value = rng.choice((None, *range(6), *([BIG, -BIG] if big else ())))
        row = None if rng.random() < 0.1 else (value, rng.choice((None, *KEYS)))
        found.append(("s", rng.choice(KEYS[:3]), max(0, clock - rng.choice((0, 0, 1, 2, 3, 5, 8, 20))), row))
    return found


def cut(rng: random.Random, records: Sequence[Record]) -> list[range]:
    marks = sorted({0, len(records), *rng.sample(range(len(records)), rng.randrange(6))})
    return [range(a, b) for a, b in pairwise(marks)]


@pytest.mark.parametrize("kind", ["session", "sliding"])
@pytest.mark.parametrize("seed", range(20))
def test_equal_with_failing_records(kind: str, seed: int) -> None:
    plan = moving(kind, *LIMITS[seed % len(LIMITS)])
    records, rng = history(seed, big=seed % 4 == 3), random.Random(seed)
    observe, options = frozenset(plan.stages[1].nodes), RunOptions(on_error="drop")
    found = []
    for engine in (OneByOne, OnColumns):
        stage = engine(plan, 1, options, observe)
        rows, metrics = collected(run(stage, records, cut(rng, records), random.Random(seed)))
        found.append((rows, metrics, stage.content()))
    by_record, in_columns = found
    assert in_columns[0] == by_record[0]
    assert in_columns[1] == by_record[1]
    assert in_columns[2] == by_record[2]
    assert by_record[1].get("frail", Group.DROPPED_RECORDS, Dropped.EXPRESSION_FAILED) > 0


class Counted(MemoryKV):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def get(self, key: bytes) -> bytes | None:
        self.asked += 1
        return super().get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.asked += 1
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        self.asked += 1
        return super().scan(start, end, reverse)


@pytest.mark.parametrize("kind", ["session", "sliding"])
@pytest.mark.parametrize("final", [False, True])
def test_a_batch_asks_the_store_once_a_key(kind: Any, final: bool) -> None:
    b = Builder()
    b.source("s", "stream")
    b.aggregate("x", "s", Window(kind, 3, 0, 2), final=final)
    plan, kv = b.plan(), Counted()
    records: list[Record] = [("s", KEYS[i % 3], i // 2, (i, "a")) for i in range(600)]
    stage = LaterStage(plan, 1, kv, RunOptions(), frozenset({"x"}))
    for begin in (0, 300):
        kv.asked = 0
        stage.process(batches([(i, records[i]) for i in range(begin, begin + 300)], random.Random(1)))
        # A scan a key, two of the windows by time, the state's counters, the windows that close, the table's rows; one
        # of the windows that were given before they moved.
        assert kv.asked <= 3 + 2 + 2 + 1 + final
