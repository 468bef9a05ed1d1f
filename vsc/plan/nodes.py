"""The plan: what the compiler has decided, as frozen values, and all that the runtime needs to know.

A plan is a list of *nodes* (what is computed: one per statement, plus the sinks) and a list of *stages* (where it
is computed: everything between two repartitions). A stage runs once per vsc partition; the records that enter it
come through its *inputs*, each a node of an earlier stage whose records are partitioned by the given key.
"""

from __future__ import annotations

from typing import Literal as Choice

from vsc.plan.operations import *  # noqa: F403
from vsc.plan.operations import DeadLetters, Operation, Source
from vsc.plan.parts import *  # noqa: F403
from vsc.plan.parts import Connector, Schema, Status, Store
from vsc.plan.record import record

FORMAT_VERSION = 2
"""The format version of the plan's JSON. A plan of another one is refused."""


@record
class Node:
    """One named node. `inputs` are node names. `line` is where its statement stands in the source (1-based).

    `part_of` is the node that the user wrote, for one that the lowering has added. `bounds` is how many columns at the
    end of the key do not count where records are partitioned by it: a window's start and end.
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
    def taken(self) -> tuple[str, ...]:
        """The inputs whose records come to the node; it looks into the others."""
        return self.inputs[:1] if self.operation.looks_up else self.inputs


@record
class Sink:
    """Writes `node`. `id` is ``sink-<n>``, counted from 0 in the order of the file."""

    id: str
    node: str
    connector: Connector
    line: int


@record
class StageInput:
    """Records of `node` (of an earlier stage) enter a stage, partitioned by that node's key.

    The bounds of a window at the end of a key do not count: a group's windows, and what is joined with them, stay in
    one place.
    `broadcast`: every partition gets all of them (a global table).
    """

    node: str
    broadcast: bool = False


@record
class HandOver:
    """Records of `node` that go from one stage to `stages`."""

    node: str
    stages: tuple[int, ...]


@record
class Stage:
    """A sub-topology. `nodes` in an order in which inputs come first; consumers of a node run in this order.

    Stage 0 runs where the sources are read: it holds the sources and what is stateless behind them, has no inputs, no
    state and no partitions. A source table's records are checked and parsed in stage 0, and enter its store in every
    stage that lists the node again. A node may stand in several stages (a table that is read in both); `emits` names
    those whose changes this stage hands on to sinks, observers and later stages: each node is in exactly one `emits`.

    `hands_on`: what later stages take from this one; of a source that is what stage 0 has parsed, whoever emits it.
    `moved` are the nodes whose records have got another key in it. `depth` is how deep the path of every record is that
    enters it: a place for each stage before it. `old` are its tables of
    whose changes a reader here needs the row before, `latest` those of which one needs to know which are the newest.
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


@record
class Plan:
    """A compiled topology. `variables` are the names that connector options still refer to."""

    name: str
    nodes: tuple[Node, ...]
    sinks: tuple[Sink, ...]
    stages: tuple[Stage, ...]
    variables: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Node, ...]:
        """The source nodes."""
        return tuple(node for node in self.nodes if isinstance(node.operation, Source))

    @property
    def dead_letters(self) -> tuple[Node, ...]:
        """The nodes of lost records, which every stage fills."""
        return tuple(node for node in self.nodes if isinstance(node.operation, DeadLetters))

    def given(self, stage: Stage) -> frozenset[str]:
        """The nodes whose records `stage` gives to sinks and observers."""
        return frozenset((*stage.emits, *(node.name for node in self.dead_letters)))

    def node(self, name: str) -> Node:
        """The node called `name`; KeyError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)
