"""Stage 1 of a plan in its only partition, called epoch by epoch as Spark would call it, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import TaskContext

from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch
from vsc.runtime.spark.exchange.pace import PROPERTY, Pace
from vsc.runtime.spark.exchange.wire import pieces, slots
from vsc.runtime.spark.stages.later_stage import BATCH_ID, LaterStageTask, _SparkBlobs
from vsc.runtime.spark.stages.later_stage_processor import LaterStageProcessor
from vsc.runtime.spark.state.local_folder import LocalFolders
from vsc.runtime.spark.state.protocol import BlobStore

__all__ = ["OneStage", "Value"]


@dataclass
class Value:
    """Spark's state variable of one value."""

    row: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.row

    def update(self, row: tuple[Any, ...]) -> None:
        self.row = row


@dataclass
class Chunks:
    """Spark's state variable that holds blobs; here they are files, so that they take no memory."""

    folder: Path
    kept: dict[tuple[str, int], None] = field(default_factory=dict)

    def getValue(self, key: tuple[str, int]) -> tuple[bytes] | None:
        return (self._file(key).read_bytes(),) if key in self.kept else None

    def updateValue(self, key: tuple[str, int], row: tuple[bytes]) -> None:
        self._file(key).write_bytes(row[0])
        self.kept[key] = None

    def removeKey(self, key: tuple[str, int]) -> None:
        self._file(key).unlink()
        del self.kept[key]

    def _file(self, key: tuple[str, int]) -> Path:
        return self.folder / f"{key[0]}-{key[1]}"


class OneStage:
    """In `folder` are its blobs, and its local store in a folder of `local`."""

    def __init__(self, plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "blobs").mkdir(parents=True)
        self.manifest = Value()
        self.chunks = Chunks(folder / "blobs")
        self.local = folder / "local"
        folders = LocalFolders(str(self.local), "ck", "run")
        observe = frozenset(sink.node for sink in plan.sinks)
        self._processor = LaterStageProcessor(LaterStageTask(plan, 1, 1, RunOptions(), folders, observe))
        self._processor.init(self)  # type: ignore[arg-type]  # as far as it asks
        self._patch = monkeypatch
        self._epoch = -1

    def text(self) -> str | None:
        """The manifest."""
        return self.blobs().manifest()

    def blobs(self) -> BlobStore:
        """Its part of Spark's state store."""
        return _SparkBlobs(self.manifest, self.chunks)  # type: ignore[arg-type]  # as far as it asks

    def getValueState(self, name: str, schema: str) -> Value:
        return self.manifest

    def getMapState(self, name: str, key: str, value: str) -> Chunks:
        return self.chunks

    def call(
        self, inputs: Sequence[tuple[str, Batch]], pace: Pace, passing: Sequence[tuple[Any, ...]] = ()
    ) -> Iterator[pd.DataFrame]:
        """One epoch: the frames that come out, as they come out. `passing`: rows of the wire that are not its own."""
        self._epoch += 1
        context = object.__new__(TaskContext)
        context._partitionId = 0
        context._localProperties = {BATCH_ID: str(self._epoch), PROPERTY: pace.dump()}
        self._patch.setattr(TaskContext, "_taskContext", context)
        (slot,) = slots(1)
        rows = [(slot, 1, node, 0, None, piece.to_ipc()) for node, batch in inputs for piece in pieces(batch)]
        columns = ["slot", "dest", "port", "partition", "place", "payload"]
        frame = pd.DataFrame([*passing, *rows, (slot, 1, "", 0, None, b"wake")], columns=columns)
        return self._processor.handleInputRows((slot,), iter([frame]), None)
