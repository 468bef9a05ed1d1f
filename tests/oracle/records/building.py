"""What the builders of operators share: the plan, the stage, its stores, and the questions that they ask about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tests.oracle.records.context import Context
from tests.oracle.records.tables import TableStore, open_table
from vsc.plan.nodes import Filter, Map, Node, Plan, Schema, Stage
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.suppressed import Suppressed

__all__ = ["Built", "Consumer", "Parts", "Waiting", "ports"]

Consumer = Callable[..., None]
"""A `RecordConsumer` or a `ChangeConsumer`, as the node that feeds it is a stream or a table."""

Built = Consumer | tuple[Consumer, ...]
"""A node's operator: one consumer for all of its inputs, or one for each, in the order of the node's inputs."""


class Waiting(Protocol):
    """An operator in which something waits for stream time to go on: records, windows, rows that are held back."""

    def __len__(self) -> int:
        """How much waits."""

    def take_all(self) -> Sequence[tuple[Any, ...]]:
        """Takes out all that waits, in the order in which it would come out; the first member of each ascends."""

    def release(self, waiting: Any) -> None:
        """Lets one of them go its way."""


class Parts:
    """A stage that is being built. `tables` are its stores and `waiting` what holds things back, by node.

    `finishers` are called, each in its turn, behind the last record of a batch.
    """

    def __init__(self, plan: Plan, stage: Stage, kv: OrderedKV, context: Context) -> None:
        self.plan, self.stage, self.kv, self.context = plan, stage, kv, context
        self.nodes = {n.name: n for n in plan.nodes}
        own = [self.nodes[name] for name in stage.nodes]
        self.tables: dict[str, TableStore] = {n.name: open_table(kv, stage, n) for n in own if n.store is not None}
        self.waiting: dict[str, Waiting] = {}
        self._suppressed: dict[str, Suppressed] = {}
        self.finishers: list[Callable[[], None]] = []

    def suppressed(self, name: str) -> Suppressed:
        """What the `suppress` of that name holds back: one object for the operator and for look-ups."""
        if name not in self._suppressed:
            self._suppressed[name] = Suppressed(self.kv, store_prefix(self.stage, name) + b"s")
        return self._suppressed[name]

    def schema(self, node: Node) -> Schema:
        """The schema of the node's (first) input."""
        return self.nodes[node.inputs[0]].schema

    def old_wanted(self, name: str) -> bool:
        """Whether a consumer of table `name` in this stage asks for the row that was the newest before a change."""
        return name in self.stage.old

    def behind(self, name: str) -> TableStore | None:
        """The store that a look-up into table `name` reads, if it is one store: its own or its stored ancestor's."""
        node = self.nodes[name]
        while node.store is None and isinstance(node.operation, Filter | Map):
            node = self.nodes[node.inputs[0]]
        return self.tables.get(node.name)


def ports(built: Built, position: int) -> Consumer:
    """The consumer of the node's input at `position`."""
    return built[position] if isinstance(built, tuple) else built
