"""Joins of a stream with a table: their records look into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.facts import Facts, Placed, Schemas, always, made, of_versioned, placed, same_schema, value_of_items
from vsc.plan.parts import Column, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import BOOLEAN, INT

__all__ = [
    "REVISION",
    "ROW_CHANGE",
    "Correct",
    "Grace",
    "RowChanges",
    "StreamGlobalJoin",
    "StreamTableJoin",
    "with_revision",
]


@record
class StreamTableJoin(Facts):
    """Joins a stream's records with a table's rows (KIP-914). The inputs (stream, table) already have the same key.

    `left`: a record without a partner is kept, also one without a key (D26). `as_of`: joins with the row valid at the
    record's time instead of the newest. `grace`: how long in ms a record waits before it is joined (KIP-923), or None;
    one without a key does not wait. `max_age`: a row that became valid more than this many ms before the record's time
    counts as not found, or None. `strictly_before`: joins with the row valid just before the record's time.
    `drop_older`: a left join, too, drops a record that is older than the table's history. `items` see the stream's
    record as input 0 and the table's row as input 1. Without a partner, every column of input 1 is null, its key
    included. The result's key is the stream's key, under the names of the node's schema.
    """

    reads = ("stream", "table")
    looks_up = True
    reads_all = False
    of_both = ("items",)
    fits = value_of_items
    kept = "input"
    holds_all = True
    limits = ("grace", "max_age")

    left: bool
    as_of: bool
    grace: int | None
    items: tuple[Item, ...]
    max_age: int | None = None
    strictly_before: bool = False
    drop_older: bool = False
    op: Choice["stream_table_join"] = "stream_table_join"

    @property
    def needs_key(self) -> bool:
        """Not to keep a record without one."""
        return not self.left

    @property
    def waits(self) -> bool:
        """With a grace, records wait."""
        return self.grace is not None

    branches = waits

    @property
    def holds(self) -> int:
        """The grace."""
        return self.grace or 0

    @property
    def counts_late(self) -> bool:
        """If it looks up as of a time."""
        return self.as_of

    @property
    def keeps(self) -> str | None:
        """With a grace: the records that wait."""
        return "waiting" if self.waits else None


@record
class Grace(Facts):
    """Lets a stream's records wait for `grace` ms beyond their time, in front of a join (KIP-923).

    The lowering adds one, called ``JOIN#grace``, before a `Correct`; a `StreamTableJoin` has its own. `left`: the join
    keeps a record without a key, which does not wait. How long it holds records back counts at the join.
    """

    waits = branches = True
    reads_all = False
    hands_columns_on = True
    fits = same_schema
    keeps = "waiting"
    kept = "input"
    limits = ("grace",)

    left: bool
    grace: int
    op: Choice["grace"] = "grace"

    @property
    def needs_key(self) -> bool:
        """As the join does."""
        return not self.left


REVISION = Column("#revision", INT)
"""What the items of a `Correct` see of its records, beside their columns: how many results went out before."""

ROW_CHANGE = (Column("#old", BOOLEAN), Column("#new", BOOLEAN))
"""What the records of `RowChanges` carry ahead of the row: whether there was a row under their key and at their time,
and whether there is one now."""


@record
class RowChanges(Facts):
    """First step of a corrected join of a table whose row times never change: its changes, under the key by which rows
    are looked up, which `items` compute.

    Added by the lowering as ``JOIN#changes``, a stream. Its value is `ROW_CHANGE`, then the columns that the join
    reads, the table's key among them. A row that gets another key or time is first removed, at its old ones. `left`: a
    row with a null in its new key is kept. `versioned`: changes that are not their key's newest are dropped.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("items",)
    asks_old = always
    asks_latest = of_versioned

    left: bool
    items: tuple[Item, ...]
    versioned: bool
    op: Choice["row_changes"] = "row_changes"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether the key's columns are the items, and the value's first ones what has happened."""
        return made(self.items) == own.key and own.value[: len(ROW_CHANGE)] == ROW_CHANGE


@record
class Correct(Facts):
    """A `StreamTableJoin` as of a time whose results are corrected by late versions (``correct by ... within D``).

    Added by the lowering as ``JOIN#correct``, a stream of changes keyed by what `by` computes of the stream's record.
    The join's own node is a `ToTable` that reads this one. A record is kept until the clock is more than `within` ms
    past its time; a version of the table has the results recomputed of the kept records for which it is valid. `items`
    see the record, with `REVISION` behind its columns, as input 0. `table`: the records are `RowChanges`, which replace
    and remove what is kept of the rows that `by` names.
    """

    reads = ("stream", "table")
    looks_up = watches = True
    moves = branches = True
    reads_all = False
    counts_late = True
    keeps = "corrected"
    limits = ("within", "max_age")

    left: bool
    within: int
    by: tuple[Item, ...]
    items: tuple[Item, ...]
    max_age: int | None = None
    strictly_before: bool = False
    drop_older: bool = False
    table: bool = False
    op: Choice["correct"] = "correct"

    @property
    def needs_key(self) -> bool:
        """Not to keep a record without one."""
        return not self.left

    @property
    def holds(self) -> int:
        """A result is final when no version can correct it any more."""
        return self.within

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The key of the results, and the items, which see a record's revision, too."""
        yield from placed("by", self.by, inputs[:1])
        yield from placed("items", self.items, (with_revision(inputs[0]), *inputs[1:]))

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether `own` has the columns of `by` and of the items."""
        return made(self.by) == own.key and made(self.items) == own.value


def with_revision(schema: Schema) -> Schema:
    """The schema of a record whose results are corrected, as their items see it."""
    return Schema(schema.key, (*schema.value, REVISION))


@record
class StreamGlobalJoin(Facts):
    """Joins a stream's records with a global table's newest rows, by the key that `on` computes (KIP-99).

    The inputs are (stream, global table); `on` sees the stream's record, `items` see both. The result keeps the
    stream's key. If `on` gives a null, an inner join drops the record, and a left join keeps it without a partner.
    `max_age`: as in `StreamTableJoin`, by the newest row's own time.
    """

    by_key = False
    reads = ("stream", "table")
    looks_up = True
    reads_all = False
    of_first = ("on",)
    of_both = ("items",)
    fits = value_of_items
    limits = ("max_age",)

    left: bool
    on: tuple[Item, ...]
    items: tuple[Item, ...]
    max_age: int | None = None
    op: Choice["stream_global_join"] = "stream_global_join"
