"""What a task writes in an epoch, in a few bytes: how many records, and a check sum of them in their order.

Guarantees: the same records give the same ledger, however they are cut into batches.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Ledger"]

_NULL = -1
"""The length of a key or a value that is null."""


@dataclass(slots=True)
class Ledger:
    """How many records an epoch has for a task, and a check sum of each of the streams of bytes that they are made of:
    keys, their lengths, values, their lengths, times, headers."""

    records: int = 0
    checks: list[int] = field(default_factory=lambda: [0] * 6)

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in records: key and value (binary), time in ms and, if there are any, headers."""
        parts = [*_bytes(batch.column(0)), *_bytes(batch.column(1)), batch.column(2).to_numpy()]
        parts.append(b"" if batch.num_columns == 3 else b"".join(_headers(batch.column(3), self.records)))
        self.checks = [zlib.crc32(part, check) for part, check in zip(parts, self.checks, strict=True)]
        self.records += batch.num_rows

    def __str__(self) -> str:
        checks = hashlib.blake2b(struct.pack("<6I", *self.checks), digest_size=8)
        return f"{self.records}:{checks.hexdigest()}"


def _bytes(column: pa.Array) -> tuple[memoryview, np.ndarray]:
    """The bytes of a binary column, one value after the other, and their lengths."""
    lengths = pc.fill_null(pc.binary_length(column), _NULL).to_numpy(zero_copy_only=False)
    filled = column.drop_null().cast(pa.binary())
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1] if len(filled) else (0, 0)
    return memoryview(data or b"")[int(ends[0]) : int(ends[-1])], lengths


def _headers(column: pa.Array, first: int) -> Iterator[bytes]:
    for place, headers in enumerate(column.to_pylist(), first):
        if headers:
            yield repr((place, [(one["key"], one["value"]) for one in headers])).encode()
