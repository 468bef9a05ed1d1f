"""Where the records of a node go from a stage: to later stages by their key, to sinks, as wire rows."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Plan
from vsc.runtime.operators.key_width import partition_codecs
from vsc.runtime.operators.layout import handed_on, is_broadcast
from vsc.runtime.operators.partition import split
from vsc.runtime.records import Batch
from vsc.runtime.spark.counters import TaskCounters
from vsc.runtime.spark.digest import PartDigests
from vsc.runtime.spark.wire import SINK, WireRow, blobs

__all__ = ["Router"]


class Router:
    """Routes what stage `stage` of the plan hands out."""

    def __init__(self, plan: Plan, stage: int, partitions: int) -> None:
        self._partitions = partitions
        self._plan = plan
        this = next(s for s in plan.stages if s.id == stage)
        self._stages = handed_on(plan, this)
        self._codecs = partition_codecs(plan)
        self._sinks: dict[str, list[str]] = {}
        self._digests: dict[str, PartDigests] = {}
        for sink in plan.sinks:
            if sink.node in this.emits:
                self._sinks.setdefault(sink.node, []).append(sink.id)
                if sink.connector.kind == "files":
                    self._digests[sink.node] = PartDigests(by_origin=stage == 0)

    def route(self, node: str, batch: Batch, here: int, counters: TaskCounters) -> Iterator[WireRow]:
        """The rows that carry `batch`; what is for a sink travels through partition `here`."""
        if not len(batch):
            return
        if node in self._stages:
            for partition, part in split(batch, self._codecs[node], self._partitions, is_broadcast(self._plan, node)):
                for blob in blobs(part):
                    for stage in self._stages[node]:
                        yield WireRow(stage, node, partition, blob)
        sinks = self._sinks.get(node, ())
        if sinks and not (here and is_broadcast(self._plan, node)):
            for sink in sinks:
                counters.written(sink, len(batch))
            if node in self._digests:
                self._digests[node].update(batch)
            for blob in blobs(batch):
                for sink in sinks:
                    yield WireRow(SINK, sink, here, blob)

    def finish(self, counters: TaskCounters) -> None:
        """Hands over the digests of what went to each sink, once everything is routed."""
        for node, digests in self._digests.items():
            for sink in self._sinks[node]:
                counters.digest(sink, digests.value())
