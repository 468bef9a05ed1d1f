"""The arguments and results of versioned stores, shared by every store and its callers.

Times are integers of milliseconds since the epoch; a version is valid on ``[valid_from, valid_to)``. `versioned_layout`
has the layout of rows on disk, `rows` the meaning of a value's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.metrics import Missed as Miss

__all__ = [
    "LOOKUP_MISSES",
    "NEVER",
    "Miss",
    "OutcomeKind",
    "PutOutcome",
    "VersionedRecord",
    "Versions",
]

NEVER: Final = np.iinfo(np.int64).max
"""``valid_to`` in columns if nothing newer is known (`PutOutcome` and `VersionedRecord` have None)."""


class OutcomeKind(StrEnum):
    """The outcome of a write."""

    LATEST = "latest"
    """It is now its key's newest version."""
    SUPERSEDED = "superseded"
    """It was accepted, but its key already had a newer version."""
    EXPIRED = "expired"
    """It was refused: older than stream time minus grace."""


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """The outcome of one write (KIP-889's return value of `put`, without its magic numbers).

    `valid_to` is the timestamp of the next newer version for a superseded write, otherwise None.
    """

    kind: OutcomeKind
    valid_to: int | None = None


@dataclass(frozen=True, slots=True)
class VersionedRecord:
    """One live version of a key, valid on ``[valid_from, valid_to)``; `valid_to` None: nothing newer is known."""

    value: bytes
    valid_from: int
    valid_to: int | None

    def __post_init__(self) -> None:
        """Raises TypeError without a value: a tombstone is not a record, as in KIP-889."""
        if self.value is None:
            raise TypeError("the value of a version is bytes, not None: a tombstone is not a record")


LOOKUP_MISSES: Final = (None, Miss.NO_RECORD, Miss.TOMBSTONE, Miss.OLDER_THAN_RETENTION, Miss.TOO_OLD)
"""Why look-ups missed, by the numbers that stand for it in columns; 0: found."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of many keys as columns, sorted by (key, valid_from).

    `key` is int64[m], an index into the requested keys; `valid_from` and `valid_to` are int64[m] (`NEVER`
    for a key's newest); `values` has m elements, null for a tombstone.
    """

    key: npt.NDArray[np.int64]
    valid_from: npt.NDArray[np.int64]
    valid_to: npt.NDArray[np.int64]
    values: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.key)
