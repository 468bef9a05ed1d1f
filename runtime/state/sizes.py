"""How many rows and bytes each store of a stage has, updated with its changes, without reading all of it.

A row of the stage's own map, under `KEY`, holds the sums by store root. It is written with the changes that it counts,
so it survives what they survive. If an epoch changes more rows than `SAMPLE`, every n-th row is looked at and counts n
times: then the sums are estimates. Bytes are those of keys and values, uncompressed, not the size on disk.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice

from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["KEY", "SAMPLE", "Sizes", "updated_sizes"]

KEY = b"\x00vsc.sizes"
"""The key of the sums. Stores' roots begin with a two-byte length, and none is as long as this key would say."""

SAMPLE = 1024
"""How many changed rows, and ranges, are looked at in one epoch."""

_RANGE_ROWS = 4096
_AT_ONCE = 16
_OWN = b"\x00vsc."

Sizes = dict[bytes, tuple[int, int]]
"""Rows and bytes by store root (`store_root` of a store's prefix)."""


def updated_sizes(kv: OverlayKV, base: OrderedKV) -> Sizes:
    """The sums after the writes of `kv` above `base`; writes them to `kv` if anything has changed there."""
    before = base.get(KEY)
    sums = _Sums(_counted(base.scan(b"", None)) if before is None else _decoded(before))
    rows, ranges = kv.changes()
    step = len(rows) // SAMPLE + 1
    keys = list(islice(rows, 0, None, step))
    weight = len(rows) / max(len(keys), 1)
    starts = [start for start, _ in ranges]
    for key, old in _before(keys, base):
        at = bisect_right(starts, key) - 1
        hidden = at >= 0 and key < ranges[at][1]  # it is counted with its range
        sums.change(key, None if hidden else old, rows[key], weight)
    some = ranges[:: len(ranges) // SAMPLE + 1]
    for start, end in some:
        for key, old in islice(base.scan(start, end), _RANGE_ROWS):
            sums.change(key, old, None, len(ranges) / len(some))
    sizes = sums.sizes()
    if rows or ranges:
        kv.write([(KEY, json.dumps({root.hex(): size for root, size in sorted(sizes.items())}).encode())])
    return sizes


class _Sums:
    def __init__(self, sizes: Sizes) -> None:
        self._sums = {root: [float(rows), float(size)] for root, (rows, size) in sizes.items()}

    def change(self, key: bytes, old: bytes | None, new: bytes | None, times: float) -> None:
        """Counts a row that was `old` and is `new`, as `times` rows."""
        if key.startswith(_OWN):
            return
        sums = self._sums.setdefault(_root(key), [0.0, 0.0])
        sums[0] += ((new is not None) - (old is not None)) * times
        bytes_before, bytes_now = (0 if value is None else len(key) + len(value) for value in (old, new))
        sums[1] += (bytes_now - bytes_before) * times

    def sizes(self) -> Sizes:
        """The sums; an estimate is never negative."""
        return {root: (max(round(rows), 0), max(round(size), 0)) for root, (rows, size) in self._sums.items()}


def _before(keys: list[bytes], base: OrderedKV) -> Iterator[tuple[bytes, bytes | None]]:
    """Each key with its value in `base`: a few at a time, because values may be large."""
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        yield from zip(some, base.get_many(some), strict=True)


def _counted(rows: Iterable[tuple[bytes, bytes]]) -> Sizes:
    sums = _Sums({})
    for key, value in rows:
        sums.change(key, None, value, 1)
    return sums.sizes()


def _decoded(data: bytes) -> Sizes:
    return {bytes.fromhex(root): (int(rows), int(size)) for root, (rows, size) in json.loads(data).items()}


def _root(key: bytes) -> bytes:
    return key[: 2 + int.from_bytes(key[:2], "big")]
