"""Wide rows: what goes from one part of a query to the next is bounded by bytes, whatever a row has.

Sizes are a 256th of the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.one_stage import OneStage
from tests.runtime.spark.support import compiled
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange import wire
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.exchange.wire import SINK, slots
from vsc.runtime.spark.formats.source_columns import TIME
from vsc.runtime.spark.stages import stage_zero
from vsc.runtime.spark.stages.stage_zero import StageZeroTask

CHUNK, BLOB, FLUSH = 128 << 10, 512, 256 << 10
WIDE = 300
"""Bytes of a row."""
ROWS = 4000

TOPOLOGY = """
stream s (id bigint, pad string) from memory () key id;
stream copied = map s select pad;
table t (id bigint, pad string) from memory () key id;
stream j = join s with t on id select s.pad as pad;
sink copied to noop ();
sink j to noop ();
"""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CHUNK_BYTES", CHUNK)
    monkeypatch.setattr(wire, "BLOB_BYTES", BLOB)
    monkeypatch.setattr(wire.pieces, "__defaults__", (BLOB,))
    monkeypatch.setattr(stage_zero, "FLUSH_BYTES", FLUSH)
    monkeypatch.setattr(stage_zero, "GATHERED_BYTES", FLUSH)


def test_a_source_task_gives_on_what_it_has_read_in_bounded_batches() -> None:
    plan = compiled(TOPOLOGY)
    taken = 0

    def read() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for start in range(0, ROWS, 20):
            ids = pa.array(range(start, start + 20), pa.int64())
            pads = pa.array(["x" * WIDE] * 20)
            times = pa.array([0] * 20, pa.int64())
            taken += 20
            yield pa.RecordBatch.from_arrays([ids, pads, times], names=["a", "b", TIME])

    given, sizes = 0, []
    for batch in StageZeroTask(plan, "s", 2, RunOptions())(read()):
        sizes.append(batch.column("payload").nbytes)
        for dest, payload in zip(batch.column("dest").to_pylist(), batch.column("payload").to_pylist(), strict=True):
            given += len(Batch.from_ipc(payload, plan.node("copied").schema)) if dest == SINK else 0
        assert (taken - given) * WIDE < 3 * FLUSH or taken == ROWS
    assert given == ROWS
    assert max(sizes) < CHUNK + 4 * BLOB + 4 * len(sizes)
    assert len(sizes) > ROWS * WIDE // CHUNK


@pytest.mark.slow
def test_a_stage_gives_out_bounded_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compiled(TOPOLOGY)
    ids = np.arange(ROWS, dtype=np.int64)
    columns = (pa.array(ids),), (pa.array(["x" * WIDE] * ROWS),)
    order = Order(ids, np.zeros(ROWS, np.int32), ids, np.zeros((ROWS, 0), np.int64))
    present = np.ones(ROWS, dtype=np.bool_)
    t = Batch(plan.node("t").schema, (Origin("t", 0, "f"),), order, ids, present, *columns)
    s = Batch(plan.node("s").schema, (Origin("s", 1, "f"),), order, ids, present, *columns)
    stage = OneStage(plan, tmp_path, monkeypatch)
    frames = list(stage.call([("t", t), ("s", s)], Pace({}, {"1-0": 1})))
    found = [Batch.from_ipc(p, plan.node("j").schema) for f in frames for p in f["payload"][f["dest"] == SINK]]
    assert sum(map(len, found)) == ROWS
    assert max(sum(map(len, frame["payload"])) for frame in frames) < CHUNK + 4 * BLOB
    assert [i for b in found for i in b.keys[0].to_pylist()] == ids.tolist()


def test_what_only_passes_through_is_given_on_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compiled(TOPOLOGY)
    stage = OneStage(plan, tmp_path, monkeypatch)
    passing = [(slots(1)[0], SINK, "sink-0", 0, b"p", b"%d" % i) for i in range(3)]
    first, *others = stage.call([], Pace({}, {}), passing)
    assert first["payload"].tolist() == [b"0", b"1", b"2"]
    assert first["place"].tolist() == [b"p"] * 3
    assert SINK not in {dest for frame in others for dest in frame["dest"]}
