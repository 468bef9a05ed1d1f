"""What waits and what is subscribed to, looked into: grace buffers, suppressed rows, foreign-key joins."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Answer, Plan, StreamTableJoin, Suppress
from vsc.runtime.operators.views.catalog import StoreInfo
from vsc.runtime.operators.views.question import Question, Status
from vsc.runtime.operators.views.view import Entry, StoreView
from vsc.runtime.state.grace_buffer import TimeOrderedBuffer
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.subscriptions import SubscriptionStore
from vsc.runtime.state.suppressed import Suppressed

__all__ = ["open_waiting_view"]


def open_waiting_view(plan: Plan, store: StoreInfo, kv: OrderedKV) -> StoreView:
    """The view of a grace buffer, of suppressed rows or of subscriptions."""
    match plan.node(store.node).operation:
        case StreamTableJoin(grace=grace) if grace is not None:
            return _Waiting(store, TimeOrderedBuffer(kv, store.prefix), grace)
        case Suppress(wait=wait):
            return _Suppressed(store, Suppressed(kv, store.prefix), wait)
        case Answer(left_schema=left):
            return _Subscriptions(store, SubscriptionStore(kv, store.prefix), len(left.key))
        case other:
            raise ValueError(f"'{store.name}': {other.op} holds nothing")


class _Waiting:
    """The records in front of a join with grace, by event time; `due`: the stream time that lets one out."""

    def __init__(self, info: StoreInfo, buffer: TimeOrderedBuffer, grace: int) -> None:
        self._buffer = buffer
        self._grace = grace
        self._keys = KeyCodec([c.type for c in info.key])
        self._rows = RowCodec([c.type for c in info.value])

    @property
    def stream_time(self) -> int | None:
        return None if self._buffer.stream_time < 0 else self._buffer.stream_time

    def rows(self) -> int:
        return len(self._buffer)

    def answer(self, question: Question) -> Iterator[Entry]:
        for time, key, payload in self._buffer.scan():
            if question.wants(key):
                extra = (time, time + self._grace)
                yield Entry(Status.WAITING, key, self._keys.decode(key), self._rows.decode(payload), extra)


class _Suppressed:
    """The rows that a `suppress` holds back, in the order in which they come out; `due` as in a grace buffer."""

    def __init__(self, info: StoreInfo, held: Suppressed, wait: int) -> None:
        self._held = held
        self._wait = wait
        self._keys = KeyCodec([c.type for c in info.key])
        self._rows = RowCodec([c.type for c in info.value])

    @property
    def stream_time(self) -> int | None:
        return None if self._held.stream_time < 0 else self._held.stream_time

    def rows(self) -> int:
        return self._held.count

    def answer(self, question: Question) -> Iterator[Entry]:
        for one in self._held.all():
            if question.wants(one.key):
                row = None if one.row is None else self._rows.decode(one.row)
                status = Status.TOMBSTONE if row is None else Status.WAITING
                extra = (one.timestamp, one.place + self._wait)
                yield Entry(status, one.key, self._keys.decode(one.key), row, extra)


class _Subscriptions:
    """The left rows that refer to a key of the right table."""

    stream_time = None

    def __init__(self, info: StoreInfo, store: SubscriptionStore, width: int) -> None:
        self._store = store
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
