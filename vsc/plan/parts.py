"""What nodes are made of beside their operation: columns, items, stores, connectors."""

from __future__ import annotations

from typing import Literal as Choice

from vsc.plan.expressions import Expr
from vsc.plan.record import record
from vsc.plan.types import DataType

__all__ = ["VALID_FROM", "VALID_TO", "Column", "Connector", "Item", "Schema", "Status", "Store"]

VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""The columns of a history, unless options of these names say otherwise."""


@record
class Column:
    """A named column. `name` is as the user wrote it, without backticks."""

    name: str
    type: DataType


@record
class Schema:
    """The columns of a node's records: `key` first (empty for a stream without key), then `value`; names are unique."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]


@record
class Item:
    """A computed column: its name, its expression, and the text that the user wrote, for messages."""

    name: str
    expr: Expr
    text: str


@record
class Store:
    """The store of a table.

    `kind` is ``versioned`` (KIP-889) or ``unversioned``. For a versioned store, in milliseconds: `retention` how far
    behind stream time a read as of a time may look, `grace` how far behind it a write is accepted, `segment` how much
    time a segment spans; all three None for an unversioned one. `implied` is true where no clause asked for the store
    but an operator needs it.
    """

    name: str
    kind: Choice["versioned", "unversioned"]
    retention: int | None = None
    grace: int | None = None
    segment: int | None = None
    implied: bool = False


@record
class Status:
    """Whether a table is versioned, why (a sentence), and the node that decided it. None for streams."""

    versioned: bool
    reason: str
    decided_by: str


@record
class Connector:
    """Where rows come from or go to. `options` are vsc's own (checked), `spark_options` are Spark's, handed through.

    Values are strings, whole numbers, decimals as strings, booleans; a string may hold ``${name}``, resolved by the
    runtime when the plan is run. Pairs are in the order in which they were written.
    """

    kind: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    spark_options: tuple[tuple[str, str | int | float | bool], ...] = ()

    @property
    def newest_only(self) -> bool:
        """Whether a sink takes only those changes of a versioned table that are the newest of their key."""
        return self.kind in ("delta", "iceberg", "jdbc") and not self.keeps_history

    @property
    def keeps_history(self) -> bool:
        """Whether rows are the versions of a table, each with the times between which it is valid."""
        return any(name == "history" for name, _ in self.options)

    @property
    def valid_from(self) -> str:
        """The column of a history from which time a row is valid."""
        return str(dict(self.options).get("valid_from", VALID_FROM))

    @property
    def valid_to(self) -> str:
        """The column of a history until which time a row is valid; null: it still is."""
        return str(dict(self.options).get("valid_to", VALID_TO))
