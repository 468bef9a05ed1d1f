"""Facts about operations: their defaults, which each operation overrides where it differs.

The compiler's lowering, the check of a plan and the runtime read these facts instead of knowing the operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from vsc.plan.expressions import Expr
from vsc.plan.parts import Column, Item, Schema

__all__ = [
    "Facts",
    "Placed",
    "Schemas",
    "always",
    "made",
    "of_versioned",
    "placed",
    "same_schema",
    "value_of_items",
]

Schemas = tuple[Schema, ...]
Placed = tuple[str, Expr, Schemas]
"""An expression of an operation: its place in the operation's JSON, and what it sees, input by input."""


class Facts:
    """The facts of an operation. By default it reads a stream and needs the records of one key in one place.

    Inputs: `reads` are their kinds; ``own`` is the node's own kind, ``streams`` any number of streams. If it
    `looks_up`, it takes only the records of the first input, and looks rows up in the others. If it `watches` these,
    too, it takes their changes, which do not move its clock. Only an operation that is not `by_key` can run where the
    sources are read.

    Records: if it `needs_key`, those with a null in their key are dropped (D26). It `moves` them to another key, and so
    out of the stage. It `branches` if it may give several records for one. It `waits` if it holds something until
    stream time advances: at most `holds` ms beyond a record's time, and if it `holds_windows`, that long beyond the
    window's end; with `holds_all`, that long for every record that is in time. It `counts_late` if it counts the
    versions of the table that it looks into, or the records of its second input, which come later than it waits. It
    `begins_windows` if its key ends with a window's bounds. It `tells_time` if it asks how late it is without windows
    or a versioned table.

    Columns: it `reads_all` columns of its first input, or else those that its expressions name; if it
    `hands_columns_on`, also those that its readers read. `of_first` are the members with expressions over the first
    input, `of_both` those with expressions over all inputs.

    With `in_order`, the times of its records do not decrease, not even after the end of the input.

    State: `keeps` is what it keeps beside its table, in the words of the store's name. `kept` says what these rows are:
    its node's ``result``, records of its first ``input`` or of all its ``inputs``, or only ``times``. `limits` are the
    members, or parts of one, that say how long, how much or how late; a new value applies from then on, and the state
    stays valid. State `of_all_rows` is valid only if the operation has seen every row of the table that its first input
    comes from.

    Every partition sees all rows of a source's table that is `global_`.

    Table: its rows `can_expire` if they are those of its input. `row_by_row` if each row is computed from one row of
    it; they are `results` if each is computed from several rows, at the latest of their times. A table's own store, if
    it has one, knows the rows before changes; without one, they come from the inputs if it is `row_by_row` or has
    `old_of_inputs`. It is `complete` if it takes part in the computation of a complete history: it then takes every
    change with the interval on which it is valid.
    """

    __slots__ = ()

    reads: tuple[str, ...] = ("stream",)
    by_key = True
    looks_up = watches = False
    tells_time = False
    in_order = False
    holds_all = False
    reads_all = True
    hands_columns_on = False
    of_first: tuple[str, ...] = ()
    of_both: tuple[str, ...] = ()
    kept = "result"
    limits: tuple[str, ...] = ()
    global_ = False
    row_by_row = False
    results = False
    can_expire = False
    old_of_inputs = False
    complete = False

    @property
    def needs_key(self) -> bool:
        """Yes if it is `by_key`."""
        return self.by_key

    @property
    def moves(self) -> bool:
        """No."""
        return False

    def turn_of(self, port: int) -> int:
        """When a record that reaches several inputs of the node reaches this one; the least comes first."""
        return port

    @property
    def branches(self) -> bool:
        """No."""
        return False

    @property
    def waits(self) -> bool:
        """No."""
        return False

    @property
    def holds(self) -> int:
        """By default, nothing is held back."""
        return 0

    @property
    def counts_late(self) -> bool:
        """No."""
        return False

    @property
    def holds_windows(self) -> bool:
        """No."""
        return False

    @property
    def begins_windows(self) -> bool:
        """No."""
        return False

    @property
    def keeps(self) -> str | None:
        """Nothing."""
        return None

    @property
    def of_all_rows(self) -> bool:
        """No."""
        return False

    def asks_old(self, port: int) -> bool:
        """Whether it needs the row before each change of the table at an input."""
        return False

    def asks_latest(self, port: int) -> bool:
        """Whether it needs to know which changes of the table at an input are the newest of their key."""
        return False

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """Its expressions; `own` is the schema of its node."""
        for name in self.of_first:
            yield from placed(name, getattr(self, name), inputs[:1])
        for name in self.of_both:
            yield from placed(name, getattr(self, name), inputs)

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether `own` has the columns that follow from the operation, as far as it determines them."""
        return True


def placed(place: str, items: Item | tuple[Item, ...] | None, seen: Schemas) -> Iterator[Placed]:
    """The expressions of a member."""
    if isinstance(items, Item):
        yield f"{place}/expr", items.expr, seen
    else:
        yield from ((f"{place}/{index}/expr", item.expr, seen) for index, item in enumerate(items or ()))


def made(items: tuple[Item, ...]) -> tuple[Column, ...]:
    """The columns that `items` compute."""
    return tuple(Column(item.name, item.expr.type) for item in items)


class _WithItems(Protocol):
    """An operation that computes columns."""

    @property
    def items(self) -> tuple[Item, ...]: ...


class _OfVersioned(Protocol):
    """An operation over a table that may be versioned."""

    @property
    def versioned(self) -> bool: ...


def same_schema(self: Facts, inputs: Schemas, own: Schema) -> bool:
    """`fits` for operations that leave records as they are."""
    return own == inputs[0]


def value_of_items(self: _WithItems, inputs: Schemas, own: Schema) -> bool:
    """`fits` for operations that compute their value columns."""
    return made(self.items) == own.value


def always(self: Facts, port: int) -> bool:
    """`asks_old` for operations that always need it."""
    return True


def of_versioned(self: _OfVersioned, port: int) -> bool:
    """`asks_latest` for operations that use only the newest rows of a versioned table."""
    return self.versioned
