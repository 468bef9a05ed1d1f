"""First step of an aggregate over a table: its changes become records keyed by the group that each row belongs to.

A record has the row that the group takes back and the row that it adds. A change within one group is one record; a
change from one group to another is two, the old group's first.
"""

from __future__ import annotations

from vsc.plan.nodes import Schema

__all__ = ["NEW", "OLD", "travelling"]

OLD, NEW = "old#", "new#"
"""The prefixes of the column names of the row to take back, and of the row to add."""


def travelling(table: Schema, changes: Schema) -> tuple[tuple[bool, int], ...]:
    """For each value column of the changes after the two flags: is it of the new row, and its place in the table."""
    places = {c.name: i for i, c in enumerate(table.key + table.value)}
    return tuple((c.name.startswith(NEW), places[c.name[len(NEW) :]]) for c in changes.value[2:])
