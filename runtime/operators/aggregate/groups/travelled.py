"""The changes of a table on their way to the groups of an aggregate, which `group_changes` makes.

A record has the row that the group takes back and the row that it adds. A change within one group is one record; a
change from one group to another is two, the old group's first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vsc.plan.nodes import Aggregate, GroupChanges, Node, Plan, Schema
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec

__all__ = ["Travelled", "travelling"]

_OLD, _NEW = "old#", "new#"
"""The prefixes of the column names of the row to take back, and of the row to add."""


def travelling(table: Schema, changes: GroupChanges) -> tuple[tuple[bool, int], ...]:
    """For each column of the old row, then of the new one: is it of the new row, and its place in the table."""
    places = {c.name: i for i, c in enumerate(table.key + table.value)}
    return tuple((is_new, places[name]) for is_new in (False, True) for name in changes.columns)


class Travelled:
    """Splits the input of `node`, the aggregate of a table, into the table's rows.

    `old` and `new` are the columns of the row to take back and of the row to add, `ident` those of a row that are its
    key in the table.
    """

    __slots__ = ("ident", "keys", "new", "old")

    def __init__(self, plan: Plan, node: Node, operation: Aggregate) -> None:
        changes = plan.node(node.inputs[0])
        if not isinstance(changes.operation, GroupChanges):
            raise ValueError(f"node '{node.name}': a table is aggregated by its grouped changes only")
        table = plan.node(changes.inputs[0]).schema.key
        places = {c.name: i for i, c in enumerate(changes.schema.value)}
        names = [c.name for c in operation.row.key + operation.row.value]
        self.old, self.new = ([places[side + name] for name in names] for side in (_OLD, _NEW))
        self.ident, self.keys = [names.index(c.name) for c in table], KeyCodec([c.type for c in table])

    def columns(self, changes: Sequence[pa.Array]) -> tuple[list[pa.Array], list[pa.Array]]:
        """The columns of the rows to take back, and of those to add; the change's flags say which rows exist."""
        return [changes[i] for i in self.old], [changes[i] for i in self.new]

    def idents(self, rows: Sequence[pa.Array]) -> tuple[Sequence[bytes], Int64s]:
        """The distinct identities of rows, and which of them each row has."""
        return self.keys.encode_columns([rows[i] for i in self.ident])
