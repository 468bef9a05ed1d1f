"""One stage of a plan, record by record: what each node does, written to be read. The oracle of what is shipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.oracle.records.context import Context
from tests.oracle.records.graph import StageGraph
from vsc.plan.nodes import Plan, Schema
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.layout import hands_out
from vsc.runtime.operators.partition import encoded_keys
from vsc.runtime.operators.result import StageResult, drained
from vsc.runtime.operators.views.catalog import held_back
from vsc.runtime.records import Batch, Metrics, orders_together, processing_order
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.values import to_values

__all__ = ["RecordStage"]


class RecordStage:
    """A stage other than 0, for one partition.

    Takes and gives what `vsc.runtime.operators.later_stage.LaterStage` does.
    """

    def __init__(
        self,
        plan: Plan,
        stage_id: int,
        kv: OrderedKV,
        options: RunOptions,
        observe: frozenset[str],
        partition: int = 0,
    ) -> None:
        self._plan, self._kv, self._partition = plan, kv, partition
        self._stage = plan.stages[stage_id]
        self._context = Context(options)
        self._handed_out = hands_out(self._stage, observe)
        self._depth = self._stage.depth
        self._schemas = {n.name: n.schema for n in plan.nodes}
        inputs = [i.node for i in self._stage.inputs]
        self._codecs = {name: KeyCodec([c.type for c in self._schemas[name].key]) for name in inputs}
        self._built: StageGraph | None = None

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        """See `LaterStage.process`."""
        present = [
            (name, replace(batch, order=batch.order.deepened(self._depth))) for name, batch in inputs if len(batch)
        ]
        self._context.metrics = Metrics()
        found: dict[str, list[Batch]] = {}
        if present:
            self._run(present)
            self._gather(found)
        if drain:
            for place, name in enumerate(self._graph.waiting):
                self._release(name, place)
                self._gather(found)
        batches = tuple((name, Batch.concat(parts)) for name, parts in found.items())
        return StageResult(batches, self._context.metrics)

    @property
    def held(self) -> int:
        """How many records, windows without final result and suppressed rows wait in the stage."""
        holding = [node for node in self._plan.nodes if node.name in self._stage.nodes and node.operation.waits]
        return sum(held_back(self._plan, self._stage, node, self._kv) for node in holding)

    @property
    def _graph(self) -> StageGraph:
        if self._built is None:
            self._built = StageGraph(self._plan, self._stage, self._kv, self._context, self._handed_out)
        return self._built

    def _run(self, inputs: Sequence[tuple[str, Batch]]) -> None:
        batches = [batch for _, batch in inputs]
        permutation = processing_order(batches)
        context = self._context
        context.origins, order = orders_together(batches)
        context.order = order.take(permutation)
        records: list[tuple[Any, ...]] = []
        entries: list[Any] = []
        for name, batch in inputs:
            records.extend(_records(batch, self._schemas[name], self._codecs[name]))
            entries.extend([self._graph.entries[name]] * len(batch))
        for cause, row in enumerate(permutation.tolist()):
            context.cause = cause
            context.counter = 0
            entries[row](*records[row])
        self._finish()

    def _release(self, name: str, place: int) -> None:
        """Lets out what waits in node `name`: each is a cause of its own, behind everything."""
        buffer, context = self._graph.waiting[name], self._context
        waiting = buffer.take_all()
        context.origins, context.order = drained(self._stage.id, place, self._partition, [one[0] for one in waiting])
        for cause, one in enumerate(waiting):
            context.cause = cause
            context.counter = 0
            buffer.release(one)
        self._finish()

    def _finish(self) -> None:
        for finish in self._graph.finishers:
            finish()

    def _gather(self, found: dict[str, list[Batch]]) -> None:
        for name, collector in self._graph.collectors.items():
            found.setdefault(name, []).append(collector.drain())


def _records(batch: Batch, schema: Schema, codec: KeyCodec) -> list[tuple[Any, ...]]:
    """The rows of a batch as (encoded key, key columns, value columns or None, event time)."""
    distinct, index = encoded_keys(batch, codec)
    columns = [to_values(array, c.type) for array, c in zip(batch.keys, schema.key, strict=True)]
    keys: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
    columns = [to_values(array, c.type) for array, c in zip(batch.values, schema.value, strict=True)]
    values: Any = zip(*columns, strict=True) if columns else [()] * len(batch)
    if not batch.present.all():
        values = [v if there else None for v, there in zip(values, batch.present.tolist(), strict=True)]
    encoded = [distinct[i] for i in index.tolist()]
    return list(zip(encoded, keys, values, batch.timestamps.tolist(), strict=True))
