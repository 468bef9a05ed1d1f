"""The sums of rows and bytes by store: exact for small changes, near for big ones, carried from epoch to epoch."""

from __future__ import annotations

import random

from vsc.runtime.state.kv import MemoryKV, OverlayKV
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.sizes import KEY, SAMPLE, Sizes, updated_sizes

A, B = store_root(b"a"), store_root(b"bb")


def counted(base: MemoryKV) -> Sizes:
    found = {A: (0, 0), B: (0, 0)}
    for key, value in base.scan(b"", None):
        if key != KEY:
            rows, size = found[key[: 2 + key[1]]]
            found[key[: 2 + key[1]]] = rows + 1, size + len(key) + len(value)
    return found


def epoch(base: MemoryKV, puts: dict[bytes, bytes], deletes: tuple[bytes, ...] = (), ranges: tuple = ()) -> Sizes:  # type: ignore[type-arg]
    kv = OverlayKV(base)
    kv.write(puts.items(), deletes, ranges)
    sizes = updated_sizes(kv, base)
    kv.commit()
    return sizes


def test_small_changes_are_counted_exactly() -> None:
    base = MemoryKV()
    assert epoch(base, {A + b"1": b"xx", A + b"2": b"y", B + b"1": b""}) == {A: (2, 11), B: (1, 5)}
    assert epoch(base, {A + b"1": b"longer"}, (A + b"2", A + b"not there")) == {A: (1, 10), B: (1, 5)}
    assert epoch(base, {A + b"1": b"back", B + b"2": b"2"}, (), ((A, A + b"\xff"),)) == counted(base)
    assert epoch(base, {}, (), ((B, B + b"\xff"),)) == {A: (1, 8), B: (0, 0)}
    assert counted(base) == {A: (1, 8), B: (0, 0)}


def test_nothing_is_written_where_nothing_has_changed() -> None:
    base = MemoryKV()
    kv = OverlayKV(base)
    assert updated_sizes(kv, base) == {}
    assert kv.written == 0


def test_a_state_without_sums_is_counted_once() -> None:
    base = MemoryKV()
    base.write([(A + b"1", b"x"), (b"\x00vsc.stamp", b"e0")])
    assert epoch(base, {A + b"2": b"x"}) == {A: (2, 10)}


def test_random_epochs_stay_exact_below_the_sample() -> None:
    chance, base = random.Random(7), MemoryKV()
    for _ in range(200):
        root = chance.choice((A, B))
        puts = {root + bytes([chance.randrange(40)]): bytes(chance.randrange(9)) for _ in range(5)}
        start, end = sorted(bytes([chance.randrange(40)]) for _ in range(2))
        ranges = ((root + start, root + end),) if chance.random() < 0.3 else ()
        found = epoch(base, puts, (root + bytes([chance.randrange(40)]),), ranges)
        assert {A: (0, 0), B: (0, 0)} | found == counted(base)


def test_much_is_estimated() -> None:
    base = MemoryKV()
    rows = {A + n.to_bytes(4, "big"): b"value" for n in range(20 * SAMPLE)}
    epoch(base, rows)
    half = {key: b"other" for key in list(rows)[::2]} | {B + n.to_bytes(4, "big"): b"v" for n in range(10 * SAMPLE)}
    found, real = epoch(base, half), counted(base)
    for root in (A, B):
        assert abs(found[root][0] - real[root][0]) <= 0.05 * real[root][0]
        assert abs(found[root][1] - real[root][1]) <= 0.05 * real[root][1]
