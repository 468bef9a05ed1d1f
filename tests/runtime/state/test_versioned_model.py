"""Every versioned store against a flat model: few nasty keys, long jumps in time, restarts, any segment interval."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.state import invariants
from tests.runtime.state.invariants import check_invariants
from tests.runtime.state.model import Model
from vsc.runtime.state import Miss, VersionedRecord, versioned_key, versioned_put, versioned_spill
from vsc.runtime.state.kv import MemoryKV, OrderedKV, OverlayKV, RocksKV, apply_changelog
from vsc.runtime.state.versioned import VersionedStore

pytestmark = pytest.mark.slow

KEYS = (b"", b"a", b"a|", b"a|\xff", b"a\0", b"ab", b"\xff\xff")
PREFIX = b"s"
Flat = Model[bytes, bytes]

# One key more often than the others, so that its history is long.
keys = st.one_of(st.just(b"a|"), st.just(b"a|"), st.sampled_from(KEYS))
values = st.sampled_from([b"", b"v", b"u", b"w" * 30, b"x" * 100, None])
# Times near the last one that was used, and sometimes a long jump.
steps = st.one_of(st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([-500, -40, 40, 500, 10**12]))
write = st.tuples(keys, values, steps)
asked = st.tuples(keys, st.one_of(st.none(), steps))
span = st.tuples(steps, steps)

operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), write),
        st.tuples(st.just("delete"), st.tuples(keys, steps)),
        st.tuples(st.just("get"), asked),
        st.tuples(st.just("versions"), st.tuples(keys, st.one_of(st.none(), steps), st.one_of(st.none(), steps))),
        st.tuples(st.just("put_many"), st.lists(write, max_size=20)),
        st.tuples(st.just("put_many"), st.lists(write, min_size=8, max_size=40)),
        st.tuples(st.just("get_many"), st.lists(st.tuples(keys, steps), max_size=12)),
        st.tuples(st.just("versions_many"), st.lists(st.tuples(keys, span), max_size=7, unique_by=lambda x: x[0])),
        st.tuples(st.just("restart"), st.none()),
    ),
    min_size=8,
    max_size=30,
)
short = st.sampled_from([(10, 10), (10, 3), (10, 40), (0, 0), (0, 10), (10, 0), (30, 30)])
long = st.sampled_from([(120, 120), (600, 600), (600, 40), (40, 600), (10**13, 10**13)])
durations = st.one_of(short, long, long)
segments = st.sampled_from([1, 2, 7, 100, 10**9])


@dataclass
class StoreHome:
    """Where a store lies, and what a restart does there."""

    kv: OrderedKV
    restart: Callable[[], OrderedKV]


@contextmanager
def place(kind: str) -> Iterator[StoreHome]:
    with tempfile.TemporaryDirectory() as folder:
        if kind == "memory":
            memory = MemoryKV()
            yield StoreHome(memory, lambda: memory)
        elif kind == "rocksdb":
            opened = [RocksKV(Path(folder) / "db")]

            def reopen() -> RocksKV:
                opened[0].close()
                opened[0] = RocksKV(Path(folder) / "db", durable=False)
                return opened[0]

            yield StoreHome(opened[0], reopen)
            opened[0].close()
        else:
            with RocksKV(Path(folder) / "db", durable=False) as rocks:
                base: OrderedKV = rocks if kind == "overlay-rocksdb" else MemoryKV()
                copy = MemoryKV()
                overlay = [OverlayKV(base)]

                def commit() -> OverlayKV:
                    shown = list(overlay[0].scan(b"", None))
                    blob = overlay[0].changelog()
                    apply_changelog(base, blob)
                    apply_changelog(copy, blob)
                    assert list(base.scan(b"", None)) == shown == list(copy.scan(b"", None))
                    assert list(base.scan(b"", None, reverse=True)) == shown[::-1]
                    overlay[0] = OverlayKV(base)
                    return overlay[0]

                yield StoreHome(overlay[0], commit)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """Blocks of a few versions, so that short runs already have chunks, splits and merges of chunks."""
    patch = pytest.MonkeyPatch()
    limits = {"HEAD_VERSIONS": 4, "HEAD_BYTES": 150, "CHUNK_VERSIONS": 6, "CHUNK_BYTES": 250, "CHUNKS_AT_ONCE": 2}
    for module in (versioned_key, versioned_put, versioned_spill, invariants):
        for name in limits.keys() & vars(module).keys():
            patch.setattr(module, name, limits[name])
    yield
    patch.undo()


@settings(max_examples=120, deadline=None)
@given(ops=operations, limits=durations, segment=segments)
def test_store_in_memory_is_the_model(ops: list[Any], limits: tuple[int, int], segment: int) -> None:
    with place("memory") as here:
        run(here, ops, limits, segment)


@pytest.mark.parametrize("seed", range(25))
def test_a_long_run_is_the_model(seed: int) -> None:
    """Hypothesis likes short runs; these are long, for what needs many steps to come about."""
    dice = Random(seed)

    def step() -> int:
        return dice.choice(
            [dice.randint(-12, 12), dice.randint(-12, 12), dice.randint(0, 4), dice.choice([-40, 40, 500])]
        )

    def key() -> bytes:
        return dice.choice((b"a|", *KEYS))

    def written() -> tuple[bytes, bytes | None, int]:
        return key(), dice.choice([b"", b"v", b"u", b"w" * 30, b"x" * 100, None]), step()

    def some(make: Callable[[], Any], most: int) -> list[Any]:
        return [make() for _ in range(dice.randint(0, most))]

    kinds: dict[str, Callable[[], Any]] = {
        "put": written,
        "delete": lambda: (key(), step()),
        "get": lambda: (key(), step()),
        "versions": lambda: (key(), step(), step()),
        "put_many": lambda: some(written, 30),
        "get_many": lambda: some(lambda: (key(), step()), 12),
        "versions_many": lambda: [(one, (step(), step())) for one in dice.sample(KEYS, 3)],
        "restart": lambda: None,
    }
    ops = [(name, kinds[name]()) for name in dice.choices(list(kinds), k=80)]
    limits = dice.choice([(10, 10), (10, 3), (10, 40), (0, 0), (120, 120), (600, 600), (600, 40), (40, 600)])
    with place(dice.choice(["memory", "memory", "overlay-memory"])) as here:
        run(here, ops, limits, dice.choice([1, 7, 100, 10**9]))


@pytest.mark.parametrize("kind", ["rocksdb", "overlay-memory", "overlay-rocksdb"])
@settings(max_examples=30, deadline=None)
@given(ops=operations, limits=durations, segment=segments)
def test_store_that_restarts_is_the_model(kind: str, ops: list[Any], limits: tuple[int, int], segment: int) -> None:
    with place(kind) as here:
        run(here, ops, limits, segment)


def run(here: StoreHome, ops: list[Any], limits: tuple[int, int], segment: int) -> None:
    retention, grace = limits
    now = 0
    model: Flat = Model(retention, grace)
    store = VersionedStore(here.kv, PREFIX, retention, segment, grace)
    for name, arguments in ops:
        if name == "restart":
            store = VersionedStore(here.restart(), PREFIX, retention, segment, grace)
        else:
            now = STEPS[name](store, model, now, arguments)
        assert store.observed_stream_time == model.time
        check_invariants(store)
        assert [plain(store.lookup(key)) for key in KEYS] == [model.lookup(key, None) for key in KEYS]
    shown = [(key, plain(found)) for key, found in store.scan()]
    expected = [(key, model.lookup(key, None)) for key in sorted(KEYS)]
    assert shown == [(key, found) for key, found in expected if not isinstance(found, str)]


def moved(now: int, step: int) -> int:
    """A time that lies `step` from `now`, within what a store takes."""
    return min(max(now + step, 0), 2**62)


def plain(found: VersionedRecord | Miss | None) -> tuple[bytes, int, int | None] | str | None:
    if found is None or isinstance(found, Miss):
        return None if found is None else found.value
    return found.value, found.valid_from, found.valid_to


def put(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    key, value, step = what
    outcome = store.put(key, value, moved(now, step))
    assert (outcome.kind, outcome.valid_to) == model.put(key, value, moved(now, step))
    return moved(now, step)


def delete(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    key, step = what
    assert plain(store.delete(key, moved(now, step))) == model.delete(key, moved(now, step))
    return moved(now, step)


def get(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    key, step = what
    as_of = None if step is None else moved(now, step)
    expected = model.lookup(key, as_of)
    assert plain(store.lookup(key, as_of)) == expected
    assert plain(store.get(key, as_of)) == (None if isinstance(expected, str) else expected)
    return now


def versions(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    key, low, high = what
    start, end = (None if step is None else moved(now, step) for step in (low, high))
    if start is not None and end is not None and start > end:
        with pytest.raises(ValueError, match="greater than"):
            store.versions(key, start, end)
        start, end = end, start
    expected = model.versions(key, start, end)
    assert [plain(v) for v in store.versions(key, start, end)] == expected
    assert [plain(v) for v in store.versions(key, start, end, ascending=True)] == expected[::-1]
    return now


def put_many(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    times = []
    for _, _, step in what:
        now = moved(now, step)
        times.append(now)
    store.put_many([w[0] for w in what], [w[1] for w in what], np.array(times, np.int64))
    for (key, value, _), time in zip(what, times, strict=True):
        model.put(key, value, time)
    for (key, _, _), time in zip(what, times, strict=True):
        assert plain(store.lookup(key, time)) == model.lookup(key, time), (key, time)
    return now


def get_many(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    asked_keys, times = [key for key, _ in what], [moved(now, step) for _, step in what]
    found = store.get_many(asked_keys, np.array(times, np.int64))
    expected = [model.lookup(key, time) for key, time in zip(asked_keys, times, strict=True)]
    assert [plain(one) for one in found] == expected
    assert [plain(one) for one in store.get_many(asked_keys)] == [model.lookup(key, None) for key in asked_keys]
    return now


def versions_many(store: VersionedStore, model: Flat, now: int, what: Any) -> int:
    asked_keys = [key for key, _ in what]
    starts = [moved(now, low) for _, (low, _) in what]
    ends = [moved(now, high) for _, (_, high) in what]
    found = store.versions_many(asked_keys, np.array(starts, np.int64), np.array(ends, np.int64))
    columns = (found.key.tolist(), found.valid_from.tolist(), found.valid_to.tolist(), found.values.to_pylist())
    expected = [
        (at, *version) for at, key in enumerate(asked_keys) for version in model.known(key, starts[at], ends[at])
    ]
    assert list(zip(*columns, strict=True)) == expected
    return now


STEPS: dict[str, Callable[[VersionedStore, Flat, int, Any], int]] = {
    "put": put,
    "delete": delete,
    "get": get,
    "versions": versions,
    "put_many": put_many,
    "get_many": get_many,
    "versions_many": versions_many,
}


def filled(retention: int = 100, end: int = 120) -> tuple[VersionedStore, Flat]:
    """One key with a version at each of the times 0, 2, ... before `end`: a head and many chunks."""
    store = VersionedStore(MemoryKV(), PREFIX, retention, 10)
    model: Flat = Model(retention, retention)
    for time in range(0, end, 2):
        store.put(b"k", b"%d" % time, time)
        model.put(b"k", b"%d" % time, time)
    return store, model


def compare(store: VersionedStore, model: Flat) -> None:
    check_invariants(store)
    for as_of in range(-1, 125):
        assert plain(store.lookup(b"k", as_of)) == model.lookup(b"k", as_of)
    assert [plain(v) for v in store.versions(b"k")] == model.versions(b"k", None, None)
    versions_many(store, model, 0, [(b"k", (0, 1000))])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("value", [b"new", None])
def test_a_late_write_finds_its_place_at_every_time(batch: bool, value: bytes | None) -> None:
    for time in range(120):
        store, model = filled(retention=200)
        (put_many if batch else put)(store, model, time, [(b"k", value, 0)] if batch else (b"k", value, 0))
        compare(store, model)


@pytest.mark.parametrize("jump", [2, 57, 101, 5000])
def test_a_late_write_and_a_jump_in_one_batch(jump: int) -> None:
    for time in range(20, 120, 3):
        store, model = filled()
        put_many(store, model, time, [(b"k", b"late", 0), (b"other", b"", 118 + jump - time)])
        compare(store, model)


@pytest.mark.parametrize("end", [116, 118, 120])
@pytest.mark.parametrize("batch", [False, True])
def test_the_directory_ends_where_the_horizon_is(batch: bool, end: int) -> None:
    for time in [*range(120, 140), *range(195, 230, 4)]:
        store, model = filled(end=end)
        (put_many if batch else put)(store, model, time, [(b"k", b"new", 0)] if batch else (b"k", b"new", 0))
        compare(store, model)
