"""What the builders of operators share: the plan, the stage, its stores, and the questions that they ask about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.suppress import Held, Size
from tests.oracle.records.tables import Content, TableStore, open_table
from vsc.plan.nodes import Filter, Map, Node, Plan, Schema, Stage, Suppress
from vsc.plan.results import shows_results

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

    def due(self) -> int | None:
        """The stream time at which the first of it comes out; None if nothing waits."""

    def take_due(self) -> Sequence[tuple[Any, ...]]:
        """Takes out all that comes out together with the first, in the order in which it does."""

    def release(self, waiting: Any) -> None:
        """Lets one of them go its way."""


class Parts:
    """A stage that is being built. All by node: `tables` are its stores, `waiting` what holds things back, `suppressed`
    what each `suppress` holds (for look-ups), `beside` what an operator keeps beside its table.

    `finishers` are called, each in its turn, behind the last record of a batch. `size`: see `Size`.
    """

    def __init__(self, plan: Plan, stage: Stage, context: Context, size: Callable[[Schema], Size]) -> None:
        self.plan, self.stage, self.context, self.size = plan, stage, context, size
        self.nodes = {n.name: n for n in plan.nodes}
        own = [self.nodes[name] for name in stage.nodes]
        self.tables: dict[str, TableStore] = {
            n.name: open_table(n, context, shows_results(plan, n.name)) for n in own if n.store is not None
        }
        self.waiting: dict[str, Waiting] = {}
        self.suppressed: dict[str, dict[Row, Held]] = {n.name: {} for n in own if isinstance(n.operation, Suppress)}
        self.beside: dict[str, Callable[[], Content]] = {}
        self.finishers: list[Callable[[], None]] = []

    def schema(self, node: Node) -> Schema:
        """The schema of the node's (first) input."""
        return self.nodes[node.inputs[0]].schema

    def old_wanted(self, name: str) -> bool:
        """Whether a consumer of table `name` in this stage asks for the row that was the newest before a change."""
        return name in self.stage.old

    def intervals(self, name: str) -> bool:
        """Whether a consumer of table `name` in this stage asks until when its changes are valid."""
        return name in self.stage.intervals

    def behind(self, name: str) -> TableStore | None:
        """The store that a look-up into table `name` reads, if it is one store: its own or its stored ancestor's."""
        node = self.nodes[name]
        while node.store is None and isinstance(node.operation, Filter | Map):
            node = self.nodes[node.inputs[0]]
        return self.tables.get(node.name)


def ports(built: Built, position: int) -> Consumer:
    """The consumer of the node's input at `position`."""
    return built[position] if isinstance(built, tuple) else built
