"""Second step of a foreign-key join on whole columns: answers subscriptions and the right table's changes.

`tests/oracle/records` has the same for one record. `commit` writes each subscription once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Answer, Column, Node, Plan
from vsc.plan.types import BIGINT
from vsc.runtime.operators.columns.evaluation import Computed, Evaluation, Side
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace, ranks
from vsc.runtime.operators.columns.moments import Moments, arrivals, turns
from vsc.runtime.operators.complete.answers import CompleteAnswer, Subscriptions
from vsc.runtime.operators.foreign_key_join import UNCHANGED, Instruction, LeftKeys, Operations, answered, voided
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import TableRows
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, StoreView
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.moving import Moving
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import SubscriptionStore
from vsc.runtime.state.versioned_layout import MOVING as VERSIONED

__all__ = ["OPERATOR"]

_PUTS = (Instruction.KEEP, Instruction.KEEP_IF_VALUE)
_DELETES = (Instruction.DELETE, Instruction.DELETE_AND_ANSWER)
_LOOKS = (*_PUTS, Instruction.DELETE_AND_ANSWER)
_ANSWERED = (Instruction.DELETE_AND_ANSWER, Instruction.GONE, Instruction.ALONE, Instruction.KEEP)
_WITH_VALUE = (*_PUTS, Instruction.ALONE)


@dataclass(frozen=True, slots=True)
class _Lefts:
    """The left rows that a batch can answer: of stored subscriptions, then of the batch itself."""

    keys: LeftKeys
    stored_pair: Int64s
    pair: Int64s
    time: Int64s
    pool: Pool


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers: the events that they answer, pairs, places of the left and right rows (-1: none), times, and which
    answers have a result."""

    event: Int64s
    pair: Int64s
    left: Int64s
    right: Int64s
    time: Int64s
    value: Mask

    def take(self, rows: Int64s) -> _Answers:
        return _Answers(
            self.event[rows], self.pair[rows], self.left[rows], self.right[rows], self.time[rows], self.value[rows]
        )

    @staticmethod
    def concat(one: _Answers, other: _Answers) -> _Answers:
        parts = ((getattr(one, name), getattr(other, name)) for name in _Answers.__slots__)
        return _Answers(*(np.concatenate(pair) for pair in parts))


class _Answer(Step):
    def __init__(self, site: Site, operation: Answer) -> None:
        self._site, self._operation = site, operation
        self._look_up, self._store = site.look_up(site.node.inputs[1]), SubscriptionStore(site.kv, site.prefix)
        left, right = operation.left_schema, site.inputs[1]
        self._left_codec = KeyCodec([c.type for c in left.key])
        self._codec = RowCodec([c.type for c in left.value])
        self._left_width = len(left.key)
        self._items = Evaluation(site.name, operation.items, [left, right])
        self._keys: list[bytes] = []
        self._written: tuple[Flow, Operations, LeftKeys] | None = None

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """All answers, in order; those that a later change of their left row makes void are marked so."""
        none = (Flow.empty(schema, self._site.spaces.of(self._site.inputs[1])) for schema in self._site.inputs)
        subscriptions, changes = (flow or empty for flow, empty in zip(feeding, none, strict=True))
        changes = self._site.newest(changes, self._operation.versioned, port=1)
        self._keys = subscriptions.space.keys
        events = Moments.concat([subscriptions.at, changes.at])
        asked, came = arrivals(subscriptions.at, changes.at)
        numbers = subscriptions.values[-1].to_numpy()
        instruction = numbers & ~UNCHANGED
        lefts = self._lefts(subscriptions, changes)
        pair = lefts.pair
        acts = np.flatnonzero(np.isin(instruction, _PUTS + _DELETES))
        operations = Operations(pair[acts], asked[acts], acts, np.isin(instruction[acts], _PUTS))
        self._written = subscriptions, operations, lefts.keys

        looks = np.isin(instruction, _LOOKS)
        asking = subscriptions.select(looks)
        looked_up = self._look_up(asking)
        self._site.kept(asking, looked_up.failed)  # counts; a row that cannot be computed counts as missing
        answers = _Answers.concat(
            self._to_subscriptions(subscriptions, instruction, looks, looked_up, lefts),
            self._to_changes(changes, came, len(subscriptions), operations, lefts, len(looked_up.present)),
        )
        left_keys = lefts.keys
        rank, arrival = ranks(pa.array(left_keys.encoded, pa.binary())), np.concatenate([asked, came])
        answers = answers.take(np.lexsort((rank[left_keys.split(answers.pair)[1]], arrival[answers.event])))
        keys = left_keys.columns(left_keys.split(answers.pair)[1])
        # the right rows: those that the batch's subscriptions find, then its changes
        right = stacked((*asking.keys, *looked_up.values), changes.columns)
        results = self._results(answers, keys, lefts, right, np.concatenate([looked_up.time, changes.time]))
        changed = np.flatnonzero(numbers & UNCHANGED == 0)
        void = voided(self._site.batch.roots(events), arrival, answers.pair, answers.event, pair[changed], changed)
        at, space = self._site.give(events.take(answers.event), turns(answers.event)), KeySpace(self._left_codec)
        flow = Flow(at, answers.pair, space, answers.time, answers.value, keys, results.columns, void=void)
        if not results.failed:
            return flow
        there = np.ones(len(flow), dtype=np.bool_)
        subjects = flow.with_rows(there, lefts.pool.take(answers.left))  # the left rows that the answers are for
        return flow.select(self._site.kept(subjects, results.failed, self._operation.left_schema))

    def commit(self) -> None:
        """Writes the final state of the batch's pairs."""
        if self._written is None:
            return
        subscriptions, operations, left_keys = self._written
        last = operations.last()
        puts, deletes = last[operations.put[last]], last[~operations.put[last]]
        rows = operations.row[puts]
        columns = taken(subscriptions.values[self._left_width : -1], rows)
        self._store.write_columns(
            self._named(operations.pair[puts], left_keys),
            self._codec.encode_columns(columns, len(rows)),
            subscriptions.time[rows],
            self._named(operations.pair[deletes], left_keys),
        )

    def _named(self, pair: Int64s, left_keys: LeftKeys) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        """The encoded keys of pairs."""
        foreign, left = left_keys.split(pair)
        names = pa.array(self._keys, pa.binary()), pa.array(left_keys.encoded, pa.binary())
        return names[0].take(pa.array(foreign)), names[1].take(pa.array(left))

    def _lefts(self, subscriptions: Flow, changes: Flow) -> _Lefts:
        """Left rows by place, with those of the store that the batch's changes can answer."""
        foreign, stored = [], []
        for number in np.unique(changes.key).tolist():
            found = self._store.of(self._keys[number])
            foreign += [number] * len(found)
            stored += found
        width = self._left_width
        keys = LeftKeys(self._left_codec, subscriptions.values[:width], [one.left_key for one in stored])
        rows = pa.array([one.row for one in stored], pa.binary())
        stored_time = np.array([one.timestamp for one in stored], dtype=np.int64)
        return _Lefts(
            keys,
            np.array(foreign, dtype=np.int64) * len(keys) + keys.of_stored,
            subscriptions.key * len(keys) + keys.of_subscriptions,
            np.concatenate([stored_time, subscriptions.time]),
            Pool(self._codec, rows, subscriptions.values[width:-1]),
        )

    def _to_subscriptions(
        self, flow: Flow, instruction: Int64s, looks: Mask, found: TableRows, lefts: _Lefts
    ) -> _Answers:
        right = np.full(len(flow), -1, dtype=np.int64)
        right[looks] = np.where(found.present, np.arange(len(found.present)), -1)
        there = right >= 0
        time = flow.time.copy()
        time[looks] = np.where(found.present, np.maximum(time[looks], found.time), time[looks])
        value = np.isin(instruction, _WITH_VALUE) & (there | self._operation.left)
        sent = np.flatnonzero(np.isin(instruction, _ANSWERED) | ((instruction == Instruction.KEEP_IF_VALUE) & there))
        left = np.arange(len(flow)) + len(lefts.stored_pair)
        return _Answers(np.arange(len(flow)), lefts.pair, left, right, time, value).take(sent)

    def _to_changes(
        self, changes: Flow, came: Int64s, event: int, operations: Operations, lefts: _Lefts, first: int
    ) -> _Answers:
        """The answers to the right table's changes, with events numbered from `event` and rows from `first`."""
        begin, end, pair, which = operations.spans(lefts.stored_pair)
        span, change = answered(lefts.keys.split(pair)[0], begin, end, changes.key, came)
        which, stored = which[span], len(lefts.stored_pair)
        left = which.copy()
        fresh = which >= stored
        left[fresh] = stored + operations.row[which[fresh] - stored]
        present = changes.present[change]
        return _Answers(
            change + event, pair[span], left, np.where(present, change + first, -1), changes.time[change],
            present | self._operation.left,
        )  # fmt: skip

    def _results(
        self, answers: _Answers, keys: tuple[pa.Array, ...], lefts: _Lefts, right: tuple[pa.Array, ...], time: Int64s
    ) -> Computed:
        """The results of the answers, from columns of right rows and their times; null for one without a result."""
        ours, theirs = self._items.wanted
        rows = lefts.pool.take(np.where(answers.value, answers.left, -1))
        left = [keys[i] if i < self._left_width else rows[i - self._left_width] for i in ours]
        absent = answers.right < 0
        right_time = time[answers.right] if len(time) else answers.time
        return self._items.run(
            Side(left, lefts.time[answers.left]),
            Side(taken([right[i] for i in theirs], answers.right), right_time, absent if absent.any() else None),
            asked=answers.value,
        )


class _View:
    """The left rows that refer to a key of the right table."""

    stream_time, held = None, 0

    def __init__(self, node: Node, operation: Answer, info: StoreInfo, kv: OrderedKV) -> None:
        width = len(operation.left_schema.key)
        self._store = SubscriptionStore(kv, info.prefix)
        self._foreign = KeyCodec([c.type for c in info.key])
        self._left = KeyCodec([c.type for c in info.value[:width]])
        self._rows = RowCodec([c.type for c in info.value[width:]])

    def rows(self) -> int:
        return sum(1 for _ in self._store.scan())

    def answer(self, question: Question) -> Iterator[Entry]:
        for both, row, time in self._store.scan(question.key or question.low):
            foreign, size = self._foreign.decode_first(both)
            key = both[:size]
            if question.wants(key):
                value = self._left.decode(both[size:]) + self._rows.decode(row)
                yield Entry(Status.ROW, key, foreign, value, (time,))
            elif question.key is not None or (question.high is not None and key >= question.high):
                return


def _contents(plan: Plan, node: Node, operation: Answer) -> Contents:
    left, (subscribe, right) = operation.left_schema, (plan.node(name) for name in node.inputs)
    columns = tuple(Column(f"left_{c.name}", c.type) for c in (*left.key, *left.value))
    return Contents(("timestamp",), right.schema.key, columns, subscribe.name)


def _encoded(plan: Plan, node: Node, operation: Answer) -> tuple[Column, ...]:
    return (
        (*operation.left_schema.value, Column("#since", BIGINT)) if operation.complete else operation.left_schema.value
    )


def _build(site: Site, operation: Answer) -> Step:
    return CompleteAnswer(site, operation) if operation.complete else _Answer(site, operation)


def _view(node: Node, operation: Answer, info: StoreInfo, kv: OrderedKV) -> StoreView:
    return (Subscriptions if operation.complete else _View)(node, operation, info, kv)


def _moving(operation: Answer) -> Moving:
    return VERSIONED if operation.complete else SubscriptionStore.MOVING


OPERATOR = Operator(_build, side_store=SideStore(b"", _contents, _view, _moving, _encoded))
