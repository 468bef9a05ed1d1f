"""When each subscription of a foreign-key join exists within one batch: only arrays of numbers.

A *pair* is a foreign key and a left key that refers to it. Times are arrivals: places in the order of processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import stacked, taken
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["LeftKeys", "Operations", "answered", "voided"]


class LeftKeys:
    """The left keys of a batch: those of its subscriptions (`columns`, one row each), and stored ones (`stored`)."""

    __slots__ = ("_codec", "_columns", "_fresh", "encoded", "of_stored", "of_subscriptions")

    def __init__(self, codec: KeyCodec, columns: Sequence[pa.Array], stored: Sequence[bytes]) -> None:
        self._codec, self._columns = codec, columns
        self.encoded, self.of_subscriptions = codec.encode_columns(columns)
        self._fresh = len(self.encoded)
        numbers = {key: number for number, key in enumerate(self.encoded)}
        found = [numbers.setdefault(key, len(numbers)) for key in stored]
        self.encoded = list(numbers)
        self.of_stored: Int64s = np.array(found, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.encoded)

    def split(self, pair: Int64s) -> tuple[Int64s, Int64s]:
        """The foreign keys' numbers and the left keys' numbers of pairs."""
        foreign, left = np.divmod(pair, max(len(self), 1))
        return foreign, left

    def columns(self, numbers: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of the keys with these numbers."""
        first = np.zeros(self._fresh, dtype=np.int64)
        first[self.of_subscriptions[::-1]] = np.arange(len(self.of_subscriptions))[::-1]
        fresh = taken(self._columns, first)
        stored = self._codec.decode_columns(self.encoded[self._fresh :])
        return taken(stacked(fresh, stored), numbers)


@dataclass(frozen=True, slots=True)
class Operations:
    """What a batch does to pairs, in the order of arrival: `put` writes the subscription, otherwise it is removed.

    `row` is the place of the operation among the batch's subscriptions.
    """

    pair: Int64s
    arrival: Int64s
    row: Int64s
    put: Mask

    def last(self) -> Int64s:
        """The last operation of each pair."""
        order = np.argsort(self.pair, kind="stable")
        pairs = self.pair[order]
        return order[np.append(pairs[1:] != pairs[:-1], True)] if len(order) else order

    def spans(self, stored: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """The spans in which subscriptions exist: after which arrival, before which arrival, the pair, its number.

        `stored` are the pairs that exist before the batch. They come first in the numbering, then the operations.
        """
        pair = np.concatenate([stored, self.pair])
        begin = np.concatenate([np.full(len(stored), -1, dtype=np.int64), self.arrival])
        put = np.concatenate([np.ones(len(stored), dtype=np.bool_), self.put])
        order = np.argsort(pair, kind="stable")
        end = np.full(len(pair), np.iinfo(np.int64).max, dtype=np.int64)
        followed = np.flatnonzero(pair[order][1:] == pair[order][:-1])
        end[order[followed]] = begin[order[followed + 1]]
        there = np.flatnonzero(put)
        return begin[there], end[there], pair[there], there


def answered(
    key: Int64s, begin: Int64s, end: Int64s, change_key: Int64s, change_arrival: Int64s
) -> tuple[Int64s, Int64s]:
    """The places of spans and changes that meet: of one foreign key, with the change after `begin` and before `end`.

    Changes are in the order of their arrivals.
    """
    reach = int(change_arrival.max()) + 3 if len(change_arrival) else 3
    order = np.argsort(change_key, kind="stable")
    places = change_key[order] * reach + change_arrival[order] + 1
    low = np.searchsorted(places, key * reach + np.minimum(begin, reach - 2) + 1, side="right")
    high = np.searchsorted(places, key * reach + np.minimum(end, reach - 2) + 1, side="left")
    counts = np.maximum(high - low, 0)
    span = np.repeat(np.arange(len(key)), counts)
    within = np.arange(len(span)) - np.repeat(np.cumsum(counts) - counts, counts)
    return span, order[low[span] + within]


def voided(
    roots: Int64s, arrival: Int64s, pair: Int64s, event: Int64s, changed_pair: Int64s, changed_event: Int64s
) -> Mask | None:
    """Which answers (`pair`, `event`) are void; None: none are.

    An answer is void if the same source record causes a change of the left row after it. `roots` has the source record
    of each event, `arrival` the event's place in the order of processing.
    """
    several = np.bincount(roots)[roots] > 1
    asked, changes = np.flatnonzero(several[event]), np.flatnonzero(several[changed_event])
    if not len(asked) or not len(changes):
        return None
    changes = changes[np.argsort(arrival[changed_event[changes]], kind="stable")]
    pairs, numbers = np.unique(np.concatenate([pair[asked], changed_pair[changes]]), return_inverse=True)
    of_answers = roots[event[asked]] * len(pairs) + numbers[: len(asked)]
    of_changes = roots[changed_event[changes]] * len(pairs) + numbers[len(asked) :]
    order = np.argsort(of_changes, kind="stable")
    at = np.searchsorted(of_changes[order], of_answers, side="right") - 1
    last = order[at]
    void = np.zeros(len(pair), dtype=np.bool_)
    void[asked] = (
        (at >= 0) & (of_changes[last] == of_answers) & (arrival[changed_event[changes[last]]] > arrival[event[asked]])
    )
    return void
