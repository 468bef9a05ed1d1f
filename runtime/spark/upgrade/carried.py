"""The rows of the old stores as seeds of the new ones: a Spark job. Only what every partition has to
know of the others reaches the driver."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from threading import Event, Thread

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from vsc.plan.words import bytes_text, counted, rounded_duration
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.carry import Carried, Carry
from vsc.runtime.spark.base.folders import is_hidden
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.state.seeds import packed, seed_line
from vsc.runtime.state.kv import OrderedKV

__all__ = ["SEEDING", "CarriedOver", "State"]

SEEDING = "vsc/seeding"
"""Where seeds are written before they are moved to the control source."""

_LINES_A_FILE = 512
"""A file of seeds is read by one task: some 64 MiB."""
_LINES_A_BATCH = 64
_SECONDS = 2.0
"""How often progress is reported, at most."""


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What has been carried over: rows, their bytes as they are written, and how long that took."""

    rows: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        """For people."""
        rate = bytes_text(int(self.bytes / max(self.seconds, 0.001)))
        took = rounded_duration(int(self.seconds * 1000))
        return f"{counted(self.rows, 'row')}, {bytes_text(self.bytes)} in {took} ({rate}/s)"


class State:
    """The state of an old checkpoint, to be carried over by `carry`. Once `look` has found it out: `lost`, what is
    dropped of the rows of tables that new operators are given; by store, how many rows are dropped that it `held` back
    and how many are left out, `purged`; and how many records are `waiting` for other sources."""

    def __init__(self, state: EpochState, carry: Carry) -> None:
        self._state, self.carry = state, carry
        stages = [stage.id for stage in state.plan.stages if stage.id > 0]
        self._manifests = {stage: state.manifests(stage) for stage in stages}
        self._common: list[Carried] = []
        self.lost = Metrics()
        self.held: Counter[str] = Counter()
        self.purged: Counter[str] = Counter()
        self.waiting = 0

    @property
    def size(self) -> int:
        """Bytes of its blobs."""
        return sum(manifest.size for of in self._manifests.values() for manifest in of.values())

    def look(self) -> None:
        """Finds out what all partitions have to know of each other. VscRuntimeError if that cannot be carried over."""
        told = []
        for stage, of in self._manifests.items():
            frame = self._state.asked(stage, of, partial(_told, self.carry, stage), "told binary")
            told += [pickle.loads(bytes(row.told)) for row in frame.collect()]
        for one in told:
            self.lost.merge(one.lost)
            self.held.update(one.held)
            self.purged.update(one.purged)
            self.waiting += sum(records for _, records in one.waiting.values()) - sum(one.steps.values())
        self._common = list(self.carry.common(told))

    def write(self, new: Files, tell: Callable[[str], None]) -> CarriedOver:
        """Writes the seeds into the control source of the new checkpoint. After `look`."""
        started = time.perf_counter()
        count = self._state.spark.sparkContext.accumulator
        done = _Done(count(0), count(0), count(0))
        lines = [done.line(*chunk) for chunk in packed(self._common)]
        if lines:
            new.write("vsc/control/seed-common.txt", "".join(f"{line}\n" for line in lines))
        parts = [
            self._state.asked(stage, of, partial(_seeds, self.carry, stage, done), "value string")
            for stage, of in self._manifests.items()
        ]
        if parts:
            frame = reduce(DataFrame.union, parts)
            with done.shown(len(parts) * self._state.partitions, tell):
                frame.write.option("maxRecordsPerFile", _LINES_A_FILE).text(new.path(SEEDING))
        names = [name for name in new.sizes(SEEDING) if not is_hidden(name)]
        for number, name in enumerate(names):
            new.rename(f"{SEEDING}/{name}", f"vsc/control/seed-{number:06d}.txt")
        new.delete(SEEDING)
        return CarriedOver(done.rows.value, done.size.value, time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class _Done:
    """What the tasks that have ended have done."""

    rows: Accumulator[int]
    size: Accumulator[int]
    partitions: Accumulator[int]

    def line(self, stage: int, partition: int, rows: int, chunk: bytes) -> str:
        """The line for a chunk of `packed`, which is counted."""
        self.rows.add(rows)
        self.size.add(len(chunk))
        return seed_line(stage, partition, chunk)

    @contextmanager
    def shown(self, all_: int, tell: Callable[[str], None]) -> Iterator[None]:
        """A context in which progress is reported, of `all_` partitions."""
        end = Event()

        def run() -> None:
            last = 0
            while not end.wait(_SECONDS):
                if self.partitions.value != last:
                    last = self.partitions.value
                    tell(
                        f"{last} of {all_} partitions: {counted(self.rows.value, 'row')}, {bytes_text(self.size.value)}"
                    )

        thread = Thread(target=run, name="vsc-upgrade", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


def _told(carry: Carry, stage: int, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
    """What other partitions have to know of one."""
    told = pickle.dumps(carry.told(stage, partition, kv))
    yield pa.RecordBatch.from_pydict({"told": pa.array([told], pa.binary())})


def _seeds(carry: Carry, stage: int, done: _Done, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
    """The seeds that come of a partition, as lines of the control source."""
    lines = (done.line(*chunk) for chunk in packed(carry.rows(stage, partition, kv)))
    while some := list(islice(lines, _LINES_A_BATCH)):
        yield pa.RecordBatch.from_pydict({"value": pa.array(some, pa.string())})
    done.partitions.add(1)
