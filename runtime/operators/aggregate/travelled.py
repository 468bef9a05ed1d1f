"""The input of a table's aggregate: the row to take back and the row to add, in one record (`group_changes`)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vsc.plan.nodes import Aggregate, GroupChanges, Node, Plan, Schema
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec

__all__ = ["Travelled", "travelled"]


class Travelled:
    """Splits a grouped change into its two rows of the table."""

    __slots__ = ("_ident", "_keys", "_new", "_old")

    def __init__(self, changes: Schema, row: Schema, table: Schema) -> None:
        places = {c.name: i for i, c in enumerate(changes.value)}
        names = [c.name for c in row.key + row.value]
        self._old = [places[f"old#{name}"] for name in names]
        self._new = [places[f"new#{name}"] for name in names]
        self._ident = [names.index(c.name) for c in table.key]
        self._keys = KeyCodec([c.type for c in table.key])

    def rows(self, change: Row) -> tuple[Row | None, Row | None]:
        """The row to take back and the row to add; each may be None."""
        old = tuple([change[i] for i in self._old]) if change[0] else None
        return old, tuple([change[i] for i in self._new]) if change[1] else None

    def columns(self, changes: Sequence[pa.Array]) -> tuple[list[pa.Array], list[pa.Array]]:
        """The columns of the rows to take back, and of those to add; the change's flags say which rows exist."""
        return [changes[i] for i in self._old], [changes[i] for i in self._new]

    def idents(self, rows: Sequence[pa.Array]) -> tuple[Sequence[bytes], Int64s]:
        """The distinct identities of rows, and which of them each row has."""
        return self._keys.encode_columns([rows[i] for i in self._ident])

    def ident(self, row: Row) -> bytes:
        """The row's identity: its key in its table."""
        return self._keys.encode([row[i] for i in self._ident])


def travelled(plan: Plan, node: Node, operation: Aggregate) -> Travelled:
    """Splits the input of `node`, the aggregate of a table."""
    changes = plan.node(node.inputs[0])
    if not isinstance(changes.operation, GroupChanges):
        raise ValueError(f"node '{node.name}': a table is aggregated by its grouped changes only")
    return Travelled(changes.schema, operation.row, plan.node(changes.inputs[0]).schema)
