"""What one store, opened for reading, tells: its rows for a question, its size, its clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.views.catalog import StoreInfo
from vsc.runtime.operators.views.question import Question, Status
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root

__all__ = ["Entry", "StoreView", "byte_size"]


class Entry(NamedTuple):
    """A row of an answer: internal values; `value` None where there is none; `extra` as `StoreInfo.extra` names it."""

    status: Status
    encoded: bytes
    key: Row
    value: Row | None
    extra: tuple[int | None, ...]


class StoreView(Protocol):
    """A store that is looked into."""

    @property
    def stream_time(self) -> int | None:
        """The highest event time that it has seen in ms; None where it has no clock, or has seen nothing."""

    def rows(self) -> int:
        """How many rows it keeps: versions (tombstones too), rows, groups, windows, records that wait."""

    def answer(self, question: Question) -> Iterator[Entry]:
        """The rows that are asked for, by key; the versions of one key newest first."""


def byte_size(store: StoreInfo, kv: OrderedKV) -> int:
    """The bytes of keys and values that the store has in the map, uncompressed."""
    root = store_root(store.prefix)
    return sum(len(key) + len(value) for key, value in kv.scan(root, prefix_end(root)))
