"""The records of one node in one batch, as columns in the order of processing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Schema
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["Flow", "Old", "blanked", "chosen", "stacked", "taken"]


@dataclass(frozen=True, slots=True)
class Old:
    """The newest rows before a table's changes, and their event times; where `present` is False there was no row."""

    present: Mask
    time: Int64s
    values: tuple[pa.Array, ...]

    def select(self, mask: Mask) -> Old:
        """The rows where `mask` is true."""
        chosen = pa.array(mask)
        return Old(self.present[mask], self.time[mask], tuple(column.filter(chosen) for column in self.values))


@dataclass(frozen=True, slots=True)
class Flow:
    """Records of one node, by their moments, ascending.

    `at` is the moment of each (see `moments`); `key` is the key's number in `space`; `time` is event time in ms. Where
    `present` is False the record has no value, and `values` are null. `old` has the rows before a table's changes; None
    if nothing reads them or they are unknown. `latest` marks the changes that are their key's newest; None: all are, or
    nothing reads it. `until` says until when (ms) each change of a versioned table is valid, `NEVER` without an end;
    None: nothing reads it. The row before is then the one that was valid at the change's time. `void` records take a
    place in the order of their cause's records, but do not leave the stage.
    """

    at: Moments
    key: Int64s
    space: KeySpace
    time: Int64s
    present: Mask
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]
    old: Old | None = None
    latest: Mask | None = None
    void: Mask | None = None
    until: Int64s | None = None

    def __len__(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        """Key columns, then value columns."""
        return self.keys + self.values

    def select(self, mask: Mask) -> Flow:
        """The records where `mask` is true; the same object if it is true everywhere."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return Flow(
            self.at.take(mask), self.key[mask], self.space, self.time[mask], self.present[mask],
            tuple(c.filter(chosen) for c in self.keys), tuple(c.filter(chosen) for c in self.values),
            None if self.old is None else self.old.select(mask),
            None if self.latest is None else self.latest[mask],
            None if self.void is None else self.void[mask],
            None if self.until is None else self.until[mask],
        )  # fmt: skip

    def take(self, rows: Int64s) -> Flow:
        """The records at `rows`, without the rows before them; the same object if these are all records, in order."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return replace(self, old=None)
        return Flow(
            self.at.take(rows), self.key[rows], self.space, self.time[rows], self.present[rows],
            taken(self.keys, rows), taken(self.values, rows), until=None if self.until is None else self.until[rows],
        )  # fmt: skip

    def with_rows(self, present: Mask, values: Sequence[pa.Array], old: Old | None = None) -> Flow:
        """The records with other rows."""
        return replace(self, present=present, values=tuple(values), old=old)

    @staticmethod
    def empty(schema: Schema, space: KeySpace) -> Flow:
        """No records of a node with this schema."""
        none = np.zeros(0, dtype=np.int64)
        keys, values = (tuple(pa.array([], arrow_type(c.type)) for c in part) for part in (schema.key, schema.value))
        return Flow(Moments((none,)), none, space, none, none.astype(np.bool_), keys, values)

    @staticmethod
    def merged(parts: Sequence[Flow]) -> Flow:
        """The records of several flows of one key space and schema, in the order of their moments."""
        if len(parts) == 1:
            return parts[0]
        at = Moments.concat([part.at for part in parts])
        order = processing(at)
        rows = pa.array(order)

        def arrays(found: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
            return np.concatenate(list(found))[order]

        def columns(found: Iterable[Sequence[pa.Array]]) -> tuple[pa.Array, ...]:
            return tuple(pa.concat_arrays(list(column)).take(rows) for column in zip(*found, strict=True))

        old = latest = None
        olds = [part.old for part in parts]
        if all(one is not None for one in olds):
            known = [one for one in olds if one is not None]
            present, time = arrays(one.present for one in known), arrays(one.time for one in known)
            old = Old(present, time, columns(one.values for one in known))
        if any(part.latest is not None for part in parts):
            latest = arrays(np.ones(len(f), np.bool_) if f.latest is None else f.latest for f in parts)
        return Flow(
            at.take(order), arrays(f.key for f in parts), parts[0].space, arrays(f.time for f in parts),
            arrays(f.present for f in parts), columns(f.keys for f in parts), columns(f.values for f in parts),
            old, latest,
        )  # fmt: skip


def blanked(columns: Sequence[pa.Array], present: Mask) -> tuple[pa.Array, ...]:
    """The columns, null where `present` is False."""
    if present.all():
        return tuple(columns)
    return taken(columns, np.where(present, np.arange(len(present)), -1))


def chosen(columns: Sequence[pa.Array], mask: Mask) -> tuple[pa.Array, ...]:
    """The rows where `mask` is true."""
    if mask.all():
        return tuple(columns)
    rows = pa.array(mask)
    return tuple(column.filter(rows) for column in columns)


def stacked(one: Sequence[pa.Array], other: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    """The rows of `one`, then those of `other`."""
    return tuple(pa.concat_arrays([a, b]) for a, b in zip(one, other, strict=True))


def taken(columns: Sequence[pa.Array], positions: Int64s) -> tuple[pa.Array, ...]:
    """The rows at `positions`, null where a position is negative."""
    absent = positions < 0
    indices = pa.array(positions, mask=absent) if absent.any() else pa.array(positions)
    return tuple(column.take(indices) for column in columns)
