"""Where the records of a node go from a stage: to later stages and to sinks, as wire rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vsc.plan.connectors import facts_of
from vsc.plan.nodes import Plan
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.operators.layout import handed_on, is_broadcast
from vsc.runtime.operators.partition import partition_codecs, split
from vsc.runtime.records import Batch
from vsc.runtime.spark.exchange.blob_files import LEAST_BYTES, MOST_BYTES, BlobFile, BlobFiles
from vsc.runtime.spark.exchange.counters import TaskCounters
from vsc.runtime.spark.exchange.delivery import delivery
from vsc.runtime.spark.exchange.digest import ContentDigest, PartDigests
from vsc.runtime.spark.exchange.wire import SINK, WireRow, pieces, size_of

__all__ = ["Router"]


@dataclass(slots=True)
class _Target:
    """Sinks that get the same records of a node, and the digest of these records, if a sink compares digests."""

    sinks: list[str] = field(default_factory=list)
    digests: ContentDigest | PartDigests | None = None


class Router:
    """Routes what a task of the plan hands out, whose `counters` say of which stage and partition it is.

    With `files`, large blobs stay outside the JVM.
    """

    def __init__(self, plan: Plan, partitions: int, counters: TaskCounters, files: BlobFiles | None = None) -> None:
        self._partitions = partitions
        self._plan = plan
        self._counters = counters
        self._file = None if files is None else BlobFile(files, counters.partition)
        this = next(s for s in plan.stages if s.id == counters.stage)
        self._stages = handed_on(this)
        self._codecs = partition_codecs(plan)
        self._delivery = delivery(plan)
        self._in_order = this.id > 0
        self._targets: dict[tuple[str, bool], _Target] = {}
        given = plan.given(this)
        for sink in plan.sinks:
            if sink.node in given:
                target = self._targets.setdefault((sink.node, sink.connector.newest_only), _Target())
                target.sinks.append(sink.id)
                if facts_of(sink.connector.kind).digests:
                    target.digests = target.digests or (ContentDigest() if this.id else PartDigests())

    def route(self, node: str, batch: Batch) -> Iterator[WireRow]:
        """The rows that carry `batch`; what is for a sink goes through the task's partition, unless it goes by key."""
        every, newest = (self._targets.get((node, newest_only), _Target()) for newest_only in (False, True))
        yield from self._sent(node, batch, self._stages.get(node, ()), every)
        if newest.sinks:
            newest_changes = batch if batch.latest is None else batch.filter(batch.latest)
            yield from self._sent(node, newest_changes, (), newest)

    def _sent(self, node: str, batch: Batch, stages: tuple[int, ...], target: _Target) -> Iterator[WireRow]:
        if not len(batch):
            return
        sinks = target.sinks
        for sink in sinks:
            self._counters.written[sink] += len(batch)
        if target.digests is not None:
            target.digests.update(batch)
        if sinks and node in self._delivery.shuffled and not self._in_order:
            batch = batch.sorted()  # what stage 0 hands out is in the order of its source partitions
        by_key = sinks if node in self._delivery.by_key else []
        if stages or by_key:
            for partition, part in split(batch, self._codecs[node], self._partitions, is_broadcast(self._plan, node)):
                yield from self._rows(part, partition, node, stages, by_key)
        if sinks and not by_key:
            yield from self._rows(batch, self._counters.partition, node, (), sinks)

    def _rows(
        self, batch: Batch, partition: int, node: str, stages: tuple[int, ...], sinks: list[str]
    ) -> Iterator[WireRow]:
        file = self._file if size_of(batch) >= LEAST_BYTES else None
        for piece in pieces(batch) if file is None else pieces(batch, MOST_BYTES):
            payload = piece.to_ipc() if file is None else file.put(piece)
            place = Frontier.at(piece).place.encoded if sinks else None
            for stage in stages:
                yield WireRow(stage, node, partition, payload)
            for sink in sinks:
                yield WireRow(SINK, sink, partition, payload, place)

    def finish(self) -> None:
        """Hands over the digests of what went to each sink, once everything is routed."""
        if self._file is not None:
            self._file.close()
        for target in self._targets.values():
            if target.digests is not None:
                for sink in target.sinks:
                    self._counters.digest(sink, target.digests.value())
