"""How the rows of a store move: to another prefix, to other partitions, to wider columns.

Each kind of store has a `Moving` for its rows, in its own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["META", "Moving", "Recode", "behind", "same"]

META: Final = b"m"
"""The letter of a store's only row without a key."""

Recode = Callable[[bytes], bytes]
"""Converts the bytes of a row of the old columns to those of the new columns."""

Counts = tuple[int, ...]


def _same_letter(meta: bytes | None, letter: bytes, rest: bytes) -> bytes:
    return letter


def same(metas: Sequence[bytes], counts: Counts) -> bytes:
    """`merged` for a store whose meta row only says what kind of store it is."""
    return metas[0]


def behind(length: int) -> Callable[[bytes], bytes]:
    """The record key is what follows the first `length` bytes."""
    return lambda rest: rest[length:]


@dataclass(frozen=True, slots=True)
class Moving:
    """The rows of one kind of store. A row's key is the store's root, a letter, and the rest.

    `keys`: for each letter, a function that finds the record key in the rest; more may follow it. `recoded`: recodes
    the rows in the value of a row under a letter; None if the rows cannot get other columns. `merged`: the meta row of
    several partitions' stores merged into one, from their meta rows and the sums of what is `counted` of the rows (by
    their partition's meta row, letter, rest and value). `merged_letter`: the letter of a row from when partitions are
    merged on, by the meta row, letter and rest. `earlier`: the meta row with a stream time that is some ms earlier.
    There may be rows without a meta row.
    """

    keys: Mapping[bytes, Callable[[bytes], bytes]]
    recoded: Callable[[bytes, bytes, Recode], bytes] | None
    merged: Callable[[Sequence[bytes], Counts], bytes] = same
    counted: Callable[[bytes | None, bytes, bytes, bytes], Counts] | None = None
    merged_letter: Callable[[bytes | None, bytes, bytes], bytes] = _same_letter
    earlier: Callable[[bytes, int], bytes] | None = None
