"""How records get to their sinks so that those of a key arrive in the order of D12.

A sink writes what a task of the last stage gives it. Where a node's records of one key come from several tasks (of
stage 0, or behind a new key) they are sent to the partition of their key: with the shuffle of the next stage, or with
one of their own behind the last. Whatever order a shuffle leaves its rows in, the blobs of such a sink are sorted by
the place of their first record, and `merged` makes one sequence of them.

What the last stage gives out by the key that it works with needs none of that. Nor does a stream without key have an
order to keep, but that of its source partitions, each of which is one task's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vsc.plan.nodes import Plan
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.operators.layout import emitter, scattered
from vsc.runtime.records import Batch
from vsc.runtime.spark.exchange.wire import CHUNK_BYTES, pieces, size_of

__all__ = ["Delivery", "delivery", "merged"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the sinks of a plan need. `by_key`: nodes whose records are sent to the partition of their key; `shuffled`:
    nodes whose records pass through a shuffle; `last_shuffle`: whether one is needed behind the last stage;
    `by_partition`: whether the task of a vsc partition gives out its records, not one that reads a source."""

    by_key: frozenset[str]
    shuffled: frozenset[str]
    last_shuffle: bool
    by_partition: bool


def delivery(plan: Plan) -> Delivery:
    """The delivery to the sinks of `plan`."""
    letters = {node.name for node in plan.dead_letters}  # which every stage gives, without a key
    stages = {sink.node: emitter(plan, sink.node) for sink in plan.sinks if sink.node not in letters}
    by_key = frozenset(node for node, stage in stages.items() if node in scattered(plan, stage))
    last = plan.stages[-1]
    last_shuffle = any(stages[node] == last for node in by_key)
    shuffled = {node for node, stage in stages.items() if last_shuffle or stage != last}
    if last_shuffle or last.id:
        shuffled |= letters
    return Delivery(by_key, frozenset(shuffled), last_shuffle, last_shuffle or last.id > 0)


def merged(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The records of `batches` in order.

    Each batch is in order, and they come by the place of their first record. So whatever is before that place can go
    on: what is held are the batches that overlap, and no more than that again.
    """
    held: list[Batch] = []
    size, most = 0, CHUNK_BYTES
    for batch in batches:
        if size >= most:
            ready, held = _parted(held, Frontier.at(batch))
            yield from _in_order(ready)
            size = sum(map(size_of, held))
            most = CHUNK_BYTES + size
        held.append(batch)
        size += size_of(batch)
    yield from _in_order(held)


def _parted(batches: list[Batch], upto: Frontier) -> tuple[list[Batch], list[Batch]]:
    before, others = [], []
    for batch in batches:
        mask = upto.before(batch)
        if mask.any():
            before.append(batch.filter(mask))
        if not mask.all():
            others.append(batch.filter(~mask))
    return before, others


def _in_order(batches: list[Batch]) -> Iterator[Batch]:
    if batches:
        yield from pieces(Batch.concat(batches).sorted(), CHUNK_BYTES)
