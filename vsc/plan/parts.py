"""The parts of a node other than its operation: columns, items, stores, connectors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal as Choice

from vsc.plan.connectors import facts_of
from vsc.plan.expressions import Expr
from vsc.plan.record import record
from vsc.plan.types import DataType, quoted_name

__all__ = [
    "MODULE", "VALID_FROM", "VALID_TO", "Column", "Connector", "Item", "OwnFunction", "Schema", "Status", "Store",
    "column_list",
]  # fmt: skip

MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""The name of a module of Python."""
_COLUMN = re.compile(r"`((?:[^`]|``)+)`|([^`,\s]+)")

VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""The default columns of a history; options of the same names change them."""


@record
class Column:
    """A named column. `name` is as the user wrote it, without backticks."""

    name: str
    type: DataType


@record
class Schema:
    """The columns of a node's records: `key` (empty for a stream without a key), then `value`. Names are unique."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]


@record
class Item:
    """A computed column: its name, its expression, and, for messages, the text that the user wrote."""

    name: str
    expr: Expr
    text: str


@record
class OwnFunction:
    """A function of the user's, as it is declared. `reference` says where it is: ``module:name``.

    It takes and gives Python values of one row, or Arrow arrays of many if it is `vectorized`.
    """

    name: str
    parameters: tuple[Column, ...]
    returns: DataType
    reference: str
    vectorized: bool = False

    @property
    def module(self) -> str:
        """What is imported."""
        return self.reference.partition(":")[0]


@record
class Store:
    """The store of a table.

    `kind` is ``versioned`` (KIP-889) or ``unversioned``. A versioned store has three times in milliseconds:
    `retention`, how far behind stream time a look-up as of a time can go; `grace`, how far behind it a write is still
    accepted; `segment`, the span of a segment. An unversioned store has None for each; `expire` is its own: a row whose
    time is so many ms behind the clock is removed; None: rows stay. `implied` is true if no clause asked for the store,
    but an operator needs it: then it may `forget`, without a tombstone, rows whose time is so many ms behind the clock,
    as nothing changes them any more; None: rows stay. `history` of a versioned one: with ``complete``, the table as of
    every time within the retention is its operation over its inputs as of that time (KIP-914, "Attempt 2").
    """

    name: str
    kind: Choice["versioned", "unversioned"]
    retention: int | None = None
    grace: int | None = None
    segment: int | None = None
    implied: bool = False
    expire: int | None = None
    history: Choice["latest", "complete"] = "latest"
    forget: int | None = None


@record
class Status:
    """Whether a table is versioned, why (a sentence), and the node that decided it. None for streams."""

    versioned: bool
    reason: str
    decided_by: str


def column_list(names: Iterable[str]) -> str:
    """The value of an option that names columns: as they are written in a topology."""
    return ", ".join(map(quoted_name, names))


def _columns_of(text: str) -> tuple[str, ...]:
    """The names that `column_list` has written."""
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in _COLUMN.findall(text))


@record
class Connector:
    """Where rows come from or go to. `options` are vsc's own and checked; `spark_options` are passed to Spark as is.

    Values are strings, whole numbers, decimals as strings, or booleans. A string may hold ``${name}``, which the
    runtime resolves when the plan is run. Pairs are in the order in which they were written.
    """

    kind: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    spark_options: tuple[tuple[str, str | int | float | bool], ...] = ()

    @property
    def newest_only(self) -> bool:
        """Whether a sink takes only the newest change of each key of a versioned table."""
        return facts_of(self.kind).newest_only and not self.keeps_history

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns by whose values a sink of files has folders, the outer one first; none for one folder."""
        return _columns_of(str(dict(self.options).get("partition_by", "")))

    @property
    def keeps_history(self) -> bool:
        """Whether rows are the versions of a table, each with its valid from and valid to."""
        return any(name == "history" for name, _ in self.options)

    @property
    def valid_from(self) -> str:
        """The column of a history that says from when a row is valid."""
        return str(dict(self.options).get("valid_from", VALID_FROM))

    @property
    def valid_to(self) -> str:
        """The column of a history that says until when a row is valid; null if it still is."""
        return str(dict(self.options).get("valid_to", VALID_TO))
