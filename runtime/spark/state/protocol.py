"""The state protocol: how the state of one stage and vsc partition is kept durable in Spark's own state store.

The numbered invariants are in ``docs/inside/state-protocol.md``; what holds here, in short:

* Durable is a chain of *blobs* in Spark's state store and the *manifest* that names them in order, with lengths and
  checksums. A blob is an epoch's changelog, or a snapshot that stands for all blobs before it.
* The RocksDB folder on the executor's disk is a committed prefix of that chain. Its *stamp* (a row inside it) is the
  name of the newest changelog applied. New writes of a call live in memory above it; what becomes too much of them is
  spilled, to a blob and to a scratch copy of the folder.
* A call begins with `open`: the tail behind the stamp is replayed, or everything is restored. It ends with `commit`.
  Spark makes what `commit` wrote durable, or rolls it back, together with the rows that the call gave out.

Not for locking (that is `vsc.runtime.spark.state.local_folder`), and not for placement, retries and versions: Spark's.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from vsc.runtime.errors import StateError
from vsc.runtime.state.changelog import apply_changelog, encode_changelog
from vsc.runtime.state.kv import LowerKV, OrderedKV, OverlayKV

__all__ = [
    "CHUNK_BYTES",
    "STAMP_KEY",
    "Blob",
    "BlobStore",
    "Manifest",
    "PartitionState",
    "blob_name",
    "call_name",
    "replay",
    "snapshot_chunks",
]

MANIFEST_FORMAT = 2
MAX_MANIFEST = 64 << 20
"""Characters of the longest manifest that is read."""

KINDS = ("changelog", "snapshot")
CHUNK_BYTES = 2 << 20
"""A blob is stored in pieces of about this size: what one request to the state server carries well."""

STAMP_KEY = b"\x00vsc.stamp"
"""Where the local store keeps its stamp: no store's root begins like it (see `state.sizes.KEY`)."""

FOLD_BYTES = 8 << 20
"""Changelogs shorter than this in sum are never worth folding."""


SPILL_BYTES = 16 << 20
"""How much memory a call's writes may take before they are spilled."""


def call_name(epoch: int, stage: int, partition: int) -> str:
    """The name of a call: the same for each attempt at it."""
    return f"{epoch}-{stage}-{partition}"


def blob_name(call: str, before: str, content: bytes) -> str:
    """The name of a blob of that call, behind the blob `before` (empty: at the beginning of the chain).

    It stands for the whole chain. Attempts that write the same have the same name, so that no one's state is damaged
    where Spark mixes files of two attempts.
    """
    digest = blake2b(before.encode(), digest_size=16)
    digest.update(content)
    return f"{call}-{digest.hexdigest()}"


GetChunk = Callable[[str, int], bytes | None]
"""Gives the chunk of a blob (its name), or None."""


class BlobStore(Protocol):
    """Spark's state for one grouping key: a value and a map, rolled back together when an attempt fails."""

    def manifest(self) -> str | None:
        """The manifest's JSON; None in the first call of all."""
        ...

    def set_manifest(self, text: str) -> None:
        """Replaces the manifest."""
        ...

    def get(self, blob: str, chunk: int) -> bytes | None:
        """A chunk, or None."""
        ...

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        """Stores a chunk."""
        ...

    def remove(self, blob: str, chunk: int) -> None:
        """Forgets a chunk."""
        ...


@dataclass(frozen=True, slots=True)
class Blob:
    """One link of the chain. `upto`: the newest changelog that its content includes, itself for a changelog.

    `lengths` are the bytes of its chunks, `checksums` their CRC-32. The chunks of a snapshot are changelogs of their
    own, so that it is restored piece by piece; those of a changelog are pieces of one.
    """

    name: str
    kind: str
    upto: str
    lengths: tuple[int, ...]
    checksums: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of all chunks."""
        return sum(self.lengths)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The chain, oldest first: at most one snapshot, in front, then changelogs."""

    blobs: tuple[Blob, ...] = ()

    @property
    def newest(self) -> str:
        """What the local store's stamp is when it holds everything; empty for no state."""
        return self.blobs[-1].upto if self.blobs else ""

    @property
    def size(self) -> int:
        """Bytes of all blobs."""
        return sum(blob.size for blob in self.blobs)

    def dump(self) -> str:
        """The manifest as JSON, with a checksum of the chain."""
        found = [[b.name, b.kind, b.upto, list(b.lengths), list(b.checksums)] for b in self.blobs]
        return _json({"format": MANIFEST_FORMAT, "check": zlib.crc32(_json(found).encode()), "blobs": found})

    @classmethod
    def load(cls, text: str | None) -> Manifest:
        """The manifest in `text` (None: an empty one). Raises StateError for another format version or damage."""
        if text is None:
            return cls()
        if len(text) > MAX_MANIFEST:
            raise StateError(f"the manifest of a partition's state is damaged: longer than {MAX_MANIFEST} characters")
        try:
            data = json.loads(text)
            if data["format"] != MANIFEST_FORMAT:
                raise StateError(
                    f"the state has format version {str(data['format'])[:40]}, this vsc reads {MANIFEST_FORMAT}",
                    "run it with the version of vsc that wrote it",
                )
            if zlib.crc32(_json(data["blobs"]).encode()) != data["check"]:
                raise ValueError("its checksum is wrong")
            return cls(tuple(_blob(*link) for link in data["blobs"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(f"the manifest of a partition's state is damaged: {str(error)[:200]}") from error

    def tail(self, stamp: str | None) -> tuple[Blob, ...] | None:
        """The blobs to apply on a local store with that stamp; None if it is not a prefix of this chain."""
        if stamp == "":
            return self.blobs
        for i, blob in enumerate(self.blobs):
            if blob.upto == stamp:
                return self.blobs[i + 1 :]
        return None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _blob(name: object, kind: object, upto: object, lengths: list[int], checksums: list[int]) -> Blob:
    numbers = [*lengths, *checksums]
    if not (isinstance(name, str) and isinstance(upto, str) and isinstance(kind, str) and kind in KINDS):
        raise ValueError("a blob is not described as one")
    if len(lengths) != len(checksums):
        raise ValueError("a blob is not described as one")
    if any(type(n) is not int or not 0 <= n < 1 << 32 for n in numbers):
        raise ValueError("a length or a checksum is not valid")
    return Blob(name, kind, upto, tuple(lengths), tuple(checksums))


class PartitionState:
    """The state of one (stage, partition) during one call: `kv` is what stores read and write.

    `below` is what `kv` stands on: the local store, or, once the call has spilled, a scratch copy of it.
    """

    def __init__(self, blobs: BlobStore, base: LowerKV, manifest: Manifest) -> None:
        self._blobs = blobs
        self._base = base
        self._manifest = manifest
        self._spilled: tuple[Blob, ...] = ()
        self.below: OrderedKV = base
        self.kv = OverlayKV(base)

    @classmethod
    def fits(cls, base: OrderedKV, manifest: Manifest) -> bool:
        """Whether `base` is a prefix of the chain, so that `open` may go on from it. An empty store always is."""
        return manifest.tail(_stamp(base)) is not None

    @classmethod
    def open(cls, blobs: BlobStore, base: LowerKV, manifest: Manifest) -> PartitionState:
        """Brings `base`, a prefix of the chain, to its end. StateError, with the blob's name, if one is damaged."""
        replay(blobs.get, base, manifest)
        return cls(blobs, base, manifest)

    @property
    def outgrown(self) -> bool:
        """Whether the call has written so much that it should be spilled before it goes on."""
        return self.kv.size > SPILL_BYTES

    def spill(self, call: str) -> None:
        """Moves what the call (`call_name`) has written since it began, or since the last time, out of memory.

        It becomes a blob of the call's changelogs, which `commit` adds to the chain, and goes to a scratch copy of the
        local store, which stays as it was. No scan of `kv` may be under way.
        """
        self._spilled = (*self._spilled, self._changelog(call, self.kv.changelog()))
        if self.below is self._base:
            self.below = self._base.scratch()
        self.kv.settle(self.below)

    def commit(self, call: str) -> Manifest:
        """Writes the changelog of this call (`call_name`), or the rest of it, as a blob, and the manifest.

        Folds the chain into a snapshot first, when the changelogs have grown beyond what they change. Returns the
        manifest; the local store stays as it was.
        """
        changelog = self.kv.changelog()
        chain = (*self._folded(call), *self._spilled)
        if changelog != encode_changelog([], [], []):
            chain = (*chain, self._changelog(call, changelog))
        if chain != self._manifest.blobs:
            self._manifest = Manifest(chain)
            self._blobs.set_manifest(self._manifest.dump())
        return self._manifest

    def _changelog(self, call: str, changelog: bytes) -> Blob:
        before = self._spilled[-1].name if self._spilled else self._manifest.newest
        name = blob_name(call, before, changelog)
        chunks = (changelog[i : i + CHUNK_BYTES] for i in range(0, len(changelog), CHUNK_BYTES))
        return self._written(name, "changelog", name, chunks)

    def _folded(self, call: str) -> tuple[Blob, ...]:
        """The chain, or, when its changelogs outweigh its snapshot, a new snapshot of the base alone."""
        chain = self._manifest.blobs
        snapshot = sum(b.size for b in chain if b.kind == "snapshot")
        if self._manifest.size - snapshot <= max(FOLD_BYTES, snapshot):
            return chain
        newest = self._manifest.newest
        name = f"{blob_name(call, newest, b'')}.snapshot"
        folded = self._written(name, "snapshot", newest, snapshot_chunks(self._base))
        for blob in chain:
            for i in range(len(blob.lengths)):
                self._blobs.remove(blob.name, i)
        return (folded,)

    def _written(self, name: str, kind: str, upto: str, chunks: Iterable[bytes]) -> Blob:
        lengths, checksums = [], []
        for i, chunk in enumerate(chunks):
            self._blobs.put(name, i, chunk)
            lengths.append(len(chunk))
            checksums.append(zlib.crc32(chunk))
        return Blob(name, kind, upto, tuple(lengths), tuple(checksums))


def _stamp(base: OrderedKV) -> str | None:
    """The stamp of a local store; empty for a store without rows, None for one that has rows but no stamp."""
    found = base.get(STAMP_KEY)
    if found is not None:
        return found.decode()
    return "" if next(iter(base.scan(b"", None)), None) is None else None


def replay(get: GetChunk, base: LowerKV, manifest: Manifest) -> None:
    """`PartitionState.open`, for a store that is only read: `get` is asked for each chunk once, in order."""
    for blob in manifest.tail(_stamp(base)) or ():
        for piece in _pieces(get, blob):
            try:
                apply_changelog(base, piece)
            except StateError as error:
                raise StateError(f"blob {blob.name!r} of the state is damaged: {error.message}") from error
        base.write([(STAMP_KEY, blob.upto.encode())])


def _pieces(get: GetChunk, blob: Blob) -> Iterator[bytes]:
    """What `apply_changelog` takes, in order: the chunks of a snapshot, or a changelog put together."""
    chunks = (_checked(get, blob, i) for i in range(len(blob.lengths)))
    if blob.kind == "snapshot":
        yield from chunks
    else:
        yield b"".join(chunks)


def _checked(get: GetChunk, blob: Blob, i: int) -> bytes:
    data = get(blob.name, i)
    if data is None:
        raise StateError(f"blob {blob.name!r} of the state is missing (chunk {i})", "restore the checkpoint's folder")
    if len(data) != blob.lengths[i] or zlib.crc32(data) != blob.checksums[i]:
        raise StateError(f"blob {blob.name!r} of the state is damaged (chunk {i})", "restore the checkpoint's folder")
    return data


def snapshot_chunks(base: OrderedKV) -> Iterator[bytes]:
    """All rows of `base` but the stamp, as changelogs of about `CHUNK_BYTES`."""
    rows: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in base.scan(b"", None):
        if key == STAMP_KEY:
            continue
        rows.append((key, value))
        size += len(key) + len(value) + 16
        if size >= CHUNK_BYTES:
            yield encode_changelog([], [], rows)
            rows, size = [], 0
    if rows:
        yield encode_changelog([], [], rows)
