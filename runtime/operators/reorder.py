"""`reorder`: the records of a stream in the order of their event times (the long-term vision of KIP-914).

A record waits in the buffer until the clock reaches its time + `within`. What is due then goes on in the order of
(time, place), whatever its key, at its own time. The place is that in D12's order, by the clock of the input from the
first epoch on: so it does not depend on how the input is cut. A record that comes when the clock is more than
`within` past its time is `out_of_order`: what went on may be later. So what stands behind sees times that do not
decrease. The buffer keeps how far they have come, also over the end of the input and a new `within`.

Records without a value or a key wait like all others. Those that come and go within a batch never reach the buffer's
rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column, Node, Plan, Reorder
from vsc.runtime.metrics import GRACE_NEEDED, Dropped
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow, blanked, stacked, taken
from vsc.runtime.operators.columns.moments import Moments, turns
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore
from vsc.runtime.records import MOMENT_COLUMNS, NO_WORD, STEP, Int64s, Mask, Order, Origin
from vsc.runtime.state.grace_buffer import PLACED, Buffered, TimeOrderedBuffer, key_of, place_of, placed_key
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec

__all__ = ["OPERATOR", "places"]

_RANK, _SIGN = struct.Struct(">i"), np.uint64(1 << 63)
_NO_COLUMNS = KeyCodec(()).encode(())
"""The key of a stream without key columns, by which its records have their partition."""
_PRESENT, _ABSENT = b"\1", b"\0"


class _Reorder(Step):
    def __init__(self, site: Site, operation: Reorder) -> None:
        self._site, self._within = site, operation.within
        self._buffer, self._space = TimeOrderedBuffer(site.kv, site.prefix), site.space
        self._rows = _codec(site.node)

    def process(self, flow: Flow) -> Flow:
        site, within, gone = self._site, self._within, self._buffer.stream_time
        timing = site.timing(flow, gone + within)  # before `gone`, everything has gone on
        late = timing.clock - flow.time > within
        site.lose(Dropped.OUT_OF_ORDER, flow, late)
        behind = (site.moving(flow) - flow.time)[late]
        if (behind > within).any():
            site.peak(GRACE_NEEDED, int(behind.max()))
        order, number = site.batch.order_of(flow.at)
        own = np.flatnonzero(~late)
        place = places(site.of_input(flow)[own], order.take(own), turns(number)[own], site.batch.origins)
        flow = flow.select(~late)
        due = timing.passes(flow.time + within, own)
        stored = list(self._buffer.pop_until(timing.now - within))
        self._keep(flow, place, due > own, due == timing.never, timing.kept - within)
        first = timing.passes(np.array([one.timestamp for one in stored], dtype=np.int64) + within)
        out = np.flatnonzero(due < timing.never)
        return self._released(flow, place, stored, np.concatenate([first, due[out]]), out, timing)

    def _keep(self, flow: Flow, place: Sequence[bytes], begin: Mask, still: Mask, gone: int) -> None:
        """Lets records wait: those that `begin` to, as far as they `still` do at the end of the batch. Until then,
        everything before `gone` has gone on."""
        count, rows = int(begin.sum()), np.flatnonzero(still)
        if not count and gone <= self._buffer.stream_time:
            return
        encoded = self._rows.encode_columns(taken(flow.columns, rows), len(rows)).to_pylist()
        flags = [_PRESENT if there else _ABSENT for there in flow.present[rows].tolist()]
        numbers = zip(rows.tolist(), flow.key[rows].tolist(), strict=True)
        keys = [placed_key(place[row], self._space.keys[number] or _NO_COLUMNS) for row, number in numbers]
        payloads = [flag + row for flag, row in zip(flags, encoded, strict=True)]
        waiting = map(Buffered, flow.time[rows].tolist(), keys, payloads)
        begun = (np.cumsum(begin) - 1)[rows].tolist()
        self._buffer.pass_through(count, gone, list(zip(begun, waiting, strict=True)))

    def _released(
        self, flow: Flow, place: list[bytes], stored: list[Buffered], event: Int64s, out: Int64s, timing: Timing
    ) -> Flow:
        """The records that go on: those of `stored`, then the flow's at `out`, each at its event."""
        keys = [key_of(one.key) if flow.keys else b"" for one in stored]
        there = np.array([one.payload[:1] == _PRESENT for one in stored], dtype=np.bool_)
        before = self._rows.decode_columns(pa.array([one.payload[1:] for one in stored], pa.binary()))
        rows = np.concatenate([np.arange(len(stored)), len(stored) + out])
        number = np.concatenate([self._space.encoded(keys), flow.key])[rows]
        time = np.concatenate([np.array([one.timestamp for one in stored], dtype=np.int64), flow.time])[rows]
        place = [*(place_of(one.key) for one in stored), *(place[row] for row in out.tolist())]
        order, at = timing.sent(event, time + self._within, place, whole=True)
        rows = rows[order]
        present = np.concatenate([there, flow.present])[rows]
        columns, parts = taken(stacked(before, flow.columns), rows), len(flow.keys)
        return Flow(
            at, number[order], self._space, time[order], present, columns[:parts], blanked(columns[parts:], present)
        )  # fmt: skip

    def waiting(self) -> list[tuple[int, Buffered]]:
        raise AssertionError("`reorder` goes by the clock of the input, which releases what is held at its end")

    def release(self, waiting: list[tuple[int, Buffered]], at: Moments) -> Flow:
        raise AssertionError("nothing is taken out of it")


def places(clock: Int64s, order: Order, turn: Int64s, origins: Sequence[Origin]) -> list[bytes]:
    """Texts that compare like the places of records at which the clock of the input shows `clock`. `turn`: their places
    among those of one cause."""
    origin = [_RANK.pack(one.rank) + one.part.encode().replace(b"\0", b"\0\xff") + b"\0\0" for one in origins]
    parts = zip(
        _numbers(clock), _moments(order), order.origin.tolist(), _numbers(order.offset, order.path, turn), strict=True
    )
    return [at + moment + origin[number] + rest for at, moment, number, rest in parts]


def _numbers(*columns: Int64s) -> list[bytes]:
    """Each row of columns as bytes that compare like its numbers."""
    rows = np.column_stack(columns)
    data, width = (rows.astype(np.uint64) ^ _SIGN).astype(">u8").tobytes(), 8 * rows.shape[1]
    return [data[start : start + width] for start in range(0, width * len(rows), width)]


def _moments(order: Order) -> list[bytes]:
    """The moments of what time has released; records that go on as they come are behind it."""
    found = _numbers(np.full(len(order), STEP, dtype=np.int64))
    released = () if order.moment is None else np.flatnonzero(order.moment[:, 0] < STEP)
    for row in map(int, released):
        moment = order.moments(MOMENT_COLUMNS)[row]
        words = moment[MOMENT_COLUMNS:]
        words = words[: int(np.flatnonzero(words != NO_WORD).max(initial=-1)) + 1]
        inner = b"".join(b"\1" + word for word in _numbers(words))
        found[row] = b"".join(_numbers(moment[:2])) + inner + b"\0" + b"".join(_numbers(moment[2:MOMENT_COLUMNS]))
    return found


def _codec(node: Node) -> RowCodec:
    """Of whole records: a key that has a null cannot be decoded from its bytes."""
    return RowCodec([c.type for c in (*node.schema.key, *node.schema.value)])


class _View:
    """The records that wait, in the order in which they go on."""

    def __init__(self, node: Node, operation: Reorder, info: StoreInfo, kv: OrderedKV) -> None:
        self._buffer, self._within = TimeOrderedBuffer(kv, info.prefix), operation.within
        self._rows, self._parts, self.held = _codec(node), len(node.schema.key), len(self._buffer)

    @property
    def stream_time(self) -> int | None:
        """As far as it has let records go on: when nothing has been drained, the highest event time, less its hold."""
        gone = self._buffer.stream_time
        return None if gone < 0 else gone + self._within

    def rows(self) -> int:
        """How many wait."""
        return self.held

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested ones."""
        for one in self._buffer.scan():
            if question.wants(key := key_of(one.key)):
                row, extra = self._rows.decode(one.payload[1:]), (one.timestamp, one.timestamp + self._within)
                status = Status.WAITING if one.payload[:1] == _PRESENT else Status.TOMBSTONE
                value = row[self._parts :] if status is Status.WAITING else None
                yield Entry(status, key, row[: self._parts], value, extra)


def _contents(plan: Plan, node: Node, operation: Reorder) -> Contents:
    return Contents(("timestamp", "due"), node.schema.key, node.schema.value, node.name)


def _encoded(plan: Plan, node: Node, operation: Reorder) -> tuple[Column, ...]:
    return (*node.schema.key, *node.schema.value)


def _due(node: Node, operation: Reorder, kv: OrderedKV, prefix: bytes) -> int | None:
    first = next(TimeOrderedBuffer(kv, prefix).scan(), None)
    return None if first is None else first.timestamp + operation.within


OPERATOR = Operator(_Reorder, side_store=SideStore(b"", _contents, _View, lambda _: PLACED, _encoded, _due))
