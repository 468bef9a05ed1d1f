"""Plays epochs of rows into a plan, by either engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from tests.oracle.engines import Ran, by_record, by_records, on_columns
from tests.oracle.epochs import EpochRow, order_epoch
from tests.oracle.stores import Shown, Stores
from vsc.plan.nodes import Clock, Plan, Source
from vsc.runtime.errors import ExpressionError
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.records import Batch, Metrics, Origin
from vsc.runtime.values import from_python, to_array

__all__ = ["Deleted", "Outcome", "Played", "by_key", "chunks", "difference", "oracle", "shipped", "shown_records"]

Epochs = Sequence[Sequence[EpochRow]]
Outcome = dict[str, list[tuple[Any, ...]]]
"""For each node its records in order: (key columns, event time, value columns or None), as text: NaN is equal to itself
and 0.0 is not -0.0."""


class Deleted(dict[str, Any]):
    """The key of a row without a value."""


@dataclass(frozen=True)
class Played:
    """What became of a history. `state`: before and after the end of the input; `stores`: where it lies in the end, of
    what is shipped. `failure`: what ended it early."""

    batches: dict[str, list[Batch]]
    metrics: dict[str, Any]
    state: tuple[dict[Any, Shown], ...]
    stores: Stores
    failure: str | None
    ran: Ran
    runtime: LocalRuntime

    @cached_property
    def outcome(self) -> Outcome:
        """What came out, to be compared."""
        return {name: [row for batch in found for row in shown_records(batch)] for name, found in self.batches.items()}


def oracle(
    plan: Plan, epochs: Epochs, observe: Iterable[str], partitions: int = 1, on_error: str = "drop", single: bool = True
) -> Played:
    """Record by record. `single`: each row is an epoch of its own, in the order of D12; else epochs are as given."""
    cut = [[row] for epoch in epochs for row in order_epoch(plan, epoch)] if single else epochs
    played = _Play(by_records(plan), observe, partitions, on_error, by_record).all(cut, ())
    played.ran.check(plan, columnar=False)
    return played


def shipped(
    plan: Plan,
    epochs: Epochs,
    observe: Iterable[str],
    partitions: int = 1,
    on_error: str = "drop",
    restarts: Sequence[bool] = (),
    in_steps: bool = False,
    clock: Clock = "records",
) -> Played:
    """Each epoch at once, on columns where they can be, after a restart where `restarts` says so; with the oracle's
    clock, unless `clock` is another one.

    `in_steps`: rows are processed in the order in which they are given, whatever their time; the `order.time` of what
    comes out then is the number of the row that it comes from.
    """
    plan = by_records(plan, clock)
    played = _Play(plan, observe, partitions, on_error, on_columns, in_steps).all(epochs, restarts)
    played.ran.check(plan, columnar=True)
    return played


def difference(found: Played, expected: Played, in_sequence: bool) -> str:
    """What differs first, nothing if all is equal. `in_sequence`: records of all keys together come in one order."""
    if found.failure != expected.failure:
        return f"failed with {found.failure}, not {expected.failure}"
    if found.failure is not None:
        return ""  # how far the others have come is not said
    for node in sorted(found.outcome.keys() | expected.outcome.keys()):
        ours, theirs = found.outcome.get(node, []), expected.outcome.get(node, [])
        if ours == theirs or (not in_sequence and by_key(ours) == by_key(theirs)):
            continue
        equal = [a == b for a, b in zip(ours, theirs, strict=False)]
        place = equal.index(False) if False in equal else len(equal)
        seen, wanted = ours[place : place + 5], theirs[place : place + 5]
        counts = f"{len(ours)} records, not {len(theirs)}"
        return f"{node}: {counts}; from record {place} on\n  found    {seen}\n  expected {wanted}"
    if found.metrics != expected.metrics:
        return f"metrics: found {found.metrics}, expected {expected.metrics}"
    for kept, oracles in zip(found.state, expected.state, strict=True):
        for place in sorted(kept.keys() | oracles.keys(), key=str):
            if kept.get(place) != oracles.get(place):
                return f"state of {place}: {_rows_apart(kept.get(place), oracles.get(place))}"
    return ""


def _rows_apart(ours: Shown | None, theirs: Shown | None) -> str:
    (*clocks, rows), (*others, expected) = ours or (None, 0, []), theirs or (None, 0, [])
    if clocks != others:
        return f"clock and how much waits: found {clocks}, expected {others}"
    return f"found {[r for r in rows if r not in expected][:5]}, expected {[r for r in expected if r not in rows][:5]}"


def by_key(records: Sequence[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """The records of each key, in their order: between keys of several partitions there is none to keep."""
    found = defaultdict(list)
    for key, *rest in records:
        found[key].append(tuple(rest))
    return dict(found)


def chunks(plan: Plan, rows: Iterable[EpochRow]) -> list[tuple[str, SourceRows]]:
    """Rows of an epoch, each source partition in one piece."""
    parts: dict[tuple[str, str], list[EpochRow]] = defaultdict(list)
    for row in rows:
        parts[row.source, row.part].append(row)
    return [_chunk(plan, source, part, sorted(own, key=lambda r: r.offset)) for (source, part), own in parts.items()]


def _chunk(plan: Plan, source: str, part: str, own: Sequence[EpochRow]) -> tuple[str, SourceRows]:
    operation = plan.node(source).operation
    assert isinstance(operation, Source)
    columns = tuple(
        to_array([None if (v := r.row.get(c.name)) is None else from_python(v, c.type) for r in own], c.type)
        for c in operation.columns
    )
    deleted = np.array([isinstance(r.row, Deleted) for r in own], dtype=np.bool_)
    times = None
    if operation.timestamp is None or deleted.any():
        times = np.array([r.timestamp for r in own], dtype=np.int64)
    offsets = np.array([r.offset for r in own], dtype=np.int64)
    origin = Origin(source, operation.rank, part)
    return source, SourceRows(origin, columns, offsets, times, deleted if deleted.any() else None)


class _InSteps(StageZero):
    """Gives rows the order in which they come, one in each call."""

    step = -1

    def process(self, source: str, rows: SourceRows, clock: int | None = None) -> StageResult:
        self.step += 1
        result = super().process(source, rows, clock)
        return replace(result, batches=tuple((name, self._placed(batch)) for name, batch in result.batches))

    def _placed(self, batch: Batch) -> Batch:
        return replace(batch, order=replace(batch.order, time=np.full(len(batch), self.step, dtype=np.int64)))


class _Play:
    def __init__(
        self,
        plan: Plan,
        observe: Iterable[str],
        partitions: int,
        on_error: str,
        task: Callable[..., LaterStage],
        in_steps: bool = False,
    ) -> None:
        self._plan, self._observe, self._partitions = plan, frozenset(observe), partitions
        self._options = RunOptions(on_error="fail" if on_error == "fail" else "drop")
        self._ran, self._metrics, self._stores = Ran(), Metrics(), Stores()
        self._task = partial(task, self._ran)
        self._steps = _InSteps(plan, self._options, self._observe) if in_steps else None
        self._batches: dict[str, list[Batch]] = {}

    def all(self, epochs: Epochs, restarts: Sequence[bool]) -> Played:
        runtime = self._started({})
        state: tuple[dict[Any, Shown], ...] = ()
        failure = None
        try:
            for number, epoch in enumerate(epochs):
                if number < len(restarts) and restarts[number]:
                    runtime = self._started(runtime.starts)
                self._collect(runtime.process(self._rows(epoch)))
            state = (self._content(),)
            self._collect(runtime.drain())
            state = (*state, self._content())
        except ExpressionError as error:
            failure = str(error)
        return Played(self._batches, self._metrics.as_dict(), state, self._stores, failure, self._ran, runtime)

    def _content(self) -> dict[Any, Shown]:
        return self._ran.content() if self._ran.oracles else self._stores.content(self._plan)

    def _started(self, starts: Mapping[str, int]) -> LocalRuntime:
        runtime = LocalRuntime(
            self._plan, self._stores, self._observe, self._partitions, self._options, self._task, starts
        )
        runtime.metrics = self._metrics
        if self._steps is not None:
            runtime._source = self._steps
        return runtime

    def _rows(self, epoch: Sequence[EpochRow]) -> list[tuple[str, SourceRows]]:
        if self._steps is None:
            return chunks(self._plan, epoch)
        return [_chunk(self._plan, row.source, row.part, [row]) for row in epoch]

    def _collect(self, batches: dict[str, Batch]) -> None:
        for name, batch in batches.items():
            self._batches.setdefault(name, []).append(batch)


def shown_records(batch: Batch) -> list[tuple[Any, ...]]:
    """The records of a batch: key columns, event time, value columns or None, as in an `Outcome`."""
    keys = [c.to_pylist() for c in batch.keys]
    values = [c.to_pylist() for c in batch.values]
    count = len(batch)
    rows = zip(
        zip(*keys, strict=True) if keys else [()] * count, batch.timestamps.tolist(),
        zip(*values, strict=True) if values else [()] * count, batch.present.tolist(), strict=True,
    )  # fmt: skip
    return [(repr(k), t, repr(v) if present else None) for k, t, v, present in rows]
