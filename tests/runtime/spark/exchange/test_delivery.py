"""How sinks get their records in order: which shuffles there are, and how one sequence is made of what leaves them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.support import compiled
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import ScalarType
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange import delivery as delivery_module
from vsc.runtime.spark.exchange.delivery import Delivery, delivery, merged
from vsc.runtime.spark.exchange.wire import CHUNK_BYTES, SINK, WireRow, chunks, pieces, record_batches, size_of, slots

SCHEMA = Schema((), (Column("id", ScalarType("bigint")),))
SOURCES = """
stream orders (id bigint, currency string, at bigint) from memory () timestamp at;
stream keyed (id bigint, at bigint) from memory () key id timestamp at;
table rates (currency string, rate bigint) from memory () key currency;
stream priced = join orders with rates on currency select id, rate;
stream by_id = rekey priced by id as id2;
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sink orders to noop ();", Delivery(frozenset(), frozenset({"orders"}), False, True)),
        ("sink keyed to noop ();", Delivery(frozenset({"keyed"}), frozenset({"keyed"}), False, True)),
        ("sink priced to noop ();", Delivery(frozenset(), frozenset(), False, True)),
        (
            "sink priced to noop (); sink by_id to noop ();",
            Delivery(frozenset({"by_id"}), frozenset({"priced", "by_id"}), True, True),
        ),
        (
            "table c = aggregate by_id group by id2 select count(*) as c; sink c to noop (); sink by_id to noop ();",
            Delivery(frozenset({"by_id"}), frozenset({"by_id"}), False, True),
        ),
    ],
)
def test_only_what_needs_it_is_shuffled(text: str, expected: Delivery) -> None:
    assert delivery(compiled(SOURCES + text)) == expected


def test_a_plan_without_state_is_shuffled_if_its_stream_has_a_key() -> None:
    stream = "stream s (id bigint, at bigint) from memory () {key} timestamp at; sink s to noop ();"
    assert delivery(compiled(stream.format(key=""))) == Delivery(frozenset(), frozenset(), False, False)
    s = frozenset({"s"})
    assert delivery(compiled(stream.format(key="key id"))) == Delivery(s, s, True, True)


def batch(places: list[tuple[int, str, int, int]]) -> Batch:
    """A record for each (time, source partition, offset, path); its id says all of them."""
    parts = sorted({part for _, part, _, _ in places}, reverse=True)  # not as they compare
    order = Order(
        np.array([p[0] for p in places], dtype=np.int64),
        np.array([parts.index(p[1]) for p in places], dtype=np.int32),
        np.array([p[2] for p in places], dtype=np.int64),
        np.array([[p[3]] for p in places], dtype=np.int64).reshape(len(places), 1),
    )
    ids = pa.array([hash_of(p) for p in places], pa.int64())
    origins = tuple(Origin("s", 1, part) for part in parts)
    times = np.zeros(len(places), dtype=np.int64)
    return Batch(SCHEMA, origins, order, times, np.ones(len(places), dtype=np.bool_), (), (ids,))


def hash_of(place: tuple[int, str, int, int]) -> int:
    time, part, offset, path = place
    return ((time * 100 + ord(part)) * 1000 + offset) * 10 + path


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_batches_become_one_sequence(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "CHUNK_BYTES", 600)
    chance = random.Random(seed)
    everything = sorted(
        {(chance.randint(0, 40), chance.choice("xyz"), chance.randint(1, 3), chance.randint(1, 3)) for _ in range(400)}
    )
    runs: list[list[tuple[int, str, int, int]]] = [[] for _ in range(chance.randint(1, 5))]
    for place in everything:
        chance.choice(runs).append(place)
    found = [piece for run in runs if run for piece in pieces(batch(run), 24 * chance.randint(1, 30))]
    chance.shuffle(found)
    found.sort(key=lambda b: Frontier.at(b).place.encoded)  # what Spark does
    sequence = list(merged(iter(found)))
    assert [i for b in sequence for i in b.values[0].to_pylist()] == [hash_of(p) for p in everything]
    assert all(size_of(b) <= 600 for b in sequence)


def test_what_does_not_overlap_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "CHUNK_BYTES", 1000)
    made = 0

    def coming() -> object:
        nonlocal made
        for piece in pieces(batch([(i, "x", i, 1) for i in range(1000)]), 240):
            made += len(piece)
            yield piece

    given = 0
    for found in merged(coming()):  # type: ignore[arg-type]
        given += len(found)
        assert made - given <= 100
    assert given == 1000


def test_rows_are_handed_to_spark_in_bounded_batches() -> None:
    rows = [WireRow(SINK, "sink-0", i % 2, b"x" * (CHUNK_BYTES // 8), b"p") for i in range(20)]
    rows.append(WireRow(1, "n", 0, b"x" * (2 * CHUNK_BYTES)))
    assert [len(chunk) for chunk in chunks(rows)] == [8, 8, 5]
    batches = list(record_batches(rows, slots(2)))
    assert [b.num_rows for b in batches] == [8, 8, 5]
    assert [r for b in batches for r in b.column("place").to_pylist()] == [b"p"] * 20 + [None]
    assert list(record_batches([], slots(2))) == []
