"""A stage on Spark: an epoch of one vsc partition, around the operators' `LaterStage`.

Guarantees: what a call reads and writes is one epoch of one partition; its state follows the state protocol; rows
that are for a later stage, a sink or the driver pass through unchanged. Not for what Spark asks of a stateful
processor: that is `later_stage_processor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pyspark import TaskContext

from vsc.plan.clocks import stepping
from vsc.plan.nodes import Plan
from vsc.runtime.errors import LocalStoreError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.in_step import InStep
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.operators.migrations import migrate
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.steps import end_of_input, gone_on, of_sources, quiet_step, stages_in_step, steps_to
from vsc.runtime.operators.views.catalog import next_due, open_view, stores_of
from vsc.runtime.records import Batch
from vsc.runtime.spark.exchange.blob_files import BlobFiles, blob_of
from vsc.runtime.spark.exchange.counters import StateSize, StoreState, TaskCounters, state_name
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.exchange.wire import WireRow, chunks, slots, wire_columns
from vsc.runtime.spark.stages.routing import Router
from vsc.runtime.spark.stages.steps import unpacked
from vsc.runtime.spark.state.control import clocks, is_drain, quieted
from vsc.runtime.spark.state.local_folder import LocalFolders, opened, removed
from vsc.runtime.spark.state.protocol import Manifest, PartitionState, call_name
from vsc.runtime.spark.state.seeds import SEED, Seeds
from vsc.runtime.state.kv import OrderedKV, OverlayKV
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.sizes import updated_sizes
from vsc.runtime.state.waiting import STEPS

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, ValueState

__all__ = ["LaterStageTask", "epoch"]

BATCH_ID = "streaming.sql.batchId"
_DTYPES = {
    "slot": "int64", "dest": "int32", "port": "object", "partition": "int32", "place": "object", "payload": "object",
}  # fmt: skip


def epoch() -> int:
    """The number of the epoch that this task belongs to; the same again when Spark repeats it."""
    context = TaskContext.get()
    found = context.getLocalProperty(BATCH_ID) if context is not None else None
    if found is None:
        raise RuntimeError("not inside a task of a streaming query")
    return int(found)


@dataclass
class _SparkBlobs:
    """`BlobStore` over the state variables of the current grouping key."""

    value: ValueState
    chunks: MapState
    fresh: list[tuple[str, int]] = field(default_factory=list)

    def manifest(self) -> str | None:
        found = self.value.get()
        return None if found is None else found[0]

    def set_manifest(self, text: str) -> None:
        self.value.update((text,))

    def get(self, blob: str, chunk: int) -> bytes | None:
        found = self.chunks.getValue((blob, chunk))
        return None if found is None else bytes(found[0])

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        self.chunks.updateValue((blob, chunk), (data,))
        self.fresh.append((blob, chunk))

    def remove(self, blob: str, chunk: int) -> None:
        self.chunks.removeKey((blob, chunk))

    def take_back(self) -> None:
        """Removes what the call has stored so far."""
        for blob, chunk in self.fresh:
            self.remove(blob, chunk)
        self.fresh = []


def _spill_much(state: PartitionState, call: str) -> None:
    """Keeps what the call holds in memory small: each store's sums are written with what they count."""
    if state.outgrown:
        updated_sizes(state.kv, state.below)
        state.spill(call)


@dataclass(frozen=True, slots=True)
class LaterStageTask:
    """One stage (number >= 1) of a plan; `observe` are the nodes whose records leave it for sinks."""

    plan: Plan
    stage: int
    partitions: int
    options: RunOptions
    folders: LocalFolders
    observe: frozenset[str]
    files: BlobFiles | None = None

    def run(
        self, slot: int, rows: Iterator[pd.DataFrame], manifest_state: ValueState, blob_state: MapState
    ) -> Iterator[pd.DataFrame]:
        """One epoch of the partition in `slot`: what comes out. The partition's state is in the two state variables."""
        started = time.perf_counter()
        blobs = _SparkBlobs(manifest_state, blob_state)
        partition = self._partition(slot)
        mine: list[WireRow] = []
        seeds = Seeds(blobs, call_name(epoch(), self.stage, partition))
        for frame in rows:
            is_mine = frame["dest"] == self.stage
            for row in _wire_rows(frame[is_mine]):
                if row.port == SEED:
                    seeds.take(row.payload)
                else:
                    mine.append(row)
            if not is_mine.all():
                yield frame[~is_mine]
        seeds.settle()
        mine.sort(key=lambda row: (row.port, row.payload))  # a shuffle leaves them in any order
        if not mine and not seeds.taken:
            return  # all of it is for later stages: the state stays as it is
        manifest = Manifest.load(blobs.manifest())
        with self.folders.partition(self.stage, partition) as folder:
            work = partial(self._frames, blobs, partition, folder, manifest, mine, started)
            try:
                frames = work()
                first = next(frames)
            except LocalStoreError:
                # What is on the local disk is only a copy: once more, with a new one.
                removed(folder)
                blobs.take_back()
                frames = work()
                first = next(frames)
            yield first
            try:
                yield from frames
            except LocalStoreError:
                removed(folder)  # for the task that Spark starts in place of this one
                raise

    def _frames(
        self,
        blobs: _SparkBlobs,
        partition: int,
        folder: Path,
        manifest: Manifest,
        mine: list[WireRow],
        started: float,
    ) -> Iterator[pd.DataFrame]:
        """What the partition gives out; before the last frame, its state is committed.

        LocalStoreError if what is in `folder` is damaged.
        """
        blobs.fresh = []
        counters = TaskCounters(self.stage, partition)
        router = Router(self.plan, self.partitions, counters, self.files)
        out: list[WireRow] = []
        is_new = not folder.exists()

        def remove(damaged: Path) -> None:
            nonlocal is_new
            is_new = True
            removed(damaged)

        with opened(folder, manifest, remove=remove) as base:
            counters.restored = int(is_new and bool(manifest.blobs))
            state = PartitionState.open(blobs, base, manifest)
            migrate(self.plan, self.stage, state.kv)
            call = call_name(epoch(), self.stage, partition)
            task = LaterStage(self.plan, self.stage, state.kv, self.options, self.observe, partition=partition)
            counters.mark("open", started)
            in_step = InStep(state.kv, {n.name: n.schema for n in self.plan.nodes})
            for result in self._results(task, in_step, mine, partial(_spill_much, state, call), counters):
                yield from self._given_out(out)  # what has waited may be much: it goes on portion by portion
                out = []
                counters.metrics.merge(result.metrics)
                for node, batch in result.batches:
                    out.extend(router.route(node, batch))
            counters.mark("process", started)
            stores = self._store_states(state.kv, state.below)
            due = [] if self.plan.quiet is None else next_due(self.plan, self.plan.stages[self.stage], state.kv)
            committed = state.commit(call)
            live = sum(store.rows for store in stores.values())
            counters.state = StateSize(
                live, committed.size, task.held, len(committed.blobs), len(in_step), stores, in_step.steps, due
            )
        counters.mark("commit", started)
        router.finish()
        out.append(counters.row())
        yield from self._given_out(out)

    def _results(
        self,
        task: LaterStage,
        in_step: InStep,
        rows: list[WireRow],
        between: Callable[[], None],
        counters: TaskCounters,
    ) -> Iterator[StageResult]:
        """What the stage makes of the records that may go on, in one portion or more; calls `between` them."""
        told, pace = [row.payload for row in rows if not row.port], Pace.here()
        clock, steps_on = dict(pace.starts), stepping(self.plan)[self.stage]
        counters.quieted = quieted(told)
        drain = any(map(is_drain, told))
        frontier = None
        if not drain and self.stage in stages_in_step(self.plan):
            ranks = {node.name: node.source.rank for node in self.plan.sources}
            frontier = pace.frontier(ranks, clocks(told))
        inputs = [self._input(row) for row in rows if row.port]
        inputs += self._quiet(counters, clock)
        ends_by_step = drain and self.plan.clock == "input"  # together with what earlier stages emit at the end
        for number, portion in enumerate(in_step.portions(inputs + [(STEPS, end_of_input())] * ends_by_step, frontier)):
            if number:
                between()
            passed = gone_on(portion)
            for result in task.portions(of_sources(portion, steps_on), starts=clock, quiet=pace.quiet):
                yield result
                del result
                between()
            del portion  # before the next one is made
            for source, highest in passed.items():
                counters.passed(source, highest)
                clock[source] = max(highest, clock.get(source, highest))
        if drain and not ends_by_step:
            between()
            yield task.process((), drain=True, starts=clock)

    def _quiet(self, counters: TaskCounters, starts: Mapping[str, int]) -> Iterator[tuple[str, Batch]]:
        """The steps of sources that bring nothing, as far as this partition takes their steps."""
        taking = steps_to(self.plan) if counters.quieted else {}
        for source, until in counters.quieted.items():
            to = taking.get(source)
            if to is None or self.stage not in to.stages or until <= starts.get(source, -1):
                continue
            if counters.partition in to.partitions(self.stage, self.partitions, wait=True):
                yield STEPS, quiet_step(self.plan, source, until)

    def _input(self, row: WireRow) -> tuple[str, Batch]:
        if row.port == STEPS:
            return STEPS, unpacked(row.payload)
        return row.port, Batch.from_ipc(blob_of(row.payload), self.plan.node(row.port).schema)

    def _store_states(self, kv: OverlayKV, base: OrderedKV) -> dict[str, StoreState]:
        """What there is in each store, by name. Writes the sums beside the stores, so before the state is committed."""
        sizes, found = updated_sizes(kv, base), {}
        for store in stores_of(self.plan):
            if store.stage == self.stage:
                now = open_view(self.plan, store, kv)
                found[state_name(store)] = StoreState(
                    *sizes.get(store_root(store.prefix), (0, 0)), now.held, now.stream_time
                )
        return found

    def _partition(self, slot: int) -> int:
        """The vsc partition; checks that Spark put it where its state is alone."""
        partition = slots(self.partitions).index(slot)
        context = TaskContext.get()
        if context is not None and context.partitionId() != partition:
            raise RuntimeError(f"vsc partition {partition} was placed in shuffle partition {context.partitionId()}")
        return partition

    def _given_out(self, out: list[WireRow]) -> Iterator[pd.DataFrame]:
        keys = slots(self.partitions)
        for rows in chunks(out):
            columns = wire_columns(rows, keys).items()
            yield pd.DataFrame({name: pd.Series(values, dtype=_DTYPES[name]) for name, values in columns})


def _wire_rows(frame: pd.DataFrame) -> list[WireRow]:
    columns = (frame["dest"], frame["port"], frame["partition"], frame["payload"])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [WireRow(int(dest), port, int(partition), payload) for dest, port, partition, payload in rows]
