"""Seeds of a state, without Spark: rows packed, carried as lines, stored as the snapshot of a chain, restored."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.runtime.spark.state.simulated import SparkState
from vsc.runtime.errors import StateError
from vsc.runtime.spark.exchange.wire import slots
from vsc.runtime.spark.state.control import START, broadcast
from vsc.runtime.spark.state.protocol import Manifest, PartitionState
from vsc.runtime.spark.state.seeds import SEED, Seeds, packed, seed_line, seed_row
from vsc.runtime.state.kv import MemoryKV

ROWS = [(1 + n % 2, n % 3, b"\0\2%03d" % n, b"v" * (n % 50)) for n in range(300)]


def test_every_row_comes_to_its_place_through_the_control_source() -> None:
    chunks = list(packed(ROWS, most=500))
    assert sum(rows for _, _, rows, _ in chunks) == len(ROWS)
    assert len(chunks) > 12
    lines = [START, *(seed_line(stage, partition, chunk) for stage, partition, _, chunk in chunks)]
    batches = list(broadcast((1, 2), 3)([pa.RecordBatch.from_pydict({"value": lines})]))
    found = [row for batch in batches for row in batch.to_pylist()]
    assert len(found) == 6 + len(chunks)  # the first line reaches all partitions of both stages
    assert {row["slot"] for row in found if row["partition"] == 2} == {slots(3)[2]}
    for stage in (1, 2):
        for partition in range(3):
            mine = [r["payload"] for r in found if (r["dest"], r["partition"], r["port"]) == (stage, partition, SEED)]
            assert restored(mine) == {k: v for s, p, k, v in ROWS if (s, p) == (stage, partition)}


def restored(chunks: list[bytes]) -> dict[bytes, bytes]:
    spark = SparkState()
    seeds = Seeds(spark, "0-1-0")
    for chunk in chunks:
        seeds.take(chunk)
    seeds.settle()
    base = MemoryKV()
    manifest = Manifest.load(spark.manifest())
    (blob,) = manifest.blobs
    assert (blob.kind, blob.upto, len(blob.lengths)) == ("snapshot", blob.name, len(chunks))
    state = PartitionState.open(spark, base, manifest)
    assert state.commit("0-1-0") == manifest
    return {key: value for key, value in base.scan(b"", None) if not key.startswith(b"\0vsc.")}


def test_a_state_that_has_begun_takes_no_seed() -> None:
    spark = SparkState()
    first = Seeds(spark, "a")
    first.settle()
    assert spark.manifest() is None
    first.take(b"1")
    first.take(b"2")
    first.settle()
    with pytest.raises(StateError, match="the state has begun already"):
        Seeds(spark, "b").take(b"3")
    assert sorted(spark.chunks.values()) == [b"1", b"2"]


@pytest.mark.parametrize("line", ["seed 1", "seed 1 2 %", "seed x 2 AA=="])
def test_a_damaged_line_is_an_error(line: str) -> None:
    assert seed_row(b"wake") is None
    with pytest.raises(StateError, match="a seed of the state is damaged"):
        seed_row(line.encode())
