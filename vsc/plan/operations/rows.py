"""The operations that look at one record at a time, with what is read and lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.facts import Facts, Placed, Schemas, always, made, of_versioned, placed, same_schema, value_of_items
from vsc.plan.parts import Column, Connector, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import STRING, TIMESTAMP

__all__ = [
    "DEAD_LETTER",
    "DeadLetters",
    "Explode",
    "ExplodeChanges",
    "Filter",
    "Map",
    "Materialize",
    "Merge",
    "Rekey",
    "Source",
    "ToStream",
    "ToTable",
]


@record
class Source(Facts):
    """A source stream or table. `columns` are those of the declaration, in its order (key columns included).

    `timestamp` sees the declared columns as input 0 and is a ``timestamp`` or a ``bigint`` of milliseconds; None means
    the record's own time. `delete_when` is None for streams. `rank` is the place in D12's order: tables before streams,
    then the order in the file. Every partition sees all rows of a `global_` table. `max_ahead`: rows whose event time
    is more than this many ms ahead of the run's clock are dropped; None means no bound.
    """

    by_key = False
    reads = ()
    can_expire = True
    limits = ("max_ahead",)

    connector: Connector
    columns: tuple[Column, ...]
    timestamp: Item | None
    delete_when: Item | None
    rank: int
    global_: bool = False
    max_ahead: int | None = None
    op: Choice["source"] = "source"

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The timestamp and `delete_when`. Both see the declared columns."""
        declared = (Schema((), self.columns),)
        yield from placed("timestamp", self.timestamp, declared)
        yield from placed("delete_when", self.delete_when, declared)

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether `own` has the declared columns, in any order."""
        return set(self.columns) == {*own.key, *own.value}


@record
class Filter(Facts):
    """Keeps the records for which `predicate` is true; on a table, the others become tombstones.

    `dedupe` (D7): a tombstone for a key without a row is not sent on. Set for an unversioned table that has a store.
    """

    by_key = False
    reads = ("own",)
    row_by_row = True
    reads_all = False
    hands_columns_on = True
    of_first = ("predicate",)
    fits = same_schema

    predicate: Item
    dedupe: bool = False
    op: Choice["filter"] = "filter"

    def asks_old(self, port: int) -> bool:
        """Yes, to know whether the key had a row."""
        return self.dedupe


@record
class Map(Facts):
    """Computes new value columns. The key is the input's; the node's schema may rename its columns.

    `timestamp`: of a stream, the event time that a record with a value has from here on, in ms or a ``timestamp``; a
    record for which that is null, negative or later than its own is dropped. None: it keeps its own.
    """

    by_key = False
    reads = ("own",)
    row_by_row = True
    reads_all = False
    of_first = ("items", "timestamp")
    fits = value_of_items

    items: tuple[Item, ...]
    timestamp: Item | None = None
    op: Choice["map"] = "map"


@record
class Rekey(Facts):
    """Gives a stream another key, with one item for each key column. `value` are the input's columns that it keeps as
    value columns.

    The lowering also adds one before a join with ``on``, called ``JOIN#rekey``. A record with a null in its new key is
    dropped if that join needs a key (`vsc.plan.keyless`).
    """

    by_key = False
    moves = True
    reads_all = False
    hands_columns_on = True
    of_first = ("items",)

    items: tuple[Item, ...]
    op: Choice["rekey"] = "rekey"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether the key's columns are the items."""
        return made(self.items) == own.key


@record
class ToTable(Facts):
    """Reads a stream as a table: a record is its key's new row. A record without a value, or one for which
    `delete_when` is true, is a tombstone."""

    can_expire = True
    of_first = ("delete_when",)

    delete_when: Item | None
    op: Choice["to_table"] = "to_table"


@record
class Materialize(Facts):
    """The input unchanged, with a store of its own."""

    can_expire = True
    reads = ("table",)
    fits = same_schema

    op: Choice["materialize"] = "materialize"


@record
class ToStream(Facts):
    """A table's changes as a stream: a new row is a record, a tombstone is a record without a value."""

    reads = ("table",)
    fits = same_schema

    op: Choice["to_stream"] = "to_stream"


@record
class Merge(Facts):
    """The records of several streams with the same key, as they come. Value columns match by name, not by position."""

    by_key = False
    reads = ("streams",)
    reads_all = False
    hands_columns_on = True

    op: Choice["merge"] = "merge"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether each input has the same value columns, in any order."""
        return all(set(schema.value) == set(own.value) for schema in inputs)


@record
class Explode(Facts):
    """One record for each element of the array that `item` computes; `item.name` is the column that holds it.

    The column `position` holds the element's place in the array, from 0 on. These columns replace value columns of the
    same names, or come after the others, the position first.
    """

    by_key = False
    branches = True
    reads_all = False
    hands_columns_on = True
    of_first = ("item",)

    item: Item
    position: str | None = None
    op: Choice["explode"] = "explode"


@record
class ExplodeChanges(Facts):
    """First step of an `explode` of a table: the changes of each element, under the table's key and its position.

    Added by the lowering as ``EXPLODE#changes``, a stream. A change of the table gives a record for each element of the
    array of `item` that differs from the one at its place before, and one without a value for each that is gone. The
    node's key has the column `position`, the element's place in the array from 0 on; its value is as that of `Explode`.
    `versioned`: the table's status. The `explode`'s own node is a `ToTable` that reads this one.
    """

    reads = ("table",)
    moves = branches = True
    results = True
    of_first = ("item",)
    asks_old = always
    asks_latest = of_versioned

    item: Item
    position: str
    versioned: bool
    op: Choice["explode_changes"] = "explode_changes"


DEAD_LETTER = Schema(
    (),
    (
        *(Column(name, STRING) for name in ("node", "reason", "source", "position")),
        Column("event_time", TIMESTAMP),
        *(Column(name, STRING) for name in ("key", "value", "raw", "message")),
    ),
)
"""The columns of a dead letter: where and why the record was lost, where it was read, and the record itself."""


@record
class DeadLetters(Facts):
    """The dead letters of node `of` (None: of all nodes). `lost`: records that it dropped, or that found no row.

    Added by the lowering for ``sink dropped`` and ``sink missed``. It is in no stage: every stage fills it.
    """

    by_key = False
    reads = ()

    lost: Choice["dropped", "missed"]
    of: str | None
    op: Choice["dead_letters"] = "dead_letters"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether `own` is the schema of dead letters."""
        return own == DEAD_LETTER
