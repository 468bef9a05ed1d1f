"""Batches, their order, metrics, partitions."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.plan.nodes import Column, Schema
from vsc.plan.types import BIGINT, STRING
from vsc.runtime.errors import BadRowError, StateError
from vsc.runtime.records import Batch, Dropped, Group, Metrics, Missed, Order, Origin, partition_of, processing_order

SCHEMA = Schema((Column("k", STRING),), (Column("v", BIGINT),))
ORIGINS = (Origin("s", 2, "b"), Origin("s", 2, "a"), Origin("t", 1, "z"))


def batch(rows: list[tuple[int, int, int, tuple[int, ...]]], origins: tuple[Origin, ...] = ORIGINS) -> Batch:
    """Rows (time, origin, offset, path); the value is the row's number."""
    depth = len(rows[0][3]) if rows else 1
    order = Order(
        np.array([r[0] for r in rows], dtype=np.int64),
        np.array([r[1] for r in rows], dtype=np.int32),
        np.array([r[2] for r in rows], dtype=np.int64),
        np.array([r[3] for r in rows], dtype=np.int64).reshape(len(rows), depth),
    )
    n = len(rows)
    return Batch(
        SCHEMA, origins, order, np.arange(n), np.arange(n) % 3 != 1,
        (pa.array([f"k{i}" for i in range(n)], pa.string()),), (pa.array(range(n), pa.int64()),),
    )  # fmt: skip


def same(one: Batch, other: Batch) -> bool:
    return (
        [one.origins[i] for i in one.order.origin] == [other.origins[i] for i in other.order.origin]
        and one.order.path.tolist() == other.order.path.tolist()
        and one.order.time.tolist() == other.order.time.tolist()
        and one.order.offset.tolist() == other.order.offset.tolist()
        and one.timestamps.tolist() == other.timestamps.tolist()
        and one.present.tolist() == other.present.tolist()
        and [c.to_pylist() for c in one.columns] == [c.to_pylist() for c in other.columns]
    )


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.tuples(st.integers(1, 3))), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_sorts_as_the_rule_says(first: list[Any], second: list[Any]) -> None:
    longer = [(t, o, f, (*p, 1)) for t, o, f, p in second]
    batches = [batch(first), batch(longer, ORIGINS[::-1])]
    keys = [(t, ORIGINS[o].sort_key, f, (*p, 0)) for t, o, f, p in first]
    keys += [(t, ORIGINS[::-1][o].sort_key, f, p) for t, o, f, p in longer]
    expected = sorted(range(len(keys)), key=lambda i: keys[i])
    assert processing_order(batches).tolist() == expected


def test_a_cause_comes_before_what_it_gave_rise_to() -> None:
    direct, derived = batch([(1, 0, 0, (2,))]), batch([(1, 0, 0, (2, 1))])
    assert processing_order([derived, direct]).tolist() == [1, 0]


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_survives_arrow(rows: list[Any]) -> None:
    there = batch(rows)
    assert same(Batch.from_ipc(there.to_ipc(), SCHEMA), there)


def test_slices_survive_arrow() -> None:
    whole = batch([(i, 0, i, (1,)) for i in range(10)])
    part = whole.filter(whole.order.offset > 4)
    assert same(Batch.from_ipc(part.to_ipc(), SCHEMA), part)
    assert part.values[0].to_pylist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("data", [b"", b"nonsense", batch([(1, 0, 0, (1,))]).to_ipc()[:-40]])
def test_damage_is_an_error_with_a_code(data: bytes) -> None:
    with pytest.raises(StateError, match="VSC903"):
        Batch.from_ipc(data, SCHEMA)


def test_another_schema_is_an_error() -> None:
    with pytest.raises(StateError, match="2 columns"):
        Batch.from_ipc(batch([(1, 0, 0, (1,))]).to_ipc(), Schema((), SCHEMA.value))


def test_concat_keeps_rows_and_their_origins() -> None:
    one, other = batch([(1, 0, 0, (1,))]), batch([(2, 0, 5, (3, 4))], ORIGINS[::-1])
    both = Batch.concat([one, other])
    assert [both.origins[i] for i in both.order.origin] == [ORIGINS[0], ORIGINS[2]]
    assert both.order.path.tolist() == [[1, 0], [3, 4]]
    assert both.sorted().values[0].to_pylist() == [0, 0]


def test_metrics_add_up_and_become_json() -> None:
    metrics, other = Metrics(), Metrics()
    metrics.count("t", Group.DROPPED_RECORDS, Dropped.EXPIRED, 2)
    metrics.count("t", Group.DROPPED_RECORDS, Dropped.NULL_KEY, 0)
    metrics.peak("j", "retention_needed", 7)
    other.count("t", Group.DROPPED_RECORDS, Dropped.EXPIRED)
    other.count("j", Group.MISSED_LOOKUPS, Missed.TOMBSTONE)
    other.peak("j", "retention_needed", 5)
    metrics.late("j", 2)
    metrics.late("t", 0)
    other.late("j", 3)
    metrics.merge(other)
    assert metrics.as_dict() == {
        "dropped_records": {"t": {"expired": 3}},
        "missed_lookups": {"j": {"tombstone": 1}},
        "late_versions": {"j": 5},
        "retention_needed": {"j": 7},
    }
    assert Metrics.from_dict(json.loads(json.dumps(metrics.as_dict()))) == metrics
    assert metrics.total(Group.DROPPED_RECORDS) == 3
    assert not Metrics()
    assert metrics


def test_partitions_never_change() -> None:
    keys = [b"", b"a", b"a|", b"ab", b"a\0", b"\xff" * 9]
    assert partition_of(keys, 4).tolist() == [0, 3, 2, 1, 1, 0]
    assert partition_of(keys, 1).tolist() == [0] * 6


def test_errors_cross_processes() -> None:
    error = pickle.loads(pickle.dumps(BadRowError("row 3", "mend it")))
    assert (error.code, error.message, error.help) == ("VSC901", "row 3", "mend it")
    assert str(error) == "[VSC901] row 3\n  help: mend it"
