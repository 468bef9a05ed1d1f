"""One stage of a plan, record by record: what each node does, written to be read. The oracle of what is shipped.

It shares no code with the operators and the stores that are shipped: its state lies in plain dictionaries and lists.
What it does share: expressions, batches of records with their order, metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from tests.oracle.records.context import Context, InputTime
from tests.oracle.records.graph import StageGraph
from tests.oracle.records.suppress import Size
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Plan, Schema
from vsc.runtime.records import Batch, Metrics, Order, Origin, orders_together, processing_order
from vsc.runtime.values import to_values

__all__ = ["RecordStage", "Released", "Result"]

Released = tuple[str, Any]
"""A node, and one of what its `Waiting` has taken out."""
RELEASE = Origin("", 0, "")
_LAST_RANK = 2**31 - 1
_END_OF_TIME = 2**63 - 1
_PARTITIONS = 1 << 14


class Result(NamedTuple):
    """What came out, by node, and what was counted."""

    batches: tuple[tuple[str, Batch], ...]
    metrics: Metrics


class RecordStage:
    """A stage other than 0, for one partition. Takes and gives what `LaterStage` does. `size`: see `suppress.Size`.

    `clock`: see `Context`; what is held then comes out as `released` alone, when the input has passed `due`.
    """

    def __init__(
        self,
        plan: Plan,
        stage_id: int,
        on_error: Literal["drop", "fail"],
        observe: frozenset[str],
        size: Callable[[Schema], Size],
        partition: int = 0,
        clock: InputTime | None = None,
    ) -> None:
        self._partition = partition
        self._stage = plan.stages[stage_id]
        repeated = frozenset(self._stage.nodes) - frozenset(self._stage.emits) if stage_id else frozenset()
        self._context = Context(on_error, repeated)
        self._context.clock = clock
        self._schemas = {n.name: n.schema for n in plan.nodes}
        handed_out = {handed.node for handed in self._stage.hands_on} | (observe & set(self._stage.emits))
        self._graph = StageGraph(plan, self._stage, self._context, frozenset(handed_out), size)

    def process(
        self, inputs: Sequence[tuple[str, Batch]], drain: bool = False, released: Released | None = None
    ) -> Result:
        """Processes one epoch; with `drain` it is the last one, and everything held comes out.

        `released`: what comes out ahead of the records, which it has caused in earlier stages.
        """
        depth = self._stage.depth
        present = [(name, replace(batch, order=batch.order.deepened(depth))) for name, batch in inputs if len(batch)]
        self._context.metrics = Metrics()
        found: dict[str, list[Batch]] = {}
        if present or released is not None:
            self._run(present, released)
            self._gather(found)
        if drain:
            for place, name in enumerate(self._graph.waiting):
                self._release(name, place)
                self._gather(found)
        return Result(tuple((name, Batch.concat(parts)) for name, parts in found.items()), self._context.metrics)

    @property
    def held(self) -> int:
        """How many records, windows without final result and suppressed rows wait in the stage."""
        return sum(len(waiting) for waiting in self._graph.waiting.values())

    def content(self) -> dict[tuple[str, str], Content]:
        """What the stage keeps, see `StageGraph.content`."""
        return self._graph.content()

    def due(self) -> dict[str, int]:
        """By node in which something waits: the stream time at which the first of it comes out."""
        found = {name: waiting.due() for name, waiting in self._graph.waiting.items()}
        return {name: due for name, due in found.items() if due is not None}

    def take_due(self, name: str) -> Sequence[Any]:
        """Takes out all that comes out of a node together with the first of it, in its order."""
        return self._graph.waiting[name].take_due()

    def _run(self, inputs: Sequence[tuple[str, Batch]], released: Released | None) -> None:
        batches = [batch for _, batch in inputs]
        context, permutation = self._context, processing_order(batches) if batches else np.zeros(0, dtype=np.int64)
        context.origins, order = orders_together(batches) if batches else ((RELEASE,), Order.empty())
        context.order = order.take(permutation)
        first = 0 if released is None else self._first(*released)
        records: list[tuple[Any, ...]] = []
        entries: list[Any] = []
        for name, batch in inputs:
            records.extend(_records(batch, self._schemas[name]))
            entries.extend([self._graph.entries[name]] * len(batch))
        for cause, row in enumerate(permutation.tolist(), first):
            context.begin(cause)
            entries[row](*records[row])
        self._finish()

    def _first(self, name: str, waiting: Any) -> int:
        """Lets one thing go that has waited, ahead of the records that it has caused in earlier stages: one cause."""
        context, order = self._context, self._context.order
        depth = max(order.depth, self._stage.depth)
        none, path = np.zeros(1, dtype=np.int64), np.zeros((1, depth), dtype=np.int64)
        context.order = Order(
            np.append(none, order.time), np.append(none, order.origin).astype(np.int32), np.append(none, order.offset),
            np.vstack([path, order.padded(depth)]),
        )  # fmt: skip
        context.begin(0)
        self._graph.waiting[name].release(waiting)
        return 1

    def _release(self, name: str, place: int) -> None:
        """Emits what is held in node `name`: each is a cause of its own, behind everything."""
        buffer, context = self._graph.waiting[name], self._context
        waiting = buffer.take_all()
        context.origins = (Origin("#drain", _LAST_RANK, f"{self._stage.id:06d}.{place:06d}"),)
        context.order = _at_the_end([one[0] for one in waiting], self._partition)
        for cause, one in enumerate(waiting):
            context.begin(cause)
            buffer.release(one)
        self._finish()

    def _finish(self) -> None:
        for finish in self._graph.finishers:
            finish()

    def _gather(self, found: dict[str, list[Batch]]) -> None:
        for name, collector in self._graph.collectors.items():
            found.setdefault(name, []).append(collector.drain())


def _at_the_end(times: Sequence[int], partition: int) -> Order:
    """The order of what only the end of the input emits: behind all else, by time, then arrival, then partition."""
    count = len(times)
    arrival = np.arange(1, count + 1, dtype=np.int64) * _PARTITIONS + partition
    return Order(
        np.full(count, _END_OF_TIME, dtype=np.int64),
        np.zeros(count, dtype=np.int32),
        np.array(times, dtype=np.int64),
        arrival.reshape(count, 1),
    )


def _records(batch: Batch, schema: Schema) -> list[tuple[Any, ...]]:
    """The rows of a batch as (key columns, value columns or None, event time)."""
    columns = [to_values(array, c.type) for array, c in zip(batch.keys, schema.key, strict=True)]
    keys: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
    columns = [to_values(array, c.type) for array, c in zip(batch.values, schema.value, strict=True)]
    values: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
    there = batch.present.tolist()
    return [(k, v if p else None, t) for k, v, p, t in zip(keys, values, there, batch.timestamps.tolist(), strict=True)]
