"""One store of a plan, as its users see it."""

from __future__ import annotations

from dataclasses import dataclass

from vsc.plan.nodes import Column

__all__ = ["StoreInfo"]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store of a plan.

    `node` is the node in the plan that keeps it, `owner` the user's node that this belongs to. `key` and `value` are
    the columns of its rows; `extra` are further columns, each a bigint or null: times in ms, a number of rows.
    `partitioned` is the node by whose key its rows are spread. `replicated`: every partition has
    all rows (a global table). `canonical` is False for a table's further copies, in other stages that read it.
    """

    name: str
    node: str
    owner: str
    stage: int
    kind: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    extra: tuple[str, ...]
    prefix: bytes
    partitioned: str
    replicated: bool = False
    canonical: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The headers that users see: the columns, the status, `extra`.

        If one of the latter has the name of a column, it is called ``_vsc_...`` instead; no column may have such a
        name.
        """
        own = tuple(column.name for column in (*self.key, *self.value))
        taken = {name.lower() for name in own}
        beside = ("_status", *(f"_{name}" for name in self.extra))
        return (*own, *(f"_vsc{name}" if name in taken else name for name in beside))

    @property
    def is_table(self) -> bool:
        """Whether it is a table's own store."""
        return self.kind in ("versioned", "unversioned")
