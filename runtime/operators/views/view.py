"""Stores opened for reading: their rows for a question, their size, their clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from vsc.plan.nodes import Column, Node, Plan
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.moving import Moving

__all__ = ["Beside", "Contents", "Entry", "StoreView", "byte_size", "clock"]


class Entry(NamedTuple):
    """A row of an answer: internal values; `value` is None without a value; `extra` as `StoreInfo.extra` names it."""

    status: Status
    encoded: bytes
    key: Row
    value: Row | None
    extra: tuple[int | None, ...]


class StoreView(Protocol):
    """A store opened for reading, which takes one read. Neither do `stream_time` and `held` cost more."""

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
class Beside:
    """What an operator keeps besides its node's table, under the node's prefix and `suffix`.

    It exists if the operation `keeps` something. `contents` describes it for a node and its operation; `view` opens it.
    `moving`: how its rows move to other partitions; `encoded`: the columns that they are encoded with.
    """

    suffix: bytes
    contents: Callable[[Plan, Node, Any], Contents]
    view: Callable[[Node, Any, StoreInfo, OrderedKV], StoreView]
    moving: Callable[[Any], Moving]
    encoded: Callable[[Plan, Node, Any], tuple[Column, ...]]


def byte_size(store: StoreInfo, kv: OrderedKV) -> int:
    """The bytes of keys and values that the store has in the map, uncompressed."""
    root = store_root(store.prefix)
    return sum(len(key) + len(value) for key, value in kv.scan(root, prefix_end(root)))
