"""Foreign-key joins whose history is complete: both the key and the row on either side change with time.

The right table's partition keeps the history of each subscription: as of which times a left row refers to a key, and
with which values. A subscription that is valid on an interval is answered with each version of the right row in it; a
change of the right row is answered for each part of its interval in which a left row refers to it. Answers say on which
interval they are valid; where the left table is, they become what the join's table sends (`pieces`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Answer, Node
from vsc.plan.types import BIGINT
from vsc.runtime.expressions import true_rows
from vsc.runtime.operators.columns.evaluation import Evaluation, Side
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace, ranks
from vsc.runtime.operators.columns.moments import Moments, processing, turns
from vsc.runtime.operators.complete.intervals import cut, divided
from vsc.runtime.operators.complete.pieces import Pieces, sent
from vsc.runtime.operators.foreign_key_join import UNCHANGED, Instruction
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Entry
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.versioned import VersionedStore
from vsc.runtime.state.versioned_columns import spread

__all__ = ["CompleteAnswer", "CompleteAnswers", "Subscriptions"]

_KEPT = (Instruction.KEEP, Instruction.KEEP_IF_VALUE)
_REMOVED = (Instruction.DELETE, Instruction.DELETE_AND_ANSWER)
_CARRIED = 3
"""The columns behind a left row that its subscription carries: `SPAN` and the instruction."""


def _store(kv: OrderedKV, prefix: bytes, retention: int, clock: int | None) -> VersionedStore:
    return VersionedStore(kv, prefix, retention, None, retention, True, clock)


def _codec(operation: Answer) -> RowCodec:
    """A subscription: the left row, and since when it is valid, which may be before it is kept."""
    return RowCodec([*(column.type for column in operation.left_schema.value), BIGINT])


def _retention(node: Node) -> int:
    assert node.store is not None and node.store.retention is not None
    return node.store.retention


@dataclass(frozen=True, slots=True)
class _Parts:
    """Answers: the number of the event, the left key's columns and row with the time since when it is valid, the right
    row with its time, where it is `absent`, whether there can be a result, and on which interval."""

    event: Int64s
    keys: tuple[pa.Array, ...]
    left: tuple[pa.Array, ...]
    since: Int64s
    right: tuple[pa.Array, ...]
    right_time: Int64s
    absent: Mask
    there: Mask
    time: Int64s
    until: Int64s
    ends: Mask

    @staticmethod
    def concat(one: _Parts, other: _Parts) -> _Parts:
        found: list[Any] = []
        for name in _Parts.__slots__:
            a, b = getattr(one, name), getattr(other, name)
            found.append(stacked(a, b) if isinstance(a, tuple) else np.concatenate([a, b]))
        return _Parts(*found)


class CompleteAnswer(Step):
    """Answers in the right table's partition."""

    def __init__(self, site: Site, operation: Answer) -> None:
        self._site, self._operation = site, operation
        left, right = operation.left_schema, site.inputs[1]
        self._width, self._left_codec = len(left.key), KeyCodec([c.type for c in left.key])
        self._items = Evaluation(site.name, operation.items, [left, right])
        self._retention = _retention(site.plan.node(site.name))
        clock = site.batch.clock
        store = _store(site.kv, site.prefix, self._retention, None if clock is None else clock.horizon(site.node.name))
        self._store, self._pairs = store, KeySpace(self._left_codec)
        self._kept = VersionedColumns(store, _codec(operation), self._pairs)

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """All answers, in order."""
        none = (Flow.empty(schema, self._site.spaces.of(self._site.inputs[1])) for schema in self._site.inputs)
        subscriptions, changes = (flow or empty for flow, empty in zip(feeding, none, strict=True))
        subscriptions, since = self._cut(replace(subscriptions, until=subscriptions.values[-_CARRIED].to_numpy()))
        changes, right_since = self._cut(replace(changes, until=changes.time) if changes.until is None else changes)
        instruction = subscriptions.values[-1].to_numpy() & ~UNCHANGED
        pair = self._subscribe(subscriptions, since, instruction)
        parts = _Parts.concat(
            self._to_subscriptions(subscriptions, since, instruction),
            self._to_changes(
                changes, right_since, self._referring(changes, subscriptions.key, pair), len(subscriptions)
            ),
        )
        return self._answers(Moments.concat([subscriptions.at, changes.at]), parts)

    def commit(self) -> None:
        """Writes the subscriptions."""
        self._kept.commit()

    def _cut(self, flow: Flow) -> tuple[Flow, Int64s]:
        """The records, from the earliest time on that the join's table still keeps; and since when they are valid."""
        earliest = self._site.moving(flow) - self._retention
        assert flow.until is not None
        kept = flow.until > earliest
        flow = flow.select(kept)
        return cut(flow, earliest[kept]), flow.time

    def _subscribe(self, flow: Flow, since: Int64s, instruction: Int64s) -> Int64s:
        """Puts subscriptions: a row from its time on, until it ends; returns the number of the pair of each."""
        encoded, number = self._left_codec.encode_columns(flow.values[: self._width])
        foreign = flow.space.keys
        names = [foreign[f] + encoded[k] for f, k in zip(flow.key.tolist(), number.tolist(), strict=True)]
        pair = self._pairs.encoded(names)
        kept, removed = np.isin(instruction, _KEPT), np.isin(instruction, _REMOVED)
        ends = kept & true_rows(flow.values[-2])
        begin, end = np.flatnonzero(kept | removed), np.flatnonzero(ends)
        rows = np.concatenate([begin, end])
        order = np.argsort(rows, kind="stable")
        present = np.concatenate([kept[begin], np.zeros(len(end), dtype=np.bool_)])[order]
        assert flow.until is not None
        time = np.concatenate([flow.time[begin], flow.until[end]])[order]
        rows = rows[order]
        values = taken((*self._rows(flow), pa.array(since)), np.where(present, rows, -1))
        puts = Flow(flow.at.take(rows), pair[rows], self._pairs, time, present, (), values)
        self._kept.put(puts, self._site.moving(puts))
        return pair

    def _rows(self, flow: Flow) -> tuple[pa.Array, ...]:
        """The left rows that subscriptions carry."""
        return flow.values[self._width : -_CARRIED]

    def _to_subscriptions(self, flow: Flow, since: Int64s, instruction: Int64s) -> _Parts:
        site, right = self._site, self._site.node.inputs[1]
        looks = np.flatnonzero(np.isin(instruction, _KEPT))
        asking = flow.take(looks)
        row, asked, last = divided(asking, *site.version_times(right)(asking))
        found = site.look_up(right, as_of=True)(asked)
        site.kept(asked, found.failed)  # counts; a row that cannot be computed counts as missing
        plain = np.flatnonzero(
            np.isin(instruction, (Instruction.ALONE, Instruction.GONE, Instruction.DELETE_AND_ANSWER))
        )
        event = np.concatenate([looks[row], plain])
        more = np.zeros(len(plain), dtype=np.bool_)
        assert flow.until is not None and asked.until is not None
        values = stacked((*asked.keys, *found.values), taken((*flow.keys, *self._empty(len(flow))), plain * 0 - 1))
        alone = instruction[plain] == Instruction.ALONE
        return _Parts(
            event, taken(flow.values[: self._width], event), taken(self._rows(flow), event), since[event],
            values, np.concatenate([found.time, flow.time[plain]]), np.concatenate([~found.present, ~more]),
            np.concatenate([found.present | self._operation.left, alone]),
            np.concatenate([asked.time, flow.time[plain]]), np.concatenate([asked.until, flow.until[plain]]),
            np.concatenate([last, ~more]),
        )  # fmt: skip

    def _empty(self, rows: int) -> list[pa.Array]:
        """Right rows that are not there."""
        right = self._site.inputs[1]
        none = Flow.empty(right, self._site.spaces.of(right)).values
        return [pa.nulls(rows, column.type) for column in none]

    def _to_changes(self, changes: Flow, since: Int64s, referring: tuple[Int64s, Int64s], first: int) -> _Parts:
        """Answers to changes of the right table, valid `since` then; events are numbered from `first` on."""
        change, which = referring
        asking = replace(changes.take(change), key=which, space=self._pairs, keys=(), values=())
        row, asked, last = divided(asking, *self._kept.between(asking))
        found = self._kept.look_up(asked, True, self._site.limit(asked))
        there = np.flatnonzero(found.present)
        follows = np.append(found.present[1:], False)[: len(row)] & ~last
        assert asked.until is not None
        event = change[row[there]]
        present = changes.present[event]
        values = taken(found.values, there)
        names = [self._pairs.keys[number] for number in asked.key[there].tolist()]
        lengths = [len(changes.space.keys[number]) for number in changes.key[event].tolist()]
        keys = self._left_codec.decode_columns([name[n:] for name, n in zip(names, lengths, strict=True)])
        return _Parts(
            event + first, tuple(keys), values[:-1], values[-1].to_numpy(), taken(changes.columns, event),
            since[event], ~present, present | self._operation.left, asked.time[there], asked.until[there],
            ~follows[there],
        )  # fmt: skip

    def _referring(self, changes: Flow, foreign: Int64s, pair: Int64s) -> tuple[Int64s, Int64s]:
        """The changes of the right table, each with the pairs of its key, of the store and of the batch."""
        numbers = np.unique(changes.key)
        keys = [changes.space.keys[number] for number in numbers.tolist()]
        stored = [list(self._store.keys(key, prefix_end(key))) for key in keys]
        known = self._pairs.encoded([name for names in stored for name in names])
        of_batch = np.isin(foreign, numbers)
        of_stored = np.repeat(numbers, [len(names) for names in stored])
        key, which = (np.concatenate(c) for c in ((of_stored, foreign[of_batch]), (known, pair[of_batch])))
        key, which = np.divmod(np.unique(key * len(self._pairs.keys) + which), max(len(self._pairs.keys), 1))
        begin, end = np.searchsorted(key, changes.key), np.searchsorted(key, changes.key, side="right")
        counts = end - begin
        change = np.repeat(np.arange(len(changes), dtype=np.int64), counts)
        return change, which[spread(begin, counts)]

    def _answers(self, events: Moments, parts: _Parts) -> Flow:
        ours, theirs = self._items.wanted
        left = [(*parts.keys, *parts.left)[i] for i in ours]
        found = self._items.run(
            Side(left, parts.since),
            Side([parts.right[i] for i in theirs], parts.right_time, parts.absent if parts.absent.any() else None),
            asked=parts.there,
        )
        there = parts.there.copy()
        place = np.empty(len(events), dtype=np.int64)
        place[processing(events)] = np.arange(len(events))
        encoded, number = self._left_codec.encode_columns(parts.keys)
        rank = ranks(pa.array(encoded, pa.binary()))[number] if len(encoded) else number
        order = np.lexsort((parts.time, rank, place[parts.event]))
        event = parts.event[order]
        at = self._site.give(events.take(event), turns(event))
        if found.failed:
            space = KeySpace(self._left_codec)
            whole = Flow(events.take(parts.event), number, space, parts.time, ~there | there, parts.keys, parts.left)
            self._site.kept(whole, found.failed, self._operation.left_schema)
            there[list(found.failed)] = False
        values = (*found.columns, pa.array(there), pa.array(parts.until), pa.array(parts.ends))
        none = np.ones(len(order), dtype=np.bool_)
        space = KeySpace(self._left_codec)
        return Flow(at, number[order], space, parts.time[order], none, taken(parts.keys, order), taken(values, order))


class CompleteAnswers(Step):
    """The join's table, in the left table's partition: what it sends for the answers."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def process(self, flow: Flow) -> Flow:
        """The changes of the table."""
        *values, there, until, ends = flow.values
        present: Mask = there.to_numpy(zero_copy_only=False)
        pieces = Pieces(
            np.arange(len(flow)), flow.key, flow.time, until.to_numpy(), ends.to_numpy(zero_copy_only=False), present,
            flow.keys, tuple(values),
        )  # fmt: skip
        return sent(self._site, flow.at, flow.space, pieces)


class Subscriptions:
    """A view of the left rows that refer to a key of the right table at present."""

    stream_time, held = None, 0

    def __init__(self, node: Node, operation: Answer, info: StoreInfo, kv: OrderedKV) -> None:
        width = len(operation.left_schema.key)
        self._kv, self._prefix = kv, info.prefix
        self._foreign = KeyCodec([c.type for c in info.key])
        self._left = KeyCodec([c.type for c in info.value[:width]])
        self._codec = _codec(operation)

    def rows(self) -> int:
        """How many there are."""
        return sum(1 for _ in self._found(b"", None))

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested ones."""
        low = question.key or question.low
        for both, row, time in self._found(low, prefix_end(question.key) if question.key else question.high):
            foreign, size = self._foreign.decode_first(both)
            if question.wants(both[:size]):
                *values, _ = self._codec.decode(row)
                yield Entry(Status.ROW, both[:size], foreign, self._left.decode(both[size:]) + tuple(values), (time,))

    def _found(self, low: bytes, high: bytes | None) -> Iterator[tuple[bytes, bytes, int]]:
        store = VersionedStore(self._kv, self._prefix, 0, None, 0, True)
        for key in store.keys(low, high):
            newest = store.get(key)
            if newest is not None:
                yield key, newest.value, newest.valid_from
