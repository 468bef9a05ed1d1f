"""The rows of the old stores as seeds of the new ones: a Spark job. Only what every partition has to
know of the others reaches the driver."""

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

from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.carry import Carried, Carry
from vsc.runtime.spark.epoch_state import EpochState
from vsc.runtime.spark.hadoop import Files
from vsc.runtime.spark.protocol import Manifest
from vsc.runtime.spark.seeds import packed, seed_line
from vsc.runtime.spark.store_readers import Reader
from vsc.runtime.spark.upgrade.target import SEEDING
from vsc.runtime.state.kv import OrderedKV

__all__ = ["Moved", "State"]

_LINES_A_FILE = 512
"""A file of seeds is read by one task: some 64 MiB."""
_LINES_A_BATCH = 64
_SECONDS = 2.0
"""How often progress is reported, at most."""


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


class State:
    """The state of an old checkpoint, to be carried over by `carry`. `lost`: what is dropped of the rows of tables that
    new operators are given, once `look` has found it out."""

    def __init__(self, state: EpochState, carry: Carry) -> None:
        self._state, self._carry = state, carry
        stages = [stage.id for stage in state.plan.stages if stage.id > 0]
        self._manifests = {stage: state.manifests(stage) for stage in stages}
        self._chunks = {stage: state.blobs(stage, of) for stage, of in self._manifests.items()}
        self._common: list[Carried] = []
        self.lost = Metrics()

    @property
    def size(self) -> int:
        """Bytes of its blobs."""
        texts = (text for of in self._manifests.values() for text in of.values())
        return sum(Manifest.load(text or None).size for text in texts)

    def look(self) -> None:
        """Finds out what all partitions have to know of each other. VscRuntimeError if that cannot be carried over."""
        told = []
        for stage, of in self._manifests.items():
            reader = _Told(stage, of, self._carry)
            told += [
                pickle.loads(bytes(row.told)) for row in self._chunks[stage].mapInArrow(reader, _Told.DDL).collect()
            ]
        for one in told:
            self.lost.merge(one.lost)
        self._common = list(self._carry.common(told))

    def write(self, new: Files, tell: Callable[[str], None]) -> Moved:
        """Writes the seeds into the control source of the new checkpoint. After `look`."""
        started = time.perf_counter()
        done = _Done.of(self._state, len(self._manifests) * self._state.partitions)
        lines = [done.line(*chunk) for chunk in packed(self._common)]
        if lines:
            new.write("vsc/control/seed-common.txt", "".join(f"{line}\n" for line in lines))
        parts = [
            self._chunks[stage].mapInArrow(_Rows(stage, of, self._carry, done), _Rows.DDL)
            for stage, of in self._manifests.items()
        ]
        if parts:
            with done.shown(tell):
                _written(reduce(DataFrame.union, parts), new)
        names = [name for name in new.sizes(SEEDING) if not name.startswith(("_", "."))]
        for number, name in enumerate(names):
            new.rename(f"{SEEDING}/{name}", f"vsc/control/seed-{number:06d}.txt")
        new.delete(SEEDING)
        return Moved(done.rows.value, done.size.value, time.perf_counter() - started)


def _written(lines: DataFrame, new: Files) -> None:
    lines.write.option("maxRecordsPerFile", _LINES_A_FILE).text(new.path(SEEDING))


@dataclass(frozen=True, slots=True)
class _Done:
    """What the tasks that have ended have done."""

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
        """A context in which progress is reported."""
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
    """What other partitions have to know of each partition of a stage."""

    DDL: ClassVar = "told binary"

    def __init__(self, stage: int, manifests: Mapping[int, str], carry: Carry) -> None:
        super().__init__(carry.old, stage, manifests)
        self._carry = carry

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """One row."""
        told = pickle.dumps(self._carry.told(self._stage, partition, kv))
        yield pa.RecordBatch.from_pydict({"told": pa.array([told], pa.binary())})


class _Rows(Reader):
    """The seeds that come of each partition of a stage."""

    DDL: ClassVar = "value string"

    def __init__(self, stage: int, manifests: Mapping[int, str], carry: Carry, done: _Done) -> None:
        super().__init__(carry.old, stage, manifests)
        self._carry, self._done = carry, done

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
