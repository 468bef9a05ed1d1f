"""Where the records of a node go from a stage: to later stages and to sinks, as wire rows."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Plan
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.operators.layout import handed_on, is_broadcast
from vsc.runtime.operators.partition import partition_codecs, split
from vsc.runtime.records import Batch
from vsc.runtime.spark.connectors.registry import connector_of
from vsc.runtime.spark.counters import TaskCounters
from vsc.runtime.spark.delivery import delivery
from vsc.runtime.spark.digest import PartDigests
from vsc.runtime.spark.wire import SINK, WireRow, pieces

__all__ = ["Router"]


class Router:
    """Routes what stage `stage` of the plan hands out."""

    def __init__(self, plan: Plan, stage: int, partitions: int) -> None:
        self._partitions = partitions
        self._plan = plan
        this = next(s for s in plan.stages if s.id == stage)
        self._stages = handed_on(this)
        self._codecs = partition_codecs(plan)
        self._delivery = delivery(plan)
        self._in_order = stage > 0
        self._sinks: dict[str, list[str]] = {}
        self._digests: dict[str, PartDigests] = {}
        for sink in plan.sinks:
            if sink.node in this.emits:
                self._sinks.setdefault(sink.node, []).append(sink.id)
                if connector_of(sink.connector.kind).digests:
                    self._digests[sink.node] = PartDigests(by_origin=stage == 0)

    def route(self, node: str, batch: Batch, here: int, counters: TaskCounters) -> Iterator[WireRow]:
        """The rows that carry `batch`; what is for a sink travels through partition `here`, unless it goes by key."""
        if not len(batch):
            return
        sinks = self._sinks.get(node, [])
        for sink in sinks:
            counters.written[sink] += len(batch)
        if node in self._digests:
            self._digests[node].update(batch)
        if sinks and node in self._delivery.shuffled and not self._in_order:
            batch = batch.sorted()  # what stage 0 hands out is in the order of its source partitions
        by_key = sinks if node in self._delivery.by_key else []
        stages = self._stages.get(node, ())
        if stages or by_key:
            for partition, part in split(batch, self._codecs[node], self._partitions, is_broadcast(self._plan, node)):
                yield from _rows(part, partition, node, stages, by_key)
        if sinks and not by_key:
            yield from _rows(batch, here, node, (), sinks)

    def finish(self, counters: TaskCounters) -> None:
        """Hands over the digests of what went to each sink, once everything is routed."""
        for node, digests in self._digests.items():
            for sink in self._sinks[node]:
                counters.digest(sink, digests.value())


def _rows(batch: Batch, partition: int, node: str, stages: tuple[int, ...], sinks: list[str]) -> Iterator[WireRow]:
    for piece in pieces(batch):
        blob, place = piece.to_ipc(), Frontier.at(piece).place.encoded if sinks else None
        for stage in stages:
            yield WireRow(stage, node, partition, blob)
        for sink in sinks:
            yield WireRow(SINK, sink, partition, blob, place)
