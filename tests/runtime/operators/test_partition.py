"""A batch is cut by the partitions of its keys; its records stay in their order."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
import pytest

from vsc.plan.nodes import Column, Schema
from vsc.plan.types import BIGINT, STRING
from vsc.runtime.operators.partition import split
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.state.keys import KeyCodec

SCHEMA = Schema((Column("k", STRING),), (Column("v", BIGINT),))
CODEC = KeyCodec([STRING])


def batch(keys: list[str]) -> Batch:
    count = np.arange(len(keys), dtype=np.int64)
    order = Order(1000 + count, np.zeros(len(keys), dtype=np.int32), count, np.stack([count, count * 2], axis=1))
    values = pa.array([None if n % 5 == 0 else n for n in count.tolist()], pa.int64())
    return Batch(
        SCHEMA, (Origin("s", 0, ""),), order, 2000 + count, count % 5 != 0, (pa.array(keys, pa.string()),), (values,),
        count % 2 == 0,
    )  # fmt: skip


@pytest.mark.parametrize("partitions", [1, 2, 7, 300])
def test_each_part_has_the_records_of_its_keys_in_their_order(partitions: int) -> None:
    keys = [f"k{n * n % 23}" for n in range(200)]
    found = dict(split(batch(keys), CODEC, partitions))
    wanted: dict[int, list[int]] = {}
    for number, key in enumerate(keys):
        wanted.setdefault(zlib.crc32(CODEC.encode((key,))) % partitions, []).append(number)
    assert list(found) == sorted(wanted)
    for partition, part in found.items():
        numbers = np.array(wanted[partition])
        assert part.keys[0].to_pylist() == [keys[n] for n in numbers]
        assert part.values[0].to_pylist() == [None if n % 5 == 0 else n for n in numbers]
        assert part.order.time.tolist() == (1000 + numbers).tolist()
        assert part.order.offset.tolist() == numbers.tolist()
        assert part.order.path.tolist() == [[n, 2 * n] for n in numbers]
        assert part.timestamps.tolist() == (2000 + numbers).tolist()
        assert part.present.tolist() == (numbers % 5 != 0).tolist()
        assert part.latest is not None
        assert part.latest.tolist() == (numbers % 2 == 0).tolist()
        again = Batch.from_ipc(part.to_ipc(), SCHEMA)
        assert (again.keys, again.values) == (part.keys, part.values)
        assert again.order.offset.tolist() == numbers.tolist()


def test_a_batch_of_one_partition_is_not_copied() -> None:
    whole = batch(["a"] * 5)
    [(_, part)] = split(whole, CODEC, 4)
    assert np.shares_memory(part.timestamps, whole.timestamps)
    assert not list(split(batch([]), CODEC, 4))
