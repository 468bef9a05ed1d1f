"""The source task: turns rows that Spark has read into blobs of records, stage 0 of the plan, in mapInArrow.

Guarantees: a row's place in D12's order is its file (or source partition) and its number in it, counted here, in the
task that reads the whole file; the running maximum of event time is carried through it from batch to batch. Bad rows
are counted, or stop the run, as the options say.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from vsc.plan.connectors import facts_of
from vsc.plan.nodes import Plan
from vsc.runtime.errors import SourceError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.source.partition_folders import FolderValue, folder_values
from vsc.runtime.operators.source.stage_zero import StageZero
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.records import Batch, Origin
from vsc.runtime.spark.exchange.blob_files import BlobFiles
from vsc.runtime.spark.exchange.counters import TaskCounters
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.exchange.wire import WIRE_DDL, record_batches, size_of, slots
from vsc.runtime.spark.formats.csv import runs
from vsc.runtime.spark.formats.source_columns import INDEX, PART, START, RowReader
from vsc.runtime.spark.formats.source_rows import source_rows
from vsc.runtime.spark.session.loaded import keep_loaded
from vsc.runtime.spark.stages.routing import Router
from vsc.runtime.spark.stages.steps import StepsRouter
from vsc.runtime.spark.state.control import clock_rows
from vsc.runtime.state.waiting import STEPS

__all__ = ["StageZeroTask", "stage_zero"]

FLUSH_ROWS, FLUSH_BYTES = 1 << 17, 64 << 20
"""How much is routed at once, records or bytes: more of them make fewer and bigger blobs, and need more memory."""

GATHERED_ROWS, GATHERED_BYTES = 1 << 15, 64 << 20
"""How much of what Spark hands in is worked on at once: so many rows, or as many as have so many bytes."""


@dataclass(frozen=True)
class StageZeroTask:
    """For mapInArrow over the rows of source `source`: declared columns, then `source_columns` as they apply.

    With `reader`, over whatever that makes the rows of.
    """

    plan: Plan
    source: str
    partitions: int
    options: RunOptions
    reader: RowReader | None = None
    files: BlobFiles | None = None

    @property
    def __name__(self) -> str:
        """What Spark's plan calls it."""
        return f"stage 0: {self.source}"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The blobs, then how far the source has come, if stages ask, and the counters of the task."""
        started = time.perf_counter()
        context = TaskContext.get()
        here = context.partitionId() % self.partitions if context is not None else 0
        counters = TaskCounters(0, here)
        router, pace = Router(self.plan, self.partitions, counters, self.files), Pace.here()
        steps = StepsRouter(self.plan, self.source, self.partitions, pace)
        files = _Files(self, counters, pace, steps)
        keys = slots(self.partitions)
        rows = _gathered(map(_sound, batches))
        for node, records in files.portions(rows if self.reader is None else _gathered(self.reader(rows))):
            routed = steps.route(records) if node == STEPS else router.route(node, records)
            yield from record_batches(routed, keys)
        router.finish()
        counters.mark("process", started)
        if files.highest >= 0 and self.plan.clock == "input" and not pace.calls:  # all of it goes on
            counters.passed(self.source, files.highest)
        last = [counters.row()]
        stages = stages_in_step(self.plan)
        if stages and pace.calls:
            last += clock_rows(self.source, files.highest, stages, self.partitions)
        yield from record_batches(last, keys)
        keep_loaded()


def stage_zero(frame: DataFrame, work: StageZeroTask) -> DataFrame:
    """The blobs of a source's rows.

    PySpark looks the columns of mapInArrow up by name and reads a name with a dot or a backtick in it as a path, so the
    declared columns, which are taken by their place, lose their names on the way.
    """
    names = [name if name.startswith("_vsc_") else f"_vsc_column_{i}" for i, name in enumerate(frame.columns)]
    return frame.toDF(*names).mapInArrow(work, WIRE_DDL)


class _Files:
    """Runs stage 0 file by file, and keeps its records until there are enough of them."""

    def __init__(self, task: StageZeroTask, counters: TaskCounters, pace: Pace, steps: StepsRouter) -> None:
        self._source = task.plan.node(task.source).source
        self._name = task.source
        self._in_folders = self._source.columns if facts_of(self._source.connector.kind).in_folders else ()
        observe = frozenset(sink.node for sink in task.plan.sinks)
        self._stage = StageZero(task.plan, task.options, observe, pace.latest)
        self._counters, self._steps = counters, steps
        self._batches: dict[str, list[Batch]] = {}
        self._part: str | None = None
        self._folders: dict[int, FolderValue] = {}
        self._row = 0
        self._clock: int | None = None
        self._waiting = self._bytes = 0
        self.highest = -1
        """The highest event time so far; -1 without any."""

    def portions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Batch]]:
        """The records of rows as Spark read them, whenever they are enough to be routed, and at the end: one batch a
        node, in the order in which stage 0 hands them out."""
        for batch in batches:
            for part, rows in self._runs(batch):
                if part != self._part:
                    self._part, self._row, self._clock = part, 0, None
                    self._folders = folder_values(unquote(part), self._in_folders)
                self._process(rows)
            if self._waiting >= FLUSH_ROWS or self._bytes >= FLUSH_BYTES:
                yield from self._taken()
        yield from self._taken()

    def _taken(self) -> Iterator[tuple[str, Batch]]:
        found, self._batches, self._waiting, self._bytes = self._batches, {}, 0, 0
        for node, batches in found.items():
            yield node, Batch.concat(batches)

    def _process(self, rows: pa.RecordBatch) -> None:
        n = rows.num_rows
        origin = Origin(self._name, self._source.rank, unquote(self._part or ""))
        found = source_rows(self._source, origin, rows, self._row + 1, self._folders)
        self._row += n
        result = self._stage.process(self._name, found, self._clock)
        self._clock = result.clock
        if result.clock is not None:
            self.highest = max(self.highest, result.clock)
            self._counters.clock(self._name, result.clock)
        self._counters.read[self._name] += n
        self._counters.metrics.merge(result.metrics)
        if result.seen is not None:
            self._counters.time(self._name, result.seen)
        for node, records in result.batches:
            if node == STEPS:
                records = self._steps.needed(records)
            if len(records):
                self._batches.setdefault(node, []).append(records)
                self._waiting += len(records)
                self._bytes += size_of(records)

    def _runs(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The stretches of rows of one source partition."""
        names = batch.schema.names
        if batch.num_rows == 0:
            return
        if START in names and pc.max(batch.column(START)).as_py():
            raise self._split()
        if PART not in names:
            yield "", batch
        elif INDEX in names:
            yield from self._indexed_runs(batch)
        else:
            yield from runs(batch, names.index(PART))

    def _indexed_runs(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The runs of rows of one file, where only the first row of a file holds its path."""
        index = batch.column(INDEX).to_numpy()
        starts = [0, *(int(i) for i in np.flatnonzero(index == 0) if i), batch.num_rows]
        for start, end in pairwise(starts):
            part = batch.column(PART)[start].as_py() if index[start] == 0 else self._part
            if part is None or int(index[start]) not in (0, self._row):
                raise self._split()
            yield part, batch.slice(start, end - start)

    def _split(self) -> SourceError:
        return SourceError(f"source '{self._name}': a file was split between tasks", "report this as a bug in vsc")


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with all offsets. A JVM sends none for lists inside of lists where there are none (say, where all are
    null), and what Arrow reads in their place may end the process; what is concatenated has them."""
    if not any(map(pa.types.is_nested, batch.schema.types)):
        return batch
    columns = [pa.concat_arrays([c, c[:0]]) if pa.types.is_nested(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's batches, which are small, put together: what is done once a batch is done less often."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield from _joined(waiting)
            waiting, rows, size = [], 0, 0
    yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if len(batches) > 1 else batches
