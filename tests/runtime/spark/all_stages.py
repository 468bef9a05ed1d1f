"""All tasks of a query, epoch by epoch, as Spark would run them, without Spark: sources, stages, pace, restarts.

What is real: the tasks, their state and its blobs, the driver's pace. What Spark does is done here: rows go to the
task of their slot, and state that was not committed is gone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import TaskContext

from tests.oracle.epochs import EpochRow
from tests.runtime.spark.one_stage import Value
from vsc.plan.nodes import Plan
from vsc.runtime.operators.carry import Carry
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch
from vsc.runtime.spark.connectors.spark_source import Backlog, Input
from vsc.runtime.spark.exchange.blob_files import BlobFiles, blob_of
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.delivery import delivery
from vsc.runtime.spark.exchange.pace import PROPERTY, Pace
from vsc.runtime.spark.exchange.wire import CONTROL, SINK, WIRE_ARROW, WireRow, record_batches, slots
from vsc.runtime.spark.formats.source_columns import PART
from vsc.runtime.spark.query.pacer import Pacer
from vsc.runtime.spark.stages.later_stage import BATCH_ID, LaterStageTask, _SparkBlobs
from vsc.runtime.spark.stages.stage_zero import StageZeroTask
from vsc.runtime.spark.state.control import DRAIN, START, WAKE
from vsc.runtime.spark.state.local_folder import LocalFolders, opened
from vsc.runtime.spark.state.protocol import Manifest, PartitionState
from vsc.runtime.spark.state.seeds import SEED, packed
from vsc.runtime.values import arrow_type, from_python, to_array

__all__ = ["AllStages", "File"]

OPTIONS = RunOptions(on_error="drop")


@dataclass(frozen=True)
class File:
    """A file of a source, with all that it holds."""

    source: str
    name: str
    rows: Sequence[EpochRow]


@dataclass
class _Chunks:
    kept: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def getValue(self, key: tuple[str, int]) -> tuple[bytes] | None:
        return (self.kept[key],) if key in self.kept else None

    def updateValue(self, key: tuple[str, int], row: tuple[bytes]) -> None:
        self.kept[key] = row[0]

    def removeKey(self, key: tuple[str, int]) -> None:
        del self.kept[key]


@dataclass
class _Kept:
    """What the checkpoint keeps of epochs."""

    paces: dict[int, str] = field(default_factory=dict)
    reports: dict[int, EpochReport] = field(default_factory=dict)
    wakes: int = 0

    def pace(self, epoch: int) -> str | None:
        return self.paces.get(epoch)

    def keep_pace(self, epoch: int, pace: str) -> None:
        self.paces[epoch] = pace

    def report(self, epoch: int) -> EpochReport | None:
        found = self.reports.get(epoch)
        return None if found is None else EpochReport.from_dict(found.as_dict())

    def newest(self) -> EpochReport | None:
        return self.report(max(self.reports)) if self.reports else None

    def request_wake(self) -> None:
        self.wakes += 1


@dataclass(frozen=True)
class _Input(Input):
    query: AllStages
    source: str

    def backlog(self) -> Backlog:
        left = self.query.left(self.source)
        return Backlog(min((file.name for file in left if file.rows), default=None), len(left))


class AllStages:
    """A query of `plan` over `files`, which it takes in their order. `sent` is what came out for the sinks, by node."""

    def __init__(
        self, plan: Plan, files: Sequence[File], partitions: int, folder: Path, patch: pytest.MonkeyPatch
    ) -> None:
        self.plan, self.partitions, self._patch = plan, partitions, patch
        self._files: dict[str, list[File]] = {}
        for file in files:
            self._files.setdefault(file.source, []).append(file)
        folders = LocalFolders(str(folder), f"ck{partitions}", "run")
        blobs = BlobFiles.made(folders.home())
        observe = frozenset(sink.node for sink in plan.sinks)
        self._tasks = {
            stage.id: LaterStageTask(plan, stage.id, partitions, OPTIONS, folders, observe, blobs)
            for stage in plan.stages[1:]
        }
        self._folders, self._blobs = folders, blobs
        self.state = {(s, p): (Value(), _Chunks()) for s in self._tasks for p in range(partitions)}
        self.kept, self.epoch = _Kept(), 0
        self._first = {id: node for node, id in {sink.node: sink.id for sink in reversed(plan.sinks)}.items()}
        self._seeds: list[WireRow] = []
        self.sent: dict[str, list[Batch]] = {sink.node: [] for sink in plan.sinks}
        self.reports: list[EpochReport] = []
        self._told = Pace().dump()
        self._pacer = self._begun()

    def feed(self, file: File) -> None:
        """One more file."""
        self._files.setdefault(file.source, []).append(file)

    def left(self, source: str) -> list[File]:
        """The files that were not handed out yet."""
        return self._files.get(source, [])

    @property
    def unread(self) -> int:
        """How many files were not handed out yet."""
        return sum(map(len, self._files.values()))

    def restart(self) -> None:
        """Goes on as another run of the query."""
        self._pacer = self._begun()
        self._pacer.resume()

    def run(self, takes: Mapping[str, int], *, drain: bool = False, wake: bool = False, crash: bool = False) -> None:
        """An epoch of so many files of each source.

        `crash`: it runs, is not committed, and runs again, where the rows come in another order. What it keeps has to
        be the same then, byte by byte, but for seeds.
        """
        taken = [file for name in self._files for file in self._files[name][: takes.get(name, 0)]]
        for name in self._files:
            del self._files[name][: takes.get(name, 0)]
        lines = ([START] if self.epoch == 0 else []) + ([DRAIN] if drain else []) + ([WAKE] if wake else [])
        before = copy.deepcopy(self.state)
        report, sent = self._ran(taken, lines)
        if crash:
            lost, self.state = self.state, before
            self._pacer = self._begun()
            self._pacer.resume()
            report, sent = self._ran(taken, lines, again=True)
            assert self._seeds or self.state == lost
        self.kept.reports[self.epoch] = report
        self._pacer.done(report)
        self.reports.append(report)
        self._seeds, self.epoch = [], self.epoch + 1
        for node, batches in sent.items():
            shuffled = node in delivery(self.plan).shuffled
            self.sent[node] += [Batch.concat(batches).sorted()] if shuffled and batches else batches

    def carried(self, partitions: int, folder: Path) -> AllStages:
        """The query that goes on from this one in so many partitions."""
        new = AllStages(self.plan, [], partitions, folder, self._patch)
        new._files = self._files
        carry = Carry.of(self.plan, self.plan, self.partitions, partitions, frozenset(), frozenset())
        told, rows = [], []
        for (stage, partition), (manifest, chunks) in self.state.items():
            blobs = _SparkBlobs(cast(Any, manifest), cast(Any, chunks))
            known = Manifest.load(blobs.manifest())
            with self._folders.partition(stage, partition) as own, opened(own, known) as base:
                kv = PartitionState.open(blobs, base, known).kv
                told.append(carry.told(stage, partition, kv))
                rows += list(carry.rows(stage, partition, kv))
        rows += list(carry.common(told))
        new._seeds = [WireRow(stage, SEED, partition, chunk) for stage, partition, _, chunk in packed(rows)]
        last = Pace.load(self.kept.paces[self.epoch - 1])
        report = self.kept.reports[self.epoch - 1]
        starts, waiting = last.clocks_after(report), sum(last.left(report).values())
        waits = {name: type(w)(max(w.clock, report.clocks.get(name, -1))) for name, w in last.waits.items()}
        new.kept.keep_pace(-1, Pace(waits, {"1-0": waiting} if waiting else {}, starts=starts).dump())
        new.sent = self.sent
        return new

    def _begun(self) -> Pacer:
        return Pacer(
            cast(Any, self.kept), lambda: {n.name: _Input(self, n.name) for n in self.plan.sources}, self._tell
        )

    def _tell(self, pace: str) -> None:
        self._told = pace

    def _ran(
        self, files: Sequence[File], lines: Iterable[str], again: bool = False
    ) -> tuple[EpochReport, dict[str, list[Batch]]]:
        self._pacer.decide(self.epoch)
        rows = [WireRow(s, "", p, line.encode()) for line in lines for s in self._tasks for p in range(self.partitions)]
        frames = [_frame(rows + self._seeds, self.partitions)] if rows or self._seeds else []
        for file in files:
            self._as_task(0)
            task = StageZeroTask(self.plan, file.source, self.partitions, OPTIONS, files=self._blobs)
            frames += [batch.to_pandas() for batch in task([self._table(file)])]
        for stage, task_of in self._tasks.items():
            frames = self._through(stage, task_of, frames, again)
        counters: list[bytes] = []
        sent: dict[str, list[Batch]] = {}
        rows_out = (zip(frame.dest, frame.port, frame.payload, strict=True) for frame in frames)
        for dest, port, payload in chain.from_iterable(rows_out):
            if dest == CONTROL:
                counters.append(payload)
            elif dest == SINK:
                node = self._first.get(port)
                if node is None:
                    continue
                sent.setdefault(node, []).append(Batch.from_ipc(blob_of(payload), self.plan.node(node).schema))
        self._blobs.clear()
        return EpochReport.gather(self.epoch, counters), sent

    def _through(
        self, stage: int, task: LaterStageTask, frames: list[pd.DataFrame], backwards: bool
    ) -> list[pd.DataFrame]:
        whole = pd.concat(frames) if frames else None
        if whole is not None and backwards:
            whole = whole[::-1]
        out = []
        for partition, slot in enumerate(slots(self.partitions)):
            mine = None if whole is None else whole[whole.slot == slot]
            if mine is not None and len(mine):
                self._as_task(partition)
                out += list(task.run(slot, iter([mine]), *cast(Any, self.state[stage, partition])))
        return out

    def _as_task(self, partition: int) -> None:
        context = object.__new__(TaskContext)
        context._partitionId = partition
        context._localProperties = {BATCH_ID: str(self.epoch), PROPERTY: self._told}
        self._patch.setattr(TaskContext, "_taskContext", context)

    def _table(self, file: File) -> pa.RecordBatch:
        columns = self.plan.node(file.source).source.columns
        arrays = [
            to_array([None if (v := r.row.get(c.name)) is None else from_python(v, c.type) for r in file.rows], c.type)
            for c in columns
        ]
        names = [*(f"c{i}" for i in range(len(columns))), PART]
        types = [arrow_type(c.type) for c in columns]
        arrays = [array.cast(type) for array, type in zip(arrays, types, strict=True)]
        return pa.RecordBatch.from_arrays([*arrays, pa.array([file.name] * len(file.rows))], names=names)


def _frame(rows: Sequence[WireRow], partitions: int) -> pd.DataFrame:
    table = pa.Table.from_batches(record_batches(rows, slots(partitions)), schema=WIRE_ARROW)
    return cast(pd.DataFrame, table.to_pandas())
