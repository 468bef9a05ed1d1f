"""First step of an aggregate over a table: its changes become records keyed by the group that each row belongs to.

A record says which row the group is to take back and which one it is to add. A change within one group is one record;
one from a group to another is two, the old group's first.
"""

from __future__ import annotations

from vsc.plan.nodes import Schema

__all__ = ["NEW", "OLD", "travelling"]

OLD, NEW = "old#", "new#"
"""What the columns of the row to take back, and of the row to add, are called in front of their own names."""


def travelling(table: Schema, changes: Schema) -> tuple[tuple[bool, int], ...]:
    """For each value column of the changes behind the two flags: is it of the new row, and its place in the table."""
    places = {c.name: i for i, c in enumerate(table.key + table.value)}
    return tuple((c.name.startswith(NEW), places[c.name[len(NEW) :]]) for c in changes.value[2:])
