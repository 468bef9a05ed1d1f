"""Stores opened for reading: their rows for a question, their size, their clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from vsc.plan.nodes import Column, Node, Plan
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.moving import Moving
from vsc.runtime.state.rows import RowCodec

__all__ = ["Contents", "Entry", "SideStore", "StoreView", "Waiting", "WaitingView", "byte_size", "clock"]


class Entry(NamedTuple):
    """A row of an answer: internal values; `value` is None without a value; `extra` as `StoreInfo.extra` names it."""

    status: Status
    encoded: bytes
    key: Row
    value: Row | None
    extra: tuple[int | None, ...]


class StoreView(Protocol):
    """A store opened for reading. To open it and to ask for `stream_time` and `held` takes one read in all."""

    @property
    def stream_time(self) -> int | None:
        """The highest event time that it has seen, in ms; None if it has no clock or has seen nothing."""

    @property
    def held(self) -> int:
        """How many of its rows wait for stream time to advance."""

    def rows(self) -> int:
        """How many rows it keeps: versions (including tombstones), rows, groups, windows, waiting records."""

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested rows, by key; the versions of one key newest first."""


def clock(stream_time: int) -> int | None:
    """The time of a clock that is negative before the first record: None until then."""
    return None if stream_time < 0 else stream_time


class Contents(NamedTuple):
    """What a store beside a table holds, with the fields of `StoreInfo`."""

    extra: tuple[str, ...]
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    partitioned: str


@dataclass(frozen=True, slots=True)
class SideStore:
    """What an operator keeps besides its node's table, under the node's prefix and `suffix`.

    It exists if the operation `keeps` something. `contents` describes it for a node and its operation; `view` opens it.
    `moving`: how its rows move to other partitions; `encoded`: the columns that they are encoded with. `due`: where the
    operation waits, what the node's clock shows when the first of what is held under a prefix is due; None if nothing
    is held.
    """

    suffix: bytes
    contents: Callable[[Plan, Node, Any], Contents]
    view: Callable[[Node, Any, StoreInfo, OrderedKV], StoreView]
    moving: Callable[[Any], Moving]
    encoded: Callable[[Plan, Node, Any], tuple[Column, ...]]
    due: Callable[[Node, Any, OrderedKV, bytes], int | None] | None = None


Waiting = tuple[bytes, bytes | None, int, int]
"""A row that waits: its key, the row (None: a tombstone), its event time, and the stream time that releases it."""


class WaitingView:
    """The `held` rows that wait in a buffer for its clock, which is at `time`; in the order in which they come out."""

    def __init__(
        self,
        info: StoreInfo,
        time: int,
        held: int,
        waiting: Callable[[], Iterator[tuple[bytes, bytes | None, int, int]]],
    ) -> None:
        self.stream_time, self.held, self._waiting = clock(time), held, waiting
        self._keys, self._rows = KeyCodec([c.type for c in info.key]), RowCodec([c.type for c in info.value])

    def rows(self) -> int:
        """How many wait."""
        return self.held

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested ones."""
        for key, data, time, due in self._waiting():
            if question.wants(key):
                status, row = (Status.TOMBSTONE, None) if data is None else (Status.WAITING, self._rows.decode(data))
                yield Entry(status, key, self._keys.decode(key), row, (time, due))


def byte_size(store: StoreInfo, kv: OrderedKV) -> int:
    """The bytes of keys and values that the store has in the map, uncompressed."""
    root = store_root(store.prefix)
    return sum(len(key) + len(value) for key, value in kv.scan(root, prefix_end(root)))
