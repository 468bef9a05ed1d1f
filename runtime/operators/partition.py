"""Which partition a record belongs to: the same answer for the test driver and for Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vsc.plan.nodes import Plan
from vsc.runtime.records import Batch, Int64s, partition_of
from vsc.runtime.state.keys import KeyCodec

__all__ = ["encoded_keys", "partition_codecs", "split"]


def partition_codecs(plan: Plan) -> dict[str, KeyCodec]:
    """For each node, the codec of the key columns by which its records are partitioned."""
    keys = {n.name: n.schema.key[: len(n.schema.key) - n.bounds] for n in plan.nodes}
    return {name: KeyCodec([c.type for c in key]) for name, key in keys.items()}


def encoded_keys(batch: Batch, codec: KeyCodec) -> tuple[list[bytes], Int64s]:
    """The distinct encoded keys of a batch, and for each record the place of its own.

    All records of a stream without key columns have the empty key; a null in a key column counts as a value.
    """
    if codec.types:
        return codec.encode_columns(batch.keys[: len(codec.types)], keyless=True)
    return [codec.encode(())], np.zeros(len(batch), dtype=np.int64)


def split(batch: Batch, codec: KeyCodec, partitions: int, broadcast: bool = False) -> Iterator[tuple[int, Batch]]:
    """The batch's records by partition, or all of them for each partition if `broadcast`. Empty parts are left out.

    `codec` encodes the leading key columns by which the records are partitioned (`partition_codecs`).
    """
    if broadcast or partitions == 1:
        yield from ((partition, batch) for partition in range(partitions))
        return
    distinct, index = encoded_keys(batch, codec)
    of_record = partition_of(distinct, partitions)[index]
    counts = np.bincount(of_record, minlength=partitions)
    if counts.max(initial=0) < len(batch):  # sorted once, then cut: each column is copied once, whatever the partitions
        batch = batch.take(np.argsort(of_record.astype(np.min_scalar_type(partitions)), kind="stable"))
    end = 0
    for partition, count in enumerate(counts.tolist()):
        start, end = end, end + count
        if count:
            yield partition, batch.slice(start, end)
