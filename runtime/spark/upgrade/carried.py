"""The rows of the old stores as seeds of the new ones: a job of Spark's, in which nothing comes to the driver but what
every partition has to know of the others."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from threading import Event, Thread
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from vsc.runtime.spark.epoch_state import EpochState
from vsc.runtime.spark.hadoop import Files
from vsc.runtime.spark.seeds import packed, seed_line
from vsc.runtime.spark.store_readers import Reader
from vsc.runtime.spark.upgrade.carry import Carry
from vsc.runtime.spark.upgrade.target import SEEDING
from vsc.runtime.state.kv import OrderedKV

__all__ = ["Moved", "carry_over"]

_LINES_A_FILE = 512
"""A file of seeds is read by one task: some 64 MiB."""
_LINES_A_BATCH = 64
_SECONDS = 2.0
"""How often progress is told, at most."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What has been carried over: rows, their bytes as they are written, and how long that took."""

    rows: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        """For people."""
        mb = self.bytes / 1e6
        return f"{self.rows:,} rows, {mb:.1f} MB in {self.seconds:.1f} s ({mb / max(self.seconds, 0.001):.1f} MB/s)"


def carry_over(state: EpochState, carry: Carry, new: Files, tell: Callable[[str], None]) -> Moved:
    """Writes the seeds into the control source of the new checkpoint."""
    started = time.perf_counter()
    stages = [stage.id for stage in state.plan.stages if stage.id > 0]
    if not stages:
        return Moved(0, 0, time.perf_counter() - started)
    manifests = {stage: state.manifests(stage) for stage in stages}
    chunks = {stage: state.blobs(stage, manifests[stage]) for stage in stages}
    told = []
    for stage in stages:
        reader = _Told(stage, manifests[stage], carry)
        told += [pickle.loads(bytes(row.told)) for row in chunks[stage].mapInArrow(reader, _Told.DDL).collect()]
    done = _Done.of(state, len(stages) * state.partitions)
    parts = [chunks[stage].mapInArrow(_Rows(stage, manifests[stage], carry, done), _Rows.DDL) for stage in stages]
    lines = [done.line(*chunk) for chunk in packed(carry.common(told))]
    new.write(f"{SEEDING}/common.txt", "".join(f"{line}\n" for line in lines))
    with done.shown(tell):
        _written(reduce(DataFrame.union, parts), new)
    for number, name in enumerate(sorted(new.sizes(f"{SEEDING}/rows"))):
        if not name.startswith(("_", ".")):
            new.rename(f"{SEEDING}/rows/{name}", f"vsc/control/seed-{number:06d}.txt")
    new.rename(f"{SEEDING}/common.txt", "vsc/control/seed-common.txt")
    new.delete(SEEDING)
    return Moved(done.rows.value, done.size.value, time.perf_counter() - started)


def _written(lines: DataFrame, new: Files) -> None:
    lines.write.option("maxRecordsPerFile", _LINES_A_FILE).text(new.path(f"{SEEDING}/rows"))


@dataclass(frozen=True, slots=True)
class _Done:
    """What tasks have done, as far as they have ended."""

    rows: Accumulator[int]
    size: Accumulator[int]
    partitions: Accumulator[int]
    all: int

    @classmethod
    def of(cls, state: EpochState, partitions: int) -> _Done:
        context = state.spark.sparkContext
        return cls(context.accumulator(0), context.accumulator(0), context.accumulator(0), partitions)

    def line(self, stage: int, partition: int, rows: int, chunk: bytes) -> str:
        """The line for a chunk of `packed`, which is counted."""
        self.rows.add(rows)
        self.size.add(len(chunk))
        return seed_line(stage, partition, chunk)

    def shown(self, tell: Callable[[str], None]) -> _Shown:
        """A context in which progress is told."""
        return _Shown(self, tell)


class _Shown:
    def __init__(self, done: _Done, tell: Callable[[str], None]) -> None:
        self._done, self._tell, self._end = done, tell, Event()
        self._thread = Thread(target=self._run, name="vsc-upgrade", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        last = 0
        while not self._end.wait(_SECONDS):
            done = self._done
            if done.partitions.value != last:
                last = done.partitions.value
                so_far = f"{done.rows.value:,} rows, {done.size.value / 1e6:.1f} MB"
                self._tell(f"{last} of {done.all} partitions: {so_far}")


class _Told(Reader):
    """What the others have to know of each partition of a stage."""

    DDL: ClassVar = "told binary"

    def __init__(self, stage: int, manifests: Mapping[int, str], carry: Carry) -> None:
        super().__init__(manifests)
        self._stage, self._carry = stage, carry

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """One row."""
        told = pickle.dumps(self._carry.told(self._stage, partition, kv))
        yield pa.RecordBatch.from_pydict({"told": pa.array([told], pa.binary())})


class _Rows(Reader):
    """The seeds that come of each partition of a stage."""

    DDL: ClassVar = "value string"

    def __init__(self, stage: int, manifests: Mapping[int, str], carry: Carry, done: _Done) -> None:
        super().__init__(manifests)
        self._stage, self._carry, self._done = stage, carry, done

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """Lines of the control source."""
        chunks = packed(self._carry.rows(self._stage, partition, kv))
        yield from _batches(self._done.line(*chunk) for chunk in chunks)
        self._done.partitions.add(1)


def _batches(lines: Iterable[str]) -> Iterator[pa.RecordBatch]:
    some: list[Any] = []
    for line in lines:
        some.append(line)
        if len(some) == _LINES_A_BATCH:
            yield pa.RecordBatch.from_pydict({"value": pa.array(some, pa.string())})
            some = []
    if some:
        yield pa.RecordBatch.from_pydict({"value": pa.array(some, pa.string())})
