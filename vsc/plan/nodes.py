"""The plan: the compiler's decisions as frozen values, and everything that the runtime needs to know.

A plan is a list of *nodes* (what is computed: one per statement, plus the sinks) and a list of *stages* (where it
is computed: everything between two repartitions). A stage runs once per vsc partition. Records enter it through its
*inputs*: each is a node of an earlier stage, partitioned by that node's key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Choice

from vsc.plan.operations import *  # noqa: F403
from vsc.plan.operations import DeadLetters, Operation, Source
from vsc.plan.parts import *  # noqa: F403
from vsc.plan.parts import Connector, OwnFunction, Schema, Status, Store
from vsc.plan.record import record

Clock = Choice["input", "records"]
"""What stream time is (`Plan.clock`)."""

EXPIRING = "expiring"
"""What a table whose rows expire, or are forgotten, keeps beside them: when each is."""

FORMAT_VERSION = 2
"""The format version of the plan's JSON. Plans of other format versions are refused."""


@record
class Node:
    """One named node. `inputs` are node names. `line` is the line of its statement in the source (1-based).

    `part_of`, for a node that the lowering has added, is the node that the user wrote. `bounds` is how many columns at
    the end of the key (a window's start and end) are ignored when records are partitioned by that key.
    """

    name: str
    kind: Choice["stream", "table"]
    schema: Schema
    operation: Operation
    inputs: tuple[str, ...]
    line: int
    store: Store | None = None
    status: Status | None = None
    part_of: str | None = None
    bounds: int = 0

    @property
    def owner(self) -> str:
        """The node as the user wrote it."""
        return self.part_of or self.name

    @property
    def source(self) -> Source:
        """The operation of a source node."""
        if not isinstance(self.operation, Source):
            raise TypeError(f"node '{self.name}' is not a source")
        return self.operation

    @property
    def expire(self) -> int | None:
        """How far behind the clock, in ms, the rows of its table expire; None: they stay."""
        return None if self.store is None else self.store.expire

    @property
    def forget(self) -> int | None:
        """How far behind the clock, in ms, the rows of its table are forgotten; None: they stay."""
        return None if self.store is None else self.store.forget

    @property
    def complete(self) -> bool:
        """Whether its table is right as of every time within its retention."""
        return self.store is not None and self.store.history == "complete"

    @property
    def waits(self) -> bool:
        """Whether something comes out when time goes on: what the operation has held back, or a row that expires."""
        return self.operation.waits or self.expire is not None

    @property
    def branches(self) -> bool:
        """Whether one record may cause several: those of the operation, of rows that expire, of a complete history."""
        return self.operation.branches or self.expire is not None or self.complete

    @property
    def keeps(self) -> str | None:
        """What it keeps beside its table, in the words of the store's name."""
        return self.operation.keeps if self.expire is None and self.forget is None else EXPIRING

    @property
    def taken(self) -> tuple[str, ...]:
        """The inputs whose records the node takes; in the others it only looks rows up."""
        return self.inputs if self.operation.watches else self.driving

    @property
    def driving(self) -> tuple[str, ...]:
        """The inputs whose records move the node's clock."""
        return self.inputs[:1] if self.operation.looks_up else self.inputs


@record
class Sink:
    """Writes `node`. `id` is ``sink-<n>``, counted from 0 in the order of the file. `part_of`: as in `Node`."""

    id: str
    node: str
    connector: Connector
    line: int
    part_of: str | None = None

    @property
    def owner(self) -> str:
        """The node as the user wrote it."""
        return self.part_of or self.node


@record
class StageInput:
    """Records of `node` (of an earlier stage) enter a stage, partitioned by that node's key.

    The bounds of a window at the end of a key do not count, so that a group's windows, and what is joined with them,
    are in one partition. `broadcast`: every partition gets all records (a global table).
    """

    node: str
    broadcast: bool = False


@record
class HandOver:
    """Records of `node` that a stage hands on to the later stages `stages`."""

    node: str
    stages: tuple[int, ...]


@record
class Stage:
    """A sub-topology. In `nodes`, inputs come before their readers; the consumers of a node run in this order.

    Stage 0 runs where the sources are read. It holds the sources and the stateless nodes that follow them, and has no
    inputs, no state and no partitions. A source table's records are checked and parsed in stage 0, and enter its store
    in every stage that lists the node again. A node may be in several stages (a table that both read). `emits` names
    the nodes whose changes this stage hands on to sinks, observers and later stages: each node is in exactly one
    `emits`.

    `hands_on`: what later stages take from this one. A source's parsed records always come from stage 0, whichever
    stage emits the source. `moved` are the nodes whose records got another key in this stage. `depth` is the depth of
    the path of every record that enters it: one place for each stage before it. `old` are the tables for whose changes
    a reader in this stage needs the row before; `latest` are those for which one needs to know which changes are the
    newest; `intervals` are those for which one needs to know until when each is valid. The row before a change of these
    is the one that was valid at its time.
    """

    id: int
    nodes: tuple[str, ...]
    inputs: tuple[StageInput, ...]
    emits: tuple[str, ...]
    hands_on: tuple[HandOver, ...] = ()
    moved: tuple[str, ...] = ()
    depth: int = 0
    old: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()


@record
class Plan:
    """A compiled topology. `variables` are the names of the variables that connector options still refer to.

    `clock`: what stream time is (D25). ``input``: the highest event time of a node's sources at a record's place in
    D12's order, the same in all partitions (`vsc.plan.clocks`). ``records``: Kafka's rule, the highest event time of
    the records that have reached the node in its partition. `clock_implied`: the topology does not say it, so a
    checkpoint that was begun with the other clock keeps that one. `functions` are those of the user's that it calls.
    `quiet`: when a source has brought nothing for so many ms of the machine's clock, its clock goes on (None: it does
    not).
    """

    name: str
    nodes: tuple[Node, ...]
    sinks: tuple[Sink, ...]
    stages: tuple[Stage, ...]
    variables: tuple[str, ...] = ()
    clock: Clock = "records"
    clock_implied: bool = False
    functions: tuple[OwnFunction, ...] = ()
    quiet: int | None = None

    @property
    def sources(self) -> tuple[Node, ...]:
        """The source nodes."""
        return tuple(node for node in self.nodes if isinstance(node.operation, Source))

    @property
    def dead_letters(self) -> tuple[Node, ...]:
        """The nodes of dead letters, which every stage fills."""
        return tuple(node for node in self.nodes if isinstance(node.operation, DeadLetters))

    def after(self, clock: Clock) -> Plan:
        """The plan with which a checkpoint goes on that was begun with `clock`."""
        return replace(self, clock=clock, clock_implied=False) if self.clock_implied else self

    def given(self, stage: Stage) -> frozenset[str]:
        """The nodes whose records `stage` gives to sinks and observers."""
        return frozenset((*stage.emits, *(node.name for node in self.dead_letters)))

    def from_first(self, stage: Stage) -> tuple[StageInput, ...]:
        """The inputs of a later stage that come from the first one: their records can wait there for other sources."""
        return tuple(entering for entering in stage.inputs if entering.node in self.stages[0].nodes)

    def read_as(self, name: str) -> Node:
        """The node that gives the records of the user's node `name` to its readers: behind a source, what reorders
        it."""
        node = self.node(name)
        return next((one for one in self.nodes if one.part_of == name and one.inputs == (name,)), node)

    def node(self, name: str) -> Node:
        """The node called `name`. Raises KeyError if no node has that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)
