"""Steps of the input's clock in the order of records, what it releases, the end of the input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from vsc.plan.nodes import Column, Schema
from vsc.plan.types import BIGINT
from vsc.runtime.operators.steps import end_of_input, entering, steps_of
from vsc.runtime.records import MOMENT_COLUMNS, ORDINARY, Batch, Order, Origin, processing_order

PART = Origin("s", 0, "f")
SCHEMA = Schema((Column("k", BIGINT),), ())


def order(times: list[int]) -> Order:
    time = np.array(times, dtype=np.int64)
    return Order(time, np.zeros(len(time), dtype=np.int32), np.arange(len(time)), np.zeros((len(time), 0), np.int64))


def records(times: list[int], moment: int = ORDINARY) -> Batch:
    """Records of one source partition, of which what time releases has a moment."""
    placed, number = order(times), np.arange(len(times))
    if moment != ORDINARY:
        moments = np.zeros((len(times), MOMENT_COLUMNS), dtype=np.int64)
        moments[:, 0] = moment
        placed = replace(placed, moment=moments)
    there = np.ones(len(times), dtype=np.bool_)
    return Batch(SCHEMA, (PART,), placed, number, there, (pa.array(number, pa.int64()),), ())


@pytest.mark.parametrize(
    ("times", "clock", "steps"),
    [
        ([3, 3, 5, 5, 9], None, [3, 5, 9]),
        ([3, 3, 5], 3, [5]),
        ([3, 5], 4, [5]),
        ([5, 5], 5, None),
        ([0], None, [0]),
        ([], None, None),
        ([], 7, None),
    ],
)
def test_steps_are_where_the_time_of_a_source_partition_rises(
    times: list[int], clock: int | None, steps: list[int] | None
) -> None:
    found = steps_of(PART, order(np.maximum.accumulate(np.array([*times], dtype=np.int64)).tolist()), clock)
    assert (None if found is None else found.order.time.tolist()) == steps


def test_a_step_is_at_the_place_of_its_record() -> None:
    found = steps_of(PART, order([3, 3, 5]), None)
    assert found is not None
    assert (found.origins, found.order.offset.tolist(), len(found.columns)) == ((PART,), [0, 2], 0)


def test_it_comes_after_what_it_releases_and_before_its_record() -> None:
    record, released, step = records([5]), records([5], moment=4), entering(records([5]))
    assert processing_order([record, step, released]).tolist() == [2, 1, 0]
    earlier, later = records([5], moment=2), records([6], moment=1)
    assert processing_order([later, released, earlier]).tolist() == [2, 1, 0]


def test_the_clock_at_what_is_released_is_its_moment_and_at_a_record_its_own_place() -> None:
    assert records([5, 9], moment=4).order.clock.tolist() == [4, 4]
    assert records([5, 9]).order.clock.tolist() == [5, 9]
    assert entering(records([5, 9])).order.clock.tolist() == [5, 9]


def test_the_end_of_the_input_comes_after_all_records() -> None:
    assert processing_order([entering(end_of_input()), records([2**62])]).tolist() == [1, 0]


def test_moments_survive_arrow_and_batches_that_have_none() -> None:
    released, plain = records([5, 6], moment=4), records([7])
    assert Batch.from_ipc(released.to_ipc(), SCHEMA).order.clock.tolist() == [4, 4]
    assert Batch.from_ipc(plain.to_ipc(), SCHEMA).order.moment is None
    both = Batch.concat([plain, released])
    assert both.order.clock.tolist() == [7, 4, 4]
    assert Batch.from_ipc(both.to_ipc(), SCHEMA).order.clock.tolist() == [7, 4, 4]
    assert both.take(np.array([1])).order.clock.tolist() == [4]
