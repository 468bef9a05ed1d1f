"""The records of one node in one batch, as columns in the order of processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Schema
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["Flow", "NotColumnar", "Old", "blanked", "taken", "turns"]


class NotColumnar(Exception):
    """This batch needs the record-by-record engine: an expression fails on a record. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Old:
    """The rows that were the newest before a table's changes; where `present` is False there was none."""

    present: Mask
    values: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """Records of one node. What else reads it in the stage gets at most one for each record that entered the stage.

    `cause` is the place of that record among all that entered, ascending; `key` a key's number in the batch; `time`
    event time in ms; where `present` is False there is no value and `values` are null. `old` is None where nobody asks
    for the rows before a table's changes, or where they are not known. `latest` tells which of a table's changes are
    their key's newest; None: all of them, or nobody asks. Records that are `void` take their place in the order of
    what a cause gives rise to, and are not handed out. Behind windows a cause can have several records, in their order;
    `turn` is the place of each, from 1, among those that left the windows for its cause.
    """

    cause: Int64s
    key: Int64s
    time: Int64s
    present: Mask
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]
    old: Old | None = None
    latest: Mask | None = None
    void: Mask | None = None
    turn: Int64s | None = None

    def __len__(self) -> int:
        return len(self.cause)

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        """Key columns, then value columns."""
        return self.keys + self.values

    def select(self, mask: Mask) -> Flow:
        """The records where `mask` is true; the same object if that is all of them."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        old = self.old
        return Flow(
            self.cause[mask], self.key[mask], self.time[mask], self.present[mask],
            tuple(c.filter(chosen) for c in self.keys), tuple(c.filter(chosen) for c in self.values),
            None if old is None else Old(old.present[mask], tuple(c.filter(chosen) for c in old.values)),
            None if self.latest is None else self.latest[mask],
            None if self.void is None else self.void[mask],
            None if self.turn is None else self.turn[mask],
        )  # fmt: skip

    def with_rows(self, present: Mask, values: Sequence[pa.Array], old: Old | None = None) -> Flow:
        """The same records with other rows."""
        return replace(self, present=present, values=tuple(values), old=old)

    @staticmethod
    def empty(schema: Schema) -> Flow:
        """No records of a node with this schema."""
        none = np.zeros(0, dtype=np.int64)
        keys, values = (tuple(pa.array([], arrow_type(c.type)) for c in part) for part in (schema.key, schema.value))
        return Flow(none, none, none, none.astype(np.bool_), keys, values)

    @staticmethod
    def merged(one: Flow, other: Flow) -> Flow:
        """The records of two flows that have no cause in common, in the order of their causes."""
        order = np.argsort(np.concatenate([one.cause, other.cause]), kind="stable")
        rows = pa.array(order)

        def arrays(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.concatenate([ours, theirs])[order]

        def columns(ours: Sequence[pa.Array], theirs: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
            return tuple(pa.concat_arrays([a, b]).take(rows) for a, b in zip(ours, theirs, strict=True))

        old = None
        if one.old is not None and other.old is not None:
            old = Old(arrays(one.old.present, other.old.present), columns(one.old.values, other.old.values))
        latest = None
        if one.latest is not None or other.latest is not None:
            latest = arrays(*(np.ones(len(f), np.bool_) if f.latest is None else f.latest for f in (one, other)))
        return Flow(
            arrays(one.cause, other.cause), arrays(one.key, other.key), arrays(one.time, other.time),
            arrays(one.present, other.present), columns(one.keys, other.keys), columns(one.values, other.values),
            old, latest,
        )  # fmt: skip


def turns(cause: Int64s) -> Int64s:
    """The place of each record, from 1, among those of the same cause, which stand side by side."""
    rows = np.arange(len(cause), dtype=np.int64)
    begins = np.append(True, cause[1:] != cause[:-1]) if len(cause) else np.zeros(0, dtype=np.bool_)
    return rows - np.maximum.accumulate(np.where(begins, rows, 0)) + 1


def blanked(columns: Sequence[pa.Array], present: Mask) -> tuple[pa.Array, ...]:
    """The columns, null where `present` is False."""
    if present.all():
        return tuple(columns)
    return taken(columns, np.where(present, np.arange(len(present)), -1))


def taken(columns: Sequence[pa.Array], positions: Int64s) -> tuple[pa.Array, ...]:
    """The rows at `positions`, null where a position is negative."""
    absent = positions < 0
    indices = pa.array(positions, mask=absent) if absent.any() else pa.array(positions)
    return tuple(column.take(indices) for column in columns)
