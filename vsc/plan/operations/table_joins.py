"""Joins of two tables: by their key, and by another one, for which rows subscribe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.facts import Facts, Placed, Schemas, always, of_versioned, placed, value_of_items
from vsc.plan.parts import Column, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import BIGINT, BOOLEAN

__all__ = ["PIECE", "SPAN", "Answer", "Subscribe", "TableTableJoin"]

SPAN = (Column("#until", BIGINT), Column("#ends", BOOLEAN))
"""What a subscription carries for a complete history: until when the left row is valid (ms), and whether it then ends
for the key that it refers to: no other row of the left table follows that refers to it, too."""

PIECE = (Column("#there", BOOLEAN), *SPAN)
"""What an answer carries for a complete history: whether there is a result, until when it is valid (ms), and whether
it ends then: the next answer does not go on where this one ends."""


@record
class TableTableJoin(Facts):
    """A primary-key join of two tables with the same key (KIP-914). It joins newest rows; the inputs are (left, right).

    `left_versioned`, `right_versioned`: the side drops changes that are not their key's newest, as it is versioned and
    the join's own history is not complete.
    `items` see the left row as input 0, the right one as input 1; a missing side's columns are null.
    """

    reads = ("table", "table")
    results = True
    old_of_inputs = True
    of_both = ("items",)
    fits = value_of_items

    mode: Choice["inner", "left", "outer"]
    left_versioned: bool
    right_versioned: bool
    items: tuple[Item, ...]
    op: Choice["table_table_join"] = "table_table_join"

    def asks_old(self, port: int) -> bool:
        """To know whether there was a result, a left join needs the old left row, an outer join both old rows."""
        return self.mode == "outer" or (self.mode == "left" and port == 0)

    def asks_latest(self, port: int) -> bool:
        """Yes for a versioned side."""
        return self.right_versioned if port else self.left_versioned


@record
class Subscribe(Facts):
    """First step of a foreign-key join: changes of the left table become subscriptions, keyed by the foreign key.

    Added by the lowering as ``JOIN#subscribe``, a stream. `foreign_key` sees the left row. In its schema, the key is
    that of the right table; the value is the left table's key columns, those of its value columns that the join reads,
    and last ``#instruction`` (int; the runtime defines the numbers), if `complete` after the columns of `SPAN`. `left`:
    for a left join. `versioned`: changes that are not their key's newest are dropped.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("foreign_key",)
    asks_old = always
    asks_latest = of_versioned

    foreign_key: tuple[Item, ...]
    left: bool
    versioned: bool
    complete: bool = False
    op: Choice["subscribe"] = "subscribe"


@record
class Answer(Facts):
    """Second step of a foreign-key join, where the right table is: answers subscriptions and that table's changes.

    Added by the lowering as ``JOIN#answer``, a stream with the left table's key. Its inputs are (``JOIN#subscribe``,
    right). `items` see the left row as input 0, as it travelled with its subscription (schema `left_schema`), and the
    right row as input 1. `versioned`: changes that are not their key's newest are dropped. The join's own node is a
    `ToTable` that reads this one; if `complete`, the value ends with the columns of `PIECE`.
    """

    reads = ("stream", "table")
    moves = branches = True
    results = True
    asks_latest = of_versioned
    keeps = "subscriptions"
    of_all_rows = True

    left: bool
    versioned: bool
    left_schema: Schema
    items: tuple[Item, ...]
    complete: bool = False
    op: Choice["answer"] = "answer"

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The items, which see the left row as it travelled."""
        yield from placed("items", self.items, (self.left_schema, inputs[1]))
