"""Moves the records that wait for other sources (`in_step`) to the stages and partitions that read them now.

A waiting batch is split by partition, under the names, ranks and columns of the new plan. Its records go where its
node's records now go. If they would not reach all that has read them and still exists (its node is gone, or a reader
now gets them through a node before the stages in which records wait), records would be lost, and if a reader needs a
column that they do not have, it would be null: the old topology has to finish them first.

Steps of the input's clock go to every new partition that has to know them, from the one that certainly has all of them.
Where the old plan had no such clock, the waiting records themselves are the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vsc.changes.nodes import Nodes
from vsc.plan.clocks import node_clocks
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import parts
from vsc.plan.nodes import Node, Plan, Schema, Stage
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.carry.columns import Columns, Unfitting
from vsc.runtime.operators.carry.homeless import homeless
from vsc.runtime.operators.carry.stores import Told, nearest
from vsc.runtime.operators.in_step import NO_COLUMNS, Frontier
from vsc.runtime.operators.layout import handed_on
from vsc.runtime.operators.partition import partition_codecs, split
from vsc.runtime.operators.steps import rises, steps_at, steps_to
from vsc.runtime.records import Batch, Origin
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.waiting import STEPS, Waiting, WaitingBatches, meta_row, next_sequence, row, steps_row

__all__ = ["CarriedWaiting"]

_Row = tuple[int, int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Way:
    """The way from a node's records in an old stage to those of its successor in a new one."""

    stage: int
    port: str
    new_stage: int
    new_port: str
    columns: Columns
    was_broadcast: bool
    broadcast: bool


@dataclass(frozen=True, slots=True)
class _StepsWay:
    """The way of the steps of the old plan's `source`, from partition 0 of a stage: to new stages and partitions.

    `ports`: if they are not there, the nodes whose waiting records stand for them, in all partitions.
    """

    source: str
    stage: int
    to: tuple[tuple[int, int], ...]
    ports: frozenset[str]

    def steps(self, one: Waiting, partition: int, schema: Schema) -> Batch | None:
        """The steps in a waiting batch, whose columns are `schema`; None if there are none."""
        if one.port not in self.ports and (one.port != STEPS or partition or self.ports):
            return None
        batch = Batch.from_ipc(one.data, schema, trusted=False).sorted()
        of_source = np.array([origin.source == self.source for origin in batch.origins], dtype=np.bool_)
        chosen = rises(batch.order.time) & of_source[batch.order.origin]
        if not chosen.any():
            return None
        order = batch.order.take(chosen)
        return steps_at(batch.origins, replace(order, path=order.path[:, :0]))


class CarriedWaiting:
    """What waits, of all stages."""

    def __init__(self, old: Plan, new: Plan, old_partitions: int, partitions: int) -> None:
        self._old, self._new, self._nodes = old, new, Nodes(old, new)
        self._old_partitions, self._partitions = old_partitions, partitions
        self._codecs = partition_codecs(new)
        self._ways = [way for stage in new.stages[1:] for way in self._into(stage)]
        self._origins = {
            name: (node.name, node.source.rank)
            for name, node in self._nodes.successors.items()
            if node in new.sources
        }  # fmt: skip
        self._steps = list(self._of_steps())

    @cached_property
    def _homeless(self) -> frozenset[str]:
        """Of which old nodes no record may wait."""
        ways = frozenset((way.new_stage, way.new_port) for way in self._ways)
        return homeless(self._old, self._new, self._nodes, ways)

    def tell(self, told: Told, kv: OrderedKV) -> None:
        """Adds the waiting records of an old stage and partition to its report."""
        following = next_sequence(kv)
        if not following:
            return
        records: Counter[tuple[int, int]] = Counter()
        for stage, partition, one, _ in self._moved(told.stage, told.partition, kv):
            records[stage, partition] += one.records
            if one.port == STEPS:
                told.steps[stage, partition] = told.steps.get((stage, partition), 0) + one.records
        told.waiting.update({home: (self._sequence(following, told.stage, 0), n) for home, n in records.items()})
        if self._homeless:
            for _, one in WaitingBatches(kv).before(None):
                if one.port in self._homeless:
                    told.homeless[one.port] = told.homeless.get(one.port, 0) + one.records

    def check(self, told: Sequence[Told]) -> None:
        """Raises ConfigurationError if waiting records have nowhere to go."""
        lost = sum((Counter(one.homeless) for one in told), Counter[str]())
        if lost:
            what = ", ".join(f"{count} of '{name}'" for name, count in sorted(lost.items()))
            raise ConfigurationError(
                f"records wait for others ({what}), and would not reach all that reads them in the new topology",
                "run the old topology until it has read all of its sources, so that nothing waits",
            )

    def metas(self, told: Sequence[Told]) -> Iterator[_Row]:
        """The meta rows."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for one in told:
            filled = ((home, (0, records)) for home, records in one.filled.items())
            for home, (sequence, records) in (*one.waiting.items(), *filled):
                before = found.get(home, (0, 0))
                found[home] = max(before[0], sequence), before[1] + records
        for (stage, partition), numbers in found.items():
            yield stage, partition, *meta_row(*numbers)
        steps = sum((Counter(one.steps) for one in told), Counter[tuple[int, int]]())
        for (stage, partition), count in steps.items():
            yield stage, partition, *steps_row(count)

    def rows(self, stage: int, partition: int, kv: OrderedKV) -> Iterator[_Row]:
        """What waits in an old stage and partition, as rows of the new ones."""
        for to_stage, to, one, sequence in self._moved(stage, partition, kv):
            yield to_stage, to, *row(one, sequence)

    def _moved(self, stage: int, partition: int, kv: OrderedKV) -> Iterator[tuple[int, int, Waiting, int]]:
        ways: dict[str, list[_Way]] = {}
        for way in self._ways:
            if way.stage == stage and not (way.was_broadcast and partition and not self._stays(way)):
                ways.setdefault(way.port, []).append(way)
        of_steps = [way for way in self._steps if way.stage == stage]
        if not ways and not of_steps:
            return
        for sequence, one in WaitingBatches(kv).numbered():
            for way in ways.get(one.port, ()):
                batch = self._carried(Batch.from_ipc(one.data, self._old.node(one.port).schema, trusted=False), way)
                for to, part in self._spread(batch, way, partition):
                    place = Frontier.at(part).place
                    moved = Waiting(way.new_port, place, len(part), part.to_ipc())
                    yield way.new_stage, to, moved, self._sequence(sequence, stage, partition)
            for steps_way in of_steps:
                schema = NO_COLUMNS if one.port == STEPS else self._old.node(one.port).schema
                steps = steps_way.steps(one, partition, schema)
                if steps is not None:
                    steps = replace(steps, origins=tuple(map(self._origin, steps.origins))).sorted()
                    moved = Waiting(STEPS, Frontier.at(steps).place, len(steps), steps.to_ipc())
                    number = self._sequence(sequence, stage, partition, of_steps=True)
                    yield from ((*to, moved, number) for to in steps_way.to)

    def _stays(self, way: _Way) -> bool:
        """Whether every partition keeps its records of a global table."""
        return way.broadcast and self._partitions == self._old_partitions

    def _spread(self, batch: Batch, way: _Way, partition: int) -> Iterable[tuple[int, Batch]]:
        if way.was_broadcast and self._stays(way):
            return [(partition, batch)]
        return split(batch, self._codecs[way.new_port], self._partitions, way.broadcast)

    def _carried(self, batch: Batch, way: _Way) -> Batch:
        origins = tuple(self._origin(origin) for origin in batch.origins)
        values = batch.values if way.columns.same else way.columns.arrays(batch.values, len(batch))
        return replace(batch, schema=self._new.node(way.new_port).schema, origins=origins, values=values).sorted()

    def _origin(self, origin: Origin) -> Origin:
        """The source partition under the new plan; a removed source keeps its place."""
        name, rank = self._origins.get(origin.source, (origin.source, origin.rank))
        return Origin(name, rank, origin.part)

    def _sequence(self, sequence: int, stage: int, partition: int, of_steps: bool = False) -> int:
        """The batch's new number: unique in its new stage and partition, never lower than those of earlier batches."""
        number = (sequence * len(self._old.stages) + stage) * self._old_partitions + partition
        return 2 * number + of_steps

    def _of_steps(self) -> Iterator[_StepsWay]:
        had, needed, clocks = steps_to(self._old), steps_to(self._new), node_clocks(self._old)
        for source in self._old.sources:
            name, _ = self._origins.get(source.name, ("", 0))
            if name not in needed:
                continue
            to = needed[name]
            places = tuple((s, p) for s in to.stages for p in to.partitions(s, self._partitions, wait=True))
            if source.name in had:
                yield _StepsWay(source.name, had[source.name].teller, places, frozenset())
            else:
                taken = handed_on(self._old.stages[0])
                ports = {node for node in taken if source.name in clocks[node].sources}
                stages = [min(taken[node]) for node in ports]
                if stages:
                    yield _StepsWay(source.name, min(stages), places, frozenset(ports))

    def _into(self, stage: Stage) -> Iterator[_Way]:
        near = nearest(self._old, stage, self._nodes)
        for entering in self._new.from_first(stage):
            node = self._new.node(entering.node)
            given = ((before, number) for before in self._nodes.gave(node) for number in near
                     if before.name in dict(self._entering(number)))  # fmt: skip
            before, of = next(given, (None, 0))
            if before is None or self._is_missed(node, before, stage):
                continue
            if [c.type for c in before.schema.key] == [c.type for c in node.schema.key]:
                try:
                    columns = Columns(before.schema.value, node.schema.value)
                except Unfitting:
                    continue
                was = dict(self._entering(of))[before.name]
                yield _Way(of, before.name, stage.id, node.name, columns, was, entering.broadcast)

    def _is_missed(self, node: Node, before: Node, stage: Stage) -> bool:
        """Whether a reader in the stage needs a column that the node computes now, and waiting records lack."""
        missing = self._nodes.computed(node, before)
        readers = [reader for reader in map(self._new.node, stage.nodes) if node.name in reader.inputs]
        return bool(missing) and any(self._needs(reader, node, missing) for reader in readers)

    def _needs(self, reader: Node, node: Node, columns: frozenset[str]) -> bool:
        operation = reader.operation
        if operation.reads_all or operation.hands_columns_on:
            return True
        inputs = tuple(self._new.node(name).schema for name in reader.inputs)
        seen = (part for _, expr, _ in operation.expressions(inputs, reader.schema) for part in parts(expr))
        return any(
            isinstance(part, ColumnExpr) and part.name in columns and reader.inputs[part.input] == node.name
            for part in seen
        )

    def _entering(self, stage: int) -> list[tuple[str, bool]]:
        """The nodes whose records can wait in an old stage, and whether every partition gets all of them."""
        return [(one.node, one.broadcast) for one in self._old.from_first(self._old.stages[stage])]
