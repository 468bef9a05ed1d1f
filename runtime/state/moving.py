"""How the rows of a store move: to another prefix, to other partitions, to wider columns.

Each kind of store says it of its own rows, in its own module, by a `Moving`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["META", "Moving", "Recode", "behind", "same"]

META: Final = b"m"
"""The letter of the one row of a store that belongs to no key."""

Recode = Callable[[bytes], bytes]
"""Makes the bytes of a row of the new columns of one of the old columns."""

Counts = tuple[int, ...]


def _all(meta: bytes | None, letter: bytes, rest: bytes) -> bool:
    return True


def same(metas: Sequence[bytes], counts: Counts) -> bytes:
    """`merged` of a store whose meta row says what kind of store it is, and nothing else."""
    return metas[0]


def behind(length: int) -> Callable[[bytes], bytes]:
    """The record key is what follows so many bytes."""
    return lambda rest: rest[length:]


@dataclass(frozen=True, slots=True)
class Moving:
    """The rows of one kind of store. What follows the store's root in a row's key is a letter and the rest.

    `keys`: for each letter, what finds in the rest the record key, behind which more may follow. `recoded`: the value
    of a row under a letter, with the rows in it recoded; None where its rows cannot get other columns.
    `merged`: the meta row of what several partitions' stores become together, of their meta rows, and the sums of what
    is `counted` of the rows: by their partition's meta row, letter, rest and value. `stays`: whether a row is taken
    along when partitions become one, by the meta row, letter and rest. There
    may be rows without a meta row.
    """

    keys: Mapping[bytes, Callable[[bytes], bytes]]
    recoded: Callable[[bytes, bytes, Recode], bytes] | None
    merged: Callable[[Sequence[bytes], Counts], bytes] = same
    counted: Callable[[bytes | None, bytes, bytes, bytes], Counts] | None = None
    stays: Callable[[bytes | None, bytes, bytes], bool] = _all
