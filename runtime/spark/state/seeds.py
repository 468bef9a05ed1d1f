"""Seeds: the state with which a query begins that goes on from another one's (`vsc upgrade`).

They come with the first epoch, as lines ``seed STAGE PARTITION BASE64`` of the control source: each a changelog of some
rows, for one stage and partition. Guarantees: no key is in two seeds of a partition, so their order does not matter;
what a call has taken becomes the snapshot at the beginning of its chain (`protocol`), chunk by chunk
as it comes, and Spark rolls it back with the call.
"""

from __future__ import annotations

import base64
import binascii
import uuid
import zlib
from collections.abc import Iterable, Iterator

from vsc.runtime.errors import StateError
from vsc.runtime.spark.exchange.wire import BLOB_BYTES, WireRow
from vsc.runtime.spark.state.protocol import Blob, BlobStore, Manifest
from vsc.runtime.state.changelog import encode_changelog

__all__ = ["SEED", "Seeds", "packed", "seed_line", "seed_row"]

SEED = "#seed"
"""The port of seeds. No node's: names have no such letter."""

_WORD = b"seed "
_Row = tuple[int, int, bytes, bytes]


def packed(rows: Iterable[_Row], most: int = BLOB_BYTES) -> Iterator[tuple[int, int, int, bytes]]:
    """Rows (stage, partition, key, value) as chunks of about `most` bytes: stage, partition, number of rows, chunk."""
    held: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}
    sizes: dict[tuple[int, int], int] = {}
    for stage, partition, key, value in rows:
        place = stage, partition
        held.setdefault(place, []).append((key, value))
        sizes[place] = sizes.get(place, 0) + len(key) + len(value)
        if sizes[place] >= most:
            yield (*place, len(held[place]), encode_changelog([], [], held.pop(place)))
            sizes[place] = 0
    for place, some in held.items():
        yield (*place, len(some), encode_changelog([], [], some))


def seed_line(stage: int, partition: int, chunk: bytes) -> str:
    """The line of the control source that carries a chunk."""
    return f"{_WORD.decode()}{stage} {partition} {base64.b64encode(chunk).decode()}"


def seed_row(line: bytes) -> WireRow | None:
    """The row that a line of the control source stands for; None if it carries no chunk. StateError for damage."""
    if not line.startswith(_WORD):
        return None
    try:
        stage, partition, text = line[len(_WORD) :].split(b" ")
        return WireRow(int(stage), SEED, int(partition), base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error) as error:
        raise StateError("a seed of the state is damaged", "repeat the upgrade into another folder") from error


class Seeds:
    """The seeds that one attempt at `call` takes into the state that it is about to open.

    The name of their blob is the attempt's own: their chunks are numbered as they come, in no order of their own.
    """

    def __init__(self, blobs: BlobStore, call: str) -> None:
        self._blobs, self._name = blobs, f"{call}-{uuid.uuid4().hex}.seed"
        self._lengths: list[int] = []
        self._checksums: list[int] = []

    def take(self, chunk: bytes) -> None:
        """Stores a chunk. Raises StateError if the state has begun before."""
        if not self._lengths and self._blobs.manifest() is not None:
            raise StateError("a seed of the state has come, but the state has begun already")
        self._blobs.put(self._name, len(self._lengths), chunk)
        self._lengths.append(len(chunk))
        self._checksums.append(zlib.crc32(chunk))

    @property
    def taken(self) -> bool:
        """Whether there were any."""
        return bool(self._lengths)

    def settle(self) -> None:
        """Makes what was taken the beginning of the chain."""
        if self._lengths:
            blob = Blob(self._name, "snapshot", self._name, tuple(self._lengths), tuple(self._checksums))
            self._blobs.set_manifest(Manifest((blob,)).dump())
