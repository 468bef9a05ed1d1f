"""A check of a versioned store's invariants.

The numbers are those of the text of `versioned`. Reads every row; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end
from vsc.runtime.state.versioned import VersionedStore
from vsc.runtime.state.versioned_key import CHUNK_BYTES, CHUNK_VERSIONS, HEAD_BYTES, HEAD_VERSIONS, needs_due
from vsc.runtime.state.versioned_layout import Block, RowKeys, decode_block, decode_meta

__all__ = ["check_invariants"]


def check_invariants(store: VersionedStore) -> None:
    """Raise `StateError` that names the invariant and the key, if the store's rows break one."""
    kv, rows, horizon = store._kv, store._rows, store.horizon
    heads = {key: decode_block(data) for key, data in _under(kv, rows.head)}
    chunks = {rows.timed(rows.due + tail): decode_block(data) for tail, data in _under(kv, rows.chunk)}
    due = {rows.timed(rows.due + tail) for tail, _ in _under(kv, rows.due)}
    _check_meta(kv, rows, store, bool(heads or chunks or due))
    for key, head in heads.items():
        _check_head(key, head, horizon, chunks, due)
        _require(head.times[-1] <= store.observed_stream_time, 1, key, "its newest version is ahead of stream time")
    for (upper, key), chunk in chunks.items():
        listed = key in heads and upper in heads[key].uppers
        _require(listed or upper <= horizon, 3, key, f"the chunk up to {upper} is in no directory")
        _check_block(key, chunk, upper, CHUNK_VERSIONS, CHUNK_BYTES)
    for time, key in due:
        _require(key in heads and heads[key].mark == time, 5, key, f"the due row of {time} belongs to no head")


def _under(kv: OrderedKV, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for row_key, data in kv.scan(prefix, prefix_end(prefix)):
        yield row_key[len(prefix) :], data


def _check_meta(kv: OrderedKV, rows: RowKeys, store: VersionedStore, has_rows: bool) -> None:
    data = kv.get(rows.meta)
    _require(data is not None or not has_rows, 6, b"", "there are rows but no meta row")
    if data is not None:
        stored = decode_meta(data).observed
        _require(stored == store.observed_stream_time, 6, b"", f"the meta row says stream time {stored}")


def _check_head(
    key: bytes, head: Block, horizon: int, chunks: dict[tuple[int, bytes], Block], due: set[tuple[int, bytes]]
) -> None:
    _check_block(key, head, None, HEAD_VERSIONS, HEAD_BYTES)
    _require(all(a < b for a, b in pairwise(head.uppers)), 2, key, "the directory does not ascend")
    if head.uppers:
        _require(head.uppers[-1] == head.times[0], 2, key, "the directory does not end where the head begins")
    for upper in head.uppers:
        if upper > horizon:
            _require((upper, key) in chunks, 3, key, f"the chunk up to {upper} is missing")
    for before, upper in pairwise(head.uppers):
        if upper > horizon:
            begins = chunks[upper, key].times[0]
            _require(begins == before, 2, key, f"the chunk up to {upper} begins at {begins}, not at {before}")
    _require(head.mark < 0 or (head.mark, key) in due, 5, key, f"the due row of {head.mark} is missing")
    if needs_due(len(head.times), head.values[-1] is None, len(head.uppers)):
        _require(0 <= head.mark <= head.times[-1], 5, key, f"its mark is {head.mark}")


def _check_block(key: bytes, block: Block, upper: int | None, versions: int, size: int) -> None:
    times = block.times
    _require(all(a < b for a, b in pairwise(times)) and times[0] >= 0, 1, key, "its timestamps do not ascend")
    _require(len(times) <= versions, 4, key, f"a block has {len(times)} versions")
    _require(len(times) == 1 or block.size() <= size, 4, key, f"a block has {block.size()} bytes")
    if upper is not None:
        _require(times[-1] < upper == block.mark and not block.uppers, 2, key, f"the chunk up to {upper} goes beyond")


def _require(held: bool, number: int, key: bytes, what: str) -> None:
    if not held:
        raise StateError(f"invariant {number} of the versioned store does not hold for key {key!r}: {what}")
