"""Foreign-key joins (KIP-213): what a left change sends to the right table's partition, and when that exists.

The rules are those of Kafka Streams 4.3.1 (including KAFKA-16394, 16407, 16434 and 18713): a left change gives at most
one result. The left row travels with its subscription, so the right table's partition can compute results alone.

Subscriptions in one batch are only arrays of numbers. A *pair* is a foreign key and a left key that refers to it. Times
are arrivals: places in the order of processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Answer, Node, Plan
from vsc.plan.types import DataType, DecimalType, ScalarType, StructType
from vsc.runtime.operators.columns.flow import stacked, taken
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["UNCHANGED", "Instruction", "LeftKeys", "Operations", "answered", "no_key", "travelling", "voided"]


class Instruction(IntEnum):
    """What the right table's partition does with a subscription."""

    DELETE = 0
    """Forget it."""
    DELETE_AND_ANSWER = 1
    """Forget it, and answer without a result."""
    KEEP_IF_VALUE = 2
    """Keep it, and answer if the right row exists."""
    KEEP = 3
    """Keep it, and always answer: with the right row, or without it as the join's kind says."""
    ALONE = 4
    """The left row refers to nothing: answer with it alone, and keep nothing."""
    GONE = 5
    """The left row is gone and referred to nothing: answer without a result, and keep nothing."""


UNCHANGED = 8
"""Added to an instruction if the left row has not changed: answers on their way to it stay valid."""


def travelling(plan: Plan, node: Node) -> tuple[int, ...]:
    """The places of the left table's value columns that travel with the subscriptions that `node` sends.

    The step that reads the subscriptions has them too, perhaps under other names.
    """
    table = plan.node(node.inputs[0]).schema
    reading = next(n.operation for n in plan.nodes if node.name in n.inputs and isinstance(n.operation, Answer))
    names = [c.name for c in table.value]
    return tuple(names.index(c.name) for c in reading.left_schema.value)


def no_key(types: tuple[DataType, ...]) -> Row:
    """A key for records that have and need no key, but must be in some partition."""
    return tuple(_nothing(t) for t in types)


def _nothing(data_type: DataType) -> object:
    if isinstance(data_type, StructType):
        return tuple(None for _ in data_type.fields)
    if isinstance(data_type, DecimalType):
        return Decimal(0).scaleb(-data_type.scale)
    assert isinstance(data_type, ScalarType)
    return {"string": "", "binary": b"", "boolean": False}.get(data_type.name, 0)


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
    # Only a source record with several events can void anything: mostly there is none, and nothing is sorted.
    several = np.bincount(roots)[roots] > 1
    asked, changes = np.flatnonzero(several[event]), np.flatnonzero(several[changed_event])
    if not len(asked) or not len(changes):
        return None
    changes = changes[np.argsort(arrival[changed_event[changes]], kind="stable")]
    # (source record, pair) as one number. The sort is stable and changes are in the order of processing: the last
    # change of a number is the latest, and if one comes after the answer, that one does.
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
