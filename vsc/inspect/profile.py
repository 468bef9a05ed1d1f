"""A profile of the rows: nulls, event times by the statement's future clause, disorder, keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.compiler import compile_topology
from vsc.inspect.clock import DAY, YEAR_1990, Clock
from vsc.inspect.disorder import Disorder, Lateness
from vsc.inspect.keys import Keys, KeySearch
from vsc.inspect.model import DataColumn, DataFile
from vsc.inspect.wording import type_text, written
from vsc.plan.types import TIMESTAMP
from vsc.runtime.expressions import Frame, evaluate
from vsc.runtime.values import arrow_type

__all__ = ["Profile", "Times", "profile"]

Rows = Iterable[tuple[DataFile, Mapping[str, pa.Array]]]
_NONE = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Times:
    """Event times in ms: the first and the last, and how many rows have none or an implausible one.

    `first` and `last` ignore times earlier than the clock's `since` or more than a day ahead of now. `failed` says why
    the clause would stop a run.
    """

    first: int | None
    last: int | None
    nulls: int
    before_1970: int
    before_1990: int
    future: int
    farthest: int | None
    failed: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """The findings about all rows."""

    rows: int
    nulls: dict[str, int]
    keys: Keys
    times: Times | None
    lateness: Lateness | None


def profile(columns: tuple[DataColumn, ...], rows: Rows, clock: Clock | None, now: int) -> Profile:
    """Goes through the rows once, in bounded memory."""
    nulls = dict.fromkeys((column.name for column in columns), 0)
    search = KeySearch(columns)
    reader = None if clock is None else _TimeReader(clock, now)
    total = 0
    for file, batch in rows:
        count = len(next(iter(batch.values()))) if batch else 0
        total += count
        for name in nulls:
            column = batch.get(name)
            nulls[name] += count if column is None else column.null_count
        times = None if reader is None else reader.see(file.path, batch, count)
        search.see(batch, count, times)
    keys = search.found(None if clock is None else clock.column.name)
    if reader is None:
        return Profile(total, nulls, keys, None, None)
    return Profile(total, nulls, keys, reader.found(), reader.disorder.found())


class _TimeReader:
    """Computes event times as a run does, and summarizes them."""

    def __init__(self, clock: Clock, now: int) -> None:
        column = clock.column
        text = f"stream s ({written(column.name)} {type_text(column.type)}) from memory () timestamp {clock.clause};"
        (node,) = (n for n in compile_topology(text + " sink s to noop ();").nodes if n.name == "s")
        assert node.source.timestamp is not None
        self.name, self.type = column.name, arrow_type(column.type)
        self.schema, self.expr = node.schema, node.source.timestamp.expr
        self.since, self.bound = clock.since, now + DAY
        self.disorder = Disorder()
        self.first: int | None = None
        self.last: int | None = None
        self.farthest: int | None = None
        self.nulls = self.before_1970 = self.before_1990 = self.future = 0
        self.failed: str | None = None

    def see(self, file: str, batch: Mapping[str, pa.Array], count: int) -> npt.NDArray[np.int64]:
        """Takes in rows; returns their times, with the smallest bigint for a row that has none."""
        column = batch.get(self.name)
        if column is None:
            self.nulls += count
            return np.full(count, _NONE)
        if column.type != self.type:
            column = column.cast(self.type)
        computed, failures = evaluate(self.expr, [Frame(self.schema, (column,))])
        for row, reason in failures.items():
            self.failed = self.failed or f"row {row}: {reason}"
        numbers = (computed.view(pa.int64()) if self.expr.type == TIMESTAMP else computed).fill_null(_NONE)
        times: npt.NDArray[np.int64] = numbers.to_numpy(zero_copy_only=False)
        there = times != _NONE
        if self.expr.type == TIMESTAMP:
            times = np.where(there, np.floor_divide(times, 1000), _NONE)
        self._sum(times[there], count - int(np.count_nonzero(there)))
        self.disorder.see(file, times[there & self._usual(times)])
        return times

    def _sum(self, times: npt.NDArray[np.int64], nulls: int) -> None:
        self.nulls += nulls
        self.before_1970 += int(np.count_nonzero(times < 0))
        self.before_1990 += int(np.count_nonzero(times < YEAR_1990))
        ahead = times[times > self.bound]
        if len(ahead):
            self.future += len(ahead)
            self.farthest = max(self.farthest or 0, int(ahead.max()))
        taken = times[self._usual(times)]
        if len(taken):
            low, high = int(taken.min()), int(taken.max())
            self.first = low if self.first is None else min(self.first, low)
            self.last = high if self.last is None else max(self.last, high)

    def _usual(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return (times >= self.since) & (times <= self.bound)

    def found(self) -> Times:
        return Times(
            self.first, self.last, self.nulls, self.before_1970, self.before_1990, self.future, self.farthest,
            self.failed,
        )  # fmt: skip
