"""Where an operator works: a node of a stage, and what the operator needs in one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from vsc.plan.nodes import Item, Node, Plan, Schema, Stage
from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped, Missed
from vsc.runtime.operators.clock import InputClock, Timing, by_records
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed
from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.columns.keyspace import KeySpace, KeySpaces
from vsc.runtime.operators.columns.moments import Moments, Routes
from vsc.runtime.operators.dead_letters import Losses
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.operators.operator import Step, operator_of
from vsc.runtime.operators.tables.lookups import Lookup
from vsc.runtime.operators.tables.store import TableColumns, VersionedColumns
from vsc.runtime.records import Int64s, Mask, Order, Origin
from vsc.runtime.state.kv import OrderedKV

__all__ = ["Running", "Site", "VersionTimes"]

_LATE = (Dropped.EXPIRED, Dropped.WINDOW_CLOSED, Missed.LATE, Missed.OLDER_THAN_RETENTION)
"""Why records are lost that come too late by the clock."""

VersionTimes = Callable[[Flow], tuple[Int64s, Int64s]]
"""See `VersionedColumns.between`."""


class Running(Protocol):
    """What an operator sees of the batch that it works on. `clock`: the input's; None: the records move the clock."""

    clock: InputClock | None
    origins: Sequence[Origin]

    def step(self, name: str) -> Step:
        """The operator of another node."""

    def order_of(self, at: Moments) -> tuple[Order, Int64s]:
        """The places of events in the order of records, and for each a number of its cause."""

    def roots(self, at: Moments) -> Int64s:
        """For each event the number of its source record, or of what time has released on its way."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node at work on one batch: all that its operator is built from.

    `spaces` hold the batch's keys, `tables` the stores of the stage's tables, `losses` what is lost. `asker`: the node
    that looks into this one, if another does.
    """

    plan: Plan
    stage: Stage
    node: Node
    kv: OrderedKV
    routes: Routes
    spaces: KeySpaces
    batch: Running
    losses: Losses
    tables: Mapping[str, TableColumns]
    asker: str = ""

    @property
    def name(self) -> str:
        """The user's name for the node, under which it is counted."""
        return self.node.owner

    @property
    def inputs(self) -> tuple[Schema, ...]:
        """The schemas of the node's inputs; the input of a source is its own records."""
        return tuple(self.plan.node(name).schema for name in self.node.inputs) or (self.node.schema,)

    @property
    def space(self) -> KeySpace:
        """The keys of the node's records."""
        return self.spaces.of(self.node.schema)

    @property
    def table(self) -> TableColumns | None:
        """The node's own store."""
        return self.tables.get(self.node.name)

    @property
    def prefix(self) -> bytes:
        """The prefix of the node's state."""
        return store_prefix(self.stage, self.node.name)

    @property
    def old(self) -> bool:
        """Whether a reader of the table's changes needs the rows before them."""
        return self.node.name in self.stage.old

    @property
    def latest(self) -> bool:
        """Whether a reader of the table's changes needs to know which of them are their key's newest."""
        return self.node.name in self.stage.latest

    @property
    def intervals(self) -> bool:
        """Whether a reader of the table's changes needs to know until when each is valid."""
        return self.node.name in self.stage.intervals

    @property
    def owes_old(self) -> bool:
        """Whether the operator itself must supply the rows before: a reader needs them, and the node has no store."""
        return self.old and self.table is None

    def evaluation(self, items: Sequence[Item], inputs: int = 1) -> Evaluation:
        """The expressions of the node, which see the first `inputs` of its inputs."""
        return Evaluation(self.name, items, self.inputs[:inputs])

    def look_up(self, name: str, as_of: bool = False) -> Lookup:
        """The look-up into table `name`: in its store, or through what it is computed from.

        `as_of`: for the row valid at a record's time, otherwise for the newest one.
        """
        if (table := self.tables.get(name)) is not None:
            return lambda flow: table.look_up(flow, as_of, self.limit(flow))
        node = self.plan.node(name)
        site = replace(self, node=node, asker=self.asker or self.node.name)
        return operator_of(node.operation).look_up(site, node.operation, as_of)

    def accepted(self, name: str) -> Flow | None:
        """The changes that the store of table `name`, or the one behind it, has accepted in this batch; None: none."""
        return self.store_behind(name).changes

    def store_behind(self, name: str) -> TableColumns:
        """The store of table `name`, or the one that it is computed from row by row."""
        while name not in self.tables:
            name = self.plan.node(name).inputs[0]
        return self.tables[name]

    def version_times(self, name: str) -> VersionTimes:
        """When versions of table `name`, or of what it is computed from row by row, begin within given intervals."""
        while (table := self.tables.get(name)) is None:
            (name,) = self.plan.node(name).inputs
        assert isinstance(table, VersionedColumns)
        return table.between

    def moving(self, flow: Flow) -> Int64s:
        """What moves the node's clock at each record: the record's own time, or the clock of the input."""
        clock = self.batch.clock
        return flow.time if clock is None else clock.at(self.node.name, flow.at)

    def timing(self, flow: Flow, before: int, moving: Int64s | None = None) -> Timing:
        """The clock of the node through these records, which showed `before` ahead of them.

        `moving`: what moves it, if not all records do.
        """
        name, clock = self.node.name, self.batch.clock
        if clock is None:
            return by_records(self.routes, name, flow.at, self.moving(flow) if moving is None else moving, before)
        return clock.timing(name, flow.at, before)

    def of_input(self, flow: Flow) -> Int64s:
        """The clock of all sources of the node at each record, whatever has been held back above it."""
        clock = self.batch.clock
        return self.moving(flow) if clock is None else clock.of_input(self.node.name, flow.at)

    def limit(self, flow: Flow) -> Int64s | None:
        """The clock by which a store is asked for these records: that of the node that asks; None: the store's own."""
        clock = self.batch.clock
        return None if clock is None else clock.at(self.asker or self.node.name, flow.at)

    def horizon(self) -> int | None:
        """The lowest clock by which the node's table is asked after this batch; None: its own stream time decides."""
        clock = self.batch.clock
        return None if clock is None else clock.horizon_after(self.node.name)

    def lasting(self) -> int | None:
        """What the clock of the node keeps of this batch at least; None: what its records make of it."""
        clock = self.batch.clock
        return None if clock is None else clock.end(self.node.name)[1]

    def nothing(self, port: int = 0) -> Flow:
        """No records of an input of the node."""
        return Flow.empty(self.inputs[port], self.spaces.of(self.inputs[port]))

    def give(self, at: Moments, turn: Int64s) -> Moments:
        """The moments of the records that the node, which may give several records for one, gives at events."""
        return self.routes.given(at, self.node.name, turn)

    def opened(self, flow: Flow) -> Flow:
        """The flow, with moments of the same depth on all ways to the node."""
        if not self.routes.opens(self.node.name):
            return flow
        return replace(flow, at=self.give(flow.at, np.zeros(len(flow), dtype=np.int64)))

    def lose(
        self,
        why: Dropped | Missed,
        flow: Flow,
        rows: Mask | Int64s,
        schema: Schema | None = None,
        waited: bool = False,
    ) -> None:
        """Notes records as lost (see `Losses.lose`); without a `schema` their columns are those of the first input."""
        self.losses.lose(self.node, why, flow, schema or self.inputs[0], rows, waited=waited)
        clock = self.batch.clock
        late = why in _LATE or (why is Dropped.OUT_OF_ORDER and self.node.operation.in_order)
        if late and clock is not None and len(flow):
            beside = Dropped.AFTER_QUIET if isinstance(why, Dropped) else Missed.AFTER_QUIET
            quiet = int(np.count_nonzero(clock.quiet(self.node.name, flow.at)[rows]))
            self.losses.beside(self.node, beside, quiet)

    def peak(self, what: str, value: int) -> None:
        """Raises a maximum in the metrics of the node."""
        self.losses.metrics.peak(self.name, what, value)

    def kept(self, flow: Flow, failed: Failed, schema: Schema | None = None, waited: bool = False) -> Mask:
        """Which records are left, without those that `failed`; for the rest see `lose`."""
        return self.losses.failed(self.node, flow, schema or self.inputs[0], failed, waited)

    def with_value(self, flow: Flow, port: int = 0) -> Flow:
        """The records of an input that have a value; the others are dropped."""
        self.lose(Dropped.NO_VALUE, flow, ~flow.present, self.inputs[port])
        return flow.select(flow.present)

    def with_key(self, flow: Flow, port: int = 0) -> Flow:
        """The records of an input that have a key (D26); the others are dropped."""
        keyless = null_rows(flow.keys, len(flow))
        self.lose(Dropped.NULL_JOIN_KEY, flow, keyless, self.inputs[port])
        return flow.select(~keyless)

    def newest(self, flow: Flow, versioned: bool, port: int = 0) -> Flow:
        """A table's changes; of a `versioned` table only those that are their key's newest, the others are dropped."""
        if not versioned or flow.latest is None:
            return flow
        self.lose(Dropped.OUT_OF_ORDER, flow, ~flow.latest, self.inputs[port])
        return flow.select(flow.latest)

    def stored(self, changed: Flow, replaces: Mask | None = None, old: bool = False) -> Flow:
        """These changes, put into the node's store, if it has one; what the store refuses is dropped.

        The store supplies the row before, if a reader needs it or if `old`. `replaces`: the changes that have one, even
        if the store has a row of the key; None: all.
        """
        store = self.table
        if store is None:
            return changed
        moving, given, by_records = self.moving(changed), changed, self.batch.clock is None
        changed = store.timed(changed)
        if by_records and changed is not given:  # what is too late at its own time is refused (D33)
            in_time = store.accepted(given.time, moving)
            changed = replace(changed, time=np.where(in_time, changed.time, given.time))
        accepted = store.put(changed, moving)
        # at its own time: that of a version that the store knows only until it is cut off from it says nothing of it
        self.lose(Dropped.EXPIRED, given, ~accepted, self.node.schema)
        latest = store.latest(changed) if self.latest else None
        until = before = None
        if self.intervals and isinstance(store, VersionedColumns):
            until, before = store.intervals(changed)
        elif self.old or old:
            before = store.before(changed)
        if before is not None and replaces is not None:
            present = before.present & replaces
            before = Old(present, before.time, blanked(before.values, present))
        sent = given if by_records else changed  # the time that is sent is recorded: the store alone goes by D33
        return replace(sent, old=before, latest=latest, until=until).select(accepted)
