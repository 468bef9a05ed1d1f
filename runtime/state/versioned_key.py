"""The history of one key in memory: its head, the chunks that are needed, and what must be written back.

Guarantees: what is written back keeps the invariants of the store (`versioned`). A key's history is a run of chunks
and then its head; chunk i holds the versions before its upper, which is the first timestamp of what comes next. So a
timestamp's place is found in the head's directory alone, and a change touches one block, however long the history is.
Not for many keys at once: `versioned_put` does that on whole columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_layout import Block, RowKeys, decode_block, encode_block

__all__ = [
    "CHUNKS_AT_ONCE",
    "CHUNK_BYTES",
    "CHUNK_VERSIONS",
    "HEAD_BYTES",
    "HEAD_VERSIONS",
    "Found",
    "KeyHistory",
    "Writes",
    "needs_due",
]

HEAD_VERSIONS: Final = 32
HEAD_BYTES: Final = 8 << 10
CHUNK_VERSIONS: Final = 512
CHUNK_BYTES: Final = 64 << 10
"""A block with more than so many versions or bytes is split (one version alone may be of any size)."""

CHUNKS_AT_ONCE: Final = 16
"""A new chunk takes in older ones only if the directory would then have a multiple of so many."""

Found = tuple[bytes | None, int, int | None]
"""A version: value or None for a tombstone, valid from, valid to (None: the newest)."""


@dataclass(slots=True)
class Writes:
    """The content of one atomic write."""

    puts: list[tuple[bytes, bytes]] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)


class KeyHistory:
    """One key's versions, of which those that ended at or before `horizon` count as gone."""

    __slots__ = ("_chunks", "_dirty", "_kv", "_replaced", "_rows", "head", "key")

    def __init__(self, kv: OrderedKV, rows: RowKeys, key: bytes, head: bytes | None, horizon: int) -> None:
        """`head` is the bytes of the key's head row, or None when it has none."""
        self._kv, self._rows, self.key = kv, rows, key
        self.head: Block | None = None
        if head is not None:
            self.head = decode_block(head)
            if self.head.uppers and self.head.uppers[-1] != self.head.times[0]:
                raise StateError(f"the versioned store is damaged: the head of key {key!r} does not meet its chunks")
            self.head.uppers = self.head.uppers[bisect_right(self.head.uppers, horizon) :]
        self._chunks: dict[int, Block] = {}
        self._dirty: set[int] = set()
        self._replaced: list[int] = []

    def insert(self, time: int, value: bytes | None) -> int | None:
        """Add a version, replacing one at the same time; return the next greater timestamp, None for none."""
        block = self.head
        if block is None:
            self.head = Block([time], [value], [], -1)
            return None
        after = None
        if block.uppers and time < block.times[0]:
            after = block.uppers[bisect_right(block.uppers, time)]
            block = self._chunk(after)
            self._dirty.add(after)
        times = block.times
        at = bisect_left(times, time)
        if at < len(times) and times[at] == time:
            block.values[at] = value
        else:
            times.insert(at, time)
            block.values.insert(at, value)
        return times[at + 1] if at + 1 < len(times) else after

    def newest(self) -> Found | None:
        """Return the newest version."""
        head = self.head
        return None if head is None else (head.values[-1], head.times[-1], None)

    def at(self, time: int) -> Found | None:
        """Return the version valid at `time`; None before the first known one."""
        block, after = self.head, None
        if block is None:
            return None
        if block.uppers and time < block.times[0]:
            after = block.uppers[bisect_right(block.uppers, time)]
            block = self._chunk(after)
        at = bisect_right(block.times, time) - 1
        if at < 0:
            return None
        return block.values[at], block.times[at], block.times[at + 1] if at + 1 < len(block.times) else after

    def flush(self, horizon: int, writes: Writes) -> None:
        """Add to `writes` what must be written, without what ended at or before `horizon`."""
        head = self.head
        if head is None:
            return
        _forget(head, horizon)
        if len(head.times) > HEAD_VERSIONS or (len(head.times) > 1 and head.size() > HEAD_BYTES):
            self._spill(head, horizon, writes)
        for upper in self._dirty:
            if upper > horizon:
                chunk = self._chunks[upper]
                _forget(chunk, horizon)
                self._store_chunks(chunk, upper, writes)
        if head.mark < 0 and needs_due(len(head.times), head.values[-1] is None, len(head.uppers)):
            head.mark = head.times[-1]
            writes.puts.append((self._rows.due_key(head.mark, self.key), b""))
        writes.deletes += [self._rows.chunk_key(upper, self.key) for upper in self._replaced]
        writes.puts.append((self._rows.head + self.key, encode_block(head)))

    def _chunk(self, upper: int) -> Block:
        chunk = self._chunks.get(upper)
        if chunk is None:
            data = self._kv.get(self._rows.chunk_key(upper, self.key))
            if data is None:
                raise StateError(f"the versioned store is damaged: the chunk up to {upper} of key {self.key!r} is gone")
            chunk = self._chunks[upper] = decode_block(data)
        return chunk

    def _store_chunks(self, chunk: Block, upper: int, writes: Writes) -> None:
        """Write a chunk, in several if it is too long, and bring the directory up to date."""
        assert self.head is not None
        cuts = _cuts(chunk)
        bounds = [chunk.times[cut] for cut in cuts] + [upper]
        start = 0
        for cut, bound in zip([*cuts, len(chunk.times)], bounds, strict=True):
            piece = Block(chunk.times[start:cut], chunk.values[start:cut], [], bound)
            writes.puts.append((self._rows.chunk_key(bound, self.key), encode_block(piece)))
            start = cut
        uppers = self.head.uppers
        at = bisect_left(uppers, bounds[0])
        uppers[at : bisect_right(uppers, upper)] = bounds

    def _spill(self, head: Block, horizon: int, writes: Writes) -> None:
        """Move the older half of a head that has grown too long into a chunk.

        If the directory would then have a multiple of `CHUNKS_AT_ONCE`, the new chunk takes in as many of the youngest
        as it may hold: so a version is rewritten once or twice, and the directory stays short.
        """
        keep = _kept(head)
        cut = len(head.times) - keep
        spilled = Block(head.times[:cut], head.values[:cut], [], head.times[cut])
        del head.times[:cut], head.values[:cut]
        merges = (len(head.uppers) + 1) % CHUNKS_AT_ONCE == 0
        while merges and head.uppers:
            youngest = self._chunk(head.uppers[-1])
            if len(youngest.times) + len(spilled.times) > CHUNK_VERSIONS:
                break
            if youngest.size() + spilled.size() > CHUNK_BYTES:
                break
            spilled.times = youngest.times + spilled.times
            spilled.values = youngest.values + spilled.values
            replaced = head.uppers.pop()
            self._replaced.append(replaced)
            self._dirty.discard(replaced)
            _forget(spilled, horizon)
        self._store_chunks(spilled, spilled.mark, writes)


def needs_due(versions: int, deleted: bool, chunks: int) -> bool:
    """Return whether a head will have something to drop once its newest version is old."""
    return versions > 1 or deleted or chunks > 0


def _forget(block: Block, horizon: int) -> None:
    """Drop the versions (of a head also the chunks) that ended at or before `horizon`; never the last version."""
    first = max(bisect_right(block.times, horizon) - 1, 0)
    del block.times[:first], block.values[:first]
    block.uppers = block.uppers[bisect_right(block.uppers, horizon) :]


def _kept(head: Block) -> int:
    """Return how many of the newest versions stay in a head that is split: half of what it may hold, at least one."""
    kept = size = 0
    for value in reversed(head.values):
        size += 12 + len(value or b"")
        if kept >= HEAD_VERSIONS // 2 or (kept and size > HEAD_BYTES // 2):
            break
        kept += 1
    return min(kept, len(head.times) - 1)


def _cuts(chunk: Block) -> list[int]:
    """Return where a chunk is cut: nowhere if it is short enough, else into pieces of about half the limits."""
    if len(chunk.times) <= CHUNK_VERSIONS and (chunk.size() <= CHUNK_BYTES or len(chunk.times) == 1):
        return []
    cuts, versions, size = [], 0, 0
    for at, value in enumerate(chunk.values):
        if versions and (versions >= CHUNK_VERSIONS // 2 or size > CHUNK_BYTES // 2):
            cuts.append(at)
            versions = size = 0
        versions += 1
        size += 12 + len(value or b"")
    return cuts
