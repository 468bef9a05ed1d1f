"""What an operation says of itself: the defaults, and the words in which operations differ from them.

The compiler's lowering, the check of a plan and the runtime ask these facts instead of knowing the operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    """An operation that reads a stream and needs the records of one key in one place.

    Its inputs: `reads` are their kinds, ``own`` for the node's own kind, ``streams`` for any number of streams. Where
    it `looks_up`, only the first one's records come to it, and it looks into the others. Only what is not `by_key` can
    run where the sources are read.

    Its records: it `moves` them to another key, and so out of the stage; it `branches` where it may give several for
    one; something `waits` in it for stream time to go on. What `begins_windows` has a window's bounds behind its key.

    Its columns: it `reads_all` of its first input, or what its expressions name, and where it `hands_columns_on`, what
    its readers read. `of_first` are the members with expressions over the first input, `of_both` those over all inputs.

    Its state: what it `keeps` beside its table, as the name of the store says it, and of whom these rows are (`kept`):
    its node's ``result``, records of its first ``input``, or ``times`` alone. `limits` are the members, or parts of
    one, that say how long, how much or how late: another value counts from then on, and what is kept stays right. What
    is kept `of_all_rows` is right only if every row of the table behind the first input has come by.

    A source's table that is `global_` is seen whole by every partition.

    Its table: computed `row_by_row` of the input's; then its own store, if it has one, knows the rows before changes.
    With `old_of_inputs` these come from the inputs, whether it has a store or not.
    """

    __slots__ = ()

    reads: tuple[str, ...] = ("stream",)
    by_key = True
    moves: Any = False
    looks_up = False
    begins_windows: Any = False
    branches: Any = False
    waits: Any = False
    reads_all = True
    hands_columns_on = False
    of_first: tuple[str, ...] = ()
    of_both: tuple[str, ...] = ()
    keeps: Any = None
    kept = "result"
    of_all_rows: Any = False
    limits: tuple[str, ...] = ()
    global_ = False
    row_by_row = False
    old_of_inputs = False

    def asks_old(self, port: int) -> bool:
        """Whether it needs the row before a change of the table at an input."""
        return False

    def asks_latest(self, port: int) -> bool:
        """Whether it needs to know which changes of the table at an input are their key's newest."""
        return False

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """Its expressions; `own` is the schema of its node."""
        for name in self.of_first:
            yield from placed(name, getattr(self, name), inputs[:1])
        for name in self.of_both:
            yield from placed(name, getattr(self, name), inputs)

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether `own` has the columns that follow from the operation, as far as they are the same everywhere."""
        return True


def placed(place: str, items: Item | tuple[Item, ...] | None, seen: Schemas) -> Iterator[Placed]:
    """The expressions of a member."""
    if isinstance(items, Item):
        yield f"{place}/expr", items.expr, seen
    else:
        yield from ((f"{place}/{index}/expr", item.expr, seen) for index, item in enumerate(items or ()))


def made(items: tuple[Item, ...]) -> tuple[Column, ...]:
    """The columns that items make."""
    return tuple(Column(item.name, item.expr.type) for item in items)


def same_schema(self: Any, inputs: Schemas, own: Schema) -> bool:
    """`fits` of what leaves its records as they are."""
    return own == inputs[0]


def value_of_items(self: Any, inputs: Schemas, own: Schema) -> bool:
    """`fits` of what computes its value columns."""
    return made(self.items) == own.value


def always(self: Any, port: int) -> bool:
    """`asks_old` of what always does."""
    return True


def of_versioned(self: Any, port: int) -> bool:
    """`asks_latest` of what goes by the newest rows of a versioned table."""
    return bool(self.versioned)
