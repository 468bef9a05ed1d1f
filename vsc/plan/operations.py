"""The operations of a plan, each with what the compiler and the runtime need to know about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.expressions import Expr
from vsc.plan.facts import Facts, Placed, Schemas, always, made, of_versioned, placed, same_schema, value_of_items
from vsc.plan.parts import Column, Connector, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import BIGINT, BOOLEAN, INT, STRING, TIMESTAMP, DataType

__all__ = [
    "DEAD_LETTER", "PIECE", "REVISION", "ROW_CHANGE", "SPAN", "VALIDITY", "Aggregate", "AggregateCall", "Answer",
    "Correct", "DeadLetters", "Distinct", "Explode", "ExplodeChanges", "Filter", "Grace", "GroupChanges", "Map",
    "Materialize", "Merge", "Operation", "Rekey", "Reorder", "RowChanges", "Source", "StreamGlobalJoin",
    "StreamStreamJoin", "StreamTableJoin", "Subscribe", "Suppress", "TableTableJoin", "ToStream", "ToTable", "Window",
    "WithinAggregate", "with_revision",
]  # fmt: skip

SPAN = (Column("#until", BIGINT), Column("#ends", BOOLEAN))
"""What a subscription carries for a complete history: until when the left row is valid (ms), and whether it then ends
for the key that it refers to: no other row of the left table follows that refers to it, too."""
PIECE = (Column("#there", BOOLEAN), *SPAN)
"""What an answer carries for a complete history: whether there is a result, until when it is valid (ms), and whether
it ends then: the next answer does not go on where this one ends."""
VALIDITY = (Column("#since", BIGINT), Column("#until", BIGINT))
"""What the change of a group carries for a complete history: since when the row that it takes back is valid (ms), and
until when the change is."""


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
class StreamStreamJoin(Facts):
    """Joins the records of two streams with the same key whose times are close enough; the inputs are (left, right).

    A right record meets the left ones that are at most `before` ms later or `after` ms earlier than itself. In a
    ``left`` join left records without a partner come out, in an ``outer`` one those of both sides: `grace` ms after the
    last time of a partner. `items` see the left record as input 0, the right one as input 1; a missing side's columns
    are null.
    """

    reads = ("stream", "stream")
    branches = True
    tells_time = True
    reads_all = False
    of_both = ("items",)
    fits = value_of_items
    keeps = "records"
    kept = "inputs"
    limits = ("grace",)

    mode: Choice["inner", "left", "outer"]
    before: int
    after: int
    grace: int
    items: tuple[Item, ...]
    op: Choice["stream_stream_join"] = "stream_stream_join"

    @property
    def ahead(self) -> tuple[int, int]:
        """How much later a partner may be, by side."""
        return self.after, self.before

    @property
    def keeping(self) -> tuple[bool, bool]:
        """Whether records without a partner come out, by side."""
        return self.mode != "inner", self.mode == "outer"

    @property
    def span(self) -> int:
        """How far behind the newest record of its side a record is not found any more."""
        return self.before + self.after + self.grace

    @property
    def waits(self) -> bool:
        """Unless it is an inner join, records wait for partners."""
        return self.mode != "inner"

    @property
    def holds(self) -> int:
        """As long as a partner may come, and 1 ms."""
        if not self.waits:
            return 0
        return (max(self.ahead) if self.mode == "outer" else self.after) + self.grace + 1


@record
class WithinAggregate(Facts):
    """For each left record, calls of aggregates over the right records of its key that are close enough in time; the
    inputs are (left, right).

    These are at most `before` ms earlier and `after` ms later than the left one; `strictly_before`: earlier. `overs`:
    by call, how much earlier they may be, at most `before`. Without `after` and `grace` the result goes out at the
    record, over what has come; otherwise `grace` ms after the last time of a right record, and 1 ms. If it keeps `left`
    records, those without any come out as well. The arguments of calls see the right record as input 0; `items` see the
    left one as input 0, and the results of the calls as the columns ``#0``, ``#1``, ... of input 1.
    """

    reads = ("stream", "stream")
    branches = True
    tells_time = True
    reads_all = False
    fits = value_of_items
    keeps = "records"
    kept = "inputs"
    limits = ("grace",)

    left: bool
    before: int
    after: int
    grace: int
    strictly_before: bool
    calls: tuple[AggregateCall, ...]
    overs: tuple[int, ...]
    items: tuple[Item, ...]
    op: Choice["within_aggregate"] = "within_aggregate"

    @property
    def ahead(self) -> tuple[int, int]:
        """How much later a partner may be, by side."""
        return self.after, self.before

    @property
    def span(self) -> int:
        """How far behind the clock a right record is not found any more."""
        return self.before + self.after + self.grace

    @property
    def waits(self) -> bool:
        """Whether left records wait: for later right ones, or for those that come late."""
        return bool(self.after + self.grace)

    @property
    def holds(self) -> int:
        """As long as a right record may come, and 1 ms."""
        return self.after + self.grace + 1 if self.waits else 0

    def turn_of(self, port: int) -> int:
        """Right before left: of a stream that is joined with itself, a record is among its own."""
        return -port

    @property
    def call_columns(self) -> tuple[Column, ...]:
        """The columns of the calls' results."""
        return tuple(Column(f"#{index}", call.type) for index, call in enumerate(self.calls))

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The arguments see the right records; the items see the left one and the results of the calls."""
        for index, call in enumerate(self.calls):
            for number, argument in enumerate(call.args):
                yield f"calls/{index}/args/{number}", argument, (inputs[1],)
        yield from placed("items", self.items, (inputs[0], Schema((), self.call_columns)))


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


_SET_BACK = 7 * 3_600_000
"""The most by which the clocks of any zone have been set back since 1970: those of Antarctica/Vostok, in 1994."""


@record
class Window:
    """The window of an aggregate, in ms. `size` is the size, a sliding window's difference or a session's gap.
    `advance` is a hopping window's advance, a tumbling window's size, else 0.

    Tumbling and hopping windows begin `offset` after the multiples of `advance` since 1970; with a `zone`, by the
    clocks there. Windows of so many calendar `months` begin `offset` after the first of a month, and `size` is what
    the longest of them can be.
    """

    kind: Choice["tumbling", "hopping", "sliding", "session"]
    size: int
    advance: int
    grace: int
    offset: int = 0
    zone: str | None = None
    months: int = 0

    @property
    def shape(self) -> tuple[str | int | None, ...]:
        """What decides about which windows there are; as short as it was when there was less to decide."""
        shape = (self.kind, self.size, self.advance, self.offset, self.zone, self.months)
        return shape if any(shape[3:]) else shape[:3]

    @property
    def span(self) -> int:
        """How far the end of a window can be behind the time of its result. A session's end is that time."""
        return 0 if self.kind == "session" else self.size + (_SET_BACK if self.zone else 0)

    @property
    def held(self) -> int:
        """How far stream time is ahead of a result when the window closes, at most."""
        inclusive = self.kind in ("sliding", "session")  # still open at its end plus grace
        return (self.size if self.kind == "session" else self.span) + self.grace + inclusive

    @property
    def lingers(self) -> int:
        """How long after its end a window closes."""
        return self.held - self.span


@record
class GroupChanges(Facts):
    """First step of an aggregate over a table: its changes, keyed by the group that each row belongs to.

    Added by the lowering as ``AGGREGATE#changes``, a stream. Its value is ``#old`` (boolean: whether a row is taken
    back), ``#new`` (boolean: whether a row is added), then each of `columns` twice, as ``old#NAME`` and ``new#NAME``.
    `columns` are first all key columns of the table, even those that the aggregate does not read (they identify the row
    that is taken back), then the other columns that it reads; if `complete`, last those of `VALIDITY`. `versioned`:
    changes that are not their key's newest are dropped. `window`: of a table whose row times never change, the windows
    that a row counts in, tumbling or hopping ones; their bounds end the key. What is too late for one is dropped.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("group",)
    asks_old = always
    asks_latest = of_versioned
    limits = ("window.grace",)

    group: tuple[Item, ...]
    columns: tuple[str, ...]
    versioned: bool
    complete: bool = False
    window: Window | None = None
    op: Choice["group_changes"] = "group_changes"

    @property
    def begins_windows(self) -> bool:
        """With a window."""
        return self.window is not None


@record
class AggregateCall:
    """One call of an aggregate function: ``count sum avg stddev variance min max min_by max_by first last
    collect_list collect_set collect_top collect_last approx_percentile``.

    `args` see the aggregated row (`Aggregate.row`) as input 0; ``count(*)`` has no arguments, ``collect_top(a, 3 by b
    desc)`` has a, b, 3 and true, ``approx_percentile(a, 0.5)`` a and a double, ``collect_last(a, 3)`` a, the
    row's time (null where a is) and 3. `type` is the result's.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool
    type: DataType
    text: str

    @property
    def kept_types(self) -> tuple[DataType, ...]:
        """The types of the values that its state keeps; empty if it only counts."""
        return () if self.function == "count" and not self.distinct else tuple(arg.type for arg in self.args)


@record
class Aggregate(Facts):
    """Aggregates the groups of a stream's records, or of a table's rows, by the input's key.

    For a table, the input is a `GroupChanges`. `row` is the schema of the aggregated rows: for a stream the input's;
    for a table an empty key and the columns that travelled. `items` see, as input 0, the group's key columns (with a
    window's bounds) and the calls' results as columns ``#0``, ``#1``, ... `final`: a window's result is sent once, when
    it closes (KIP-825). `timed`: the last call gives the time of a result, the highest one of the rows that the group
    has; otherwise it is the highest one of those that it has ever had.
    """

    results = True
    reads_all = False
    fits = value_of_items
    limits = ("window.grace",)

    over: Choice["stream", "table"]
    row: Schema
    calls: tuple[AggregateCall, ...]
    items: tuple[Item, ...]
    window: Window | None
    final: bool
    timed: bool = False
    op: Choice["aggregate"] = "aggregate"

    @property
    def branches(self) -> bool:
        """With a window: a record changes several windows, or closes them."""
        return self.window is not None

    begins_windows = branches

    @property
    def waits(self) -> bool:
        """A final result waits for its window to close."""
        return self.final

    @property
    def holds(self) -> int:
        """A final result, until its window closes."""
        return self.window.held if self.final and self.window is not None else 0

    @property
    def of_all_rows(self) -> bool:
        """For a table: a changed row's former values are taken back."""
        return self.over == "table"

    @property
    def keeps(self) -> str:
        """The state that each result is computed from."""
        if self.window is None:
            return "groups"
        return "sessions" if self.window.kind == "session" else "windows"

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The arguments see the aggregated rows; the items see the group's key and the results of the calls."""
        for index, call in enumerate(self.calls):
            for number, argument in enumerate(call.args):
                yield f"calls/{index}/args/{number}", argument, (self.row,)
        results = tuple(Column(f"#{index}", call.type) for index, call in enumerate(self.calls))
        yield from placed("items", self.items, (Schema(own.key, results),))


@record
class Suppress(Facts):
    """Holds a table's changes back (KIP-328).

    `until` is ``window_closes``: one final row for each window, `wait` ms after the window's end (its grace, plus a
    session's gap; by the clock of the input 1 ms more where the end is inclusive, as the window is open until then); or
    ``time_limit``: at most one change of a key in `wait` ms. `max_records` and `max_bytes` bound what is held. When it
    is full, the oldest is sent early (``emit``) or the query fails (``fail``).
    """

    reads = ("table",)
    branches = waits = True
    asks_old = always
    fits = same_schema
    keeps = "suppressed"
    kept = "input"
    limits = ("wait", "max_records", "max_bytes", "when_full")

    until: Choice["window_closes", "time_limit"]
    wait: int
    max_records: int | None
    max_bytes: int | None
    when_full: Choice["emit", "fail"] | None
    op: Choice["suppress"] = "suppress"

    @property
    def holds(self) -> int:
        """The wait."""
        return self.wait

    @property
    def holds_windows(self) -> bool:
        """If it waits for them to close."""
        return self.until == "window_closes"


@record
class Distinct(Facts):
    """A stream without repeats: a record passes if no record of its key less than `within` ms away in time has passed.

    A record more than `within` + `grace` ms behind stream time does not pass. `rekeyed`: a `Rekey` called
    ``DISTINCT#rekey`` has made the columns that tell records apart the input's key. Each column of the result, key or
    value, is then a key or value column of the input.
    """

    reads_all = False
    tells_time = True
    hands_columns_on = True
    keeps = "passed"
    kept = "times"
    limits = ("grace",)

    within: int
    grace: int
    rekeyed: bool
    op: Choice["distinct"] = "distinct"

    @property
    def moves(self) -> bool:
        """If rekeyed: back to the stream's own key."""
        return self.rekeyed

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether all columns are the input's."""
        return own == inputs[0] or (self.rekeyed and {*own.key, *own.value} <= {*inputs[0].key, *inputs[0].value})


@record
class Reorder(Facts):
    """Puts a stream's records in the order of their event times (the long-term vision of KIP-914).

    A record waits until stream time reaches its time + `within` ms; those that are due go on in the order of (time,
    place in D12's order). One that comes when stream time is more than that past its time is dropped: ``out_of_order``.
    Behind a source, it is called ``SOURCE#reorder``: the lowering adds it for the clause of that name.
    """

    waits = branches = True
    in_order = True
    hands_columns_on = True
    fits = same_schema
    keeps = "waiting"
    kept = "input"
    limits = ("within",)

    within: int
    op: Choice["reorder"] = "reorder"

    @property
    def needs_key(self) -> bool:
        """No: it keeps records of one key in one place, and those without."""
        return False

    @property
    def holds(self) -> int:
        """As long as an earlier record may come."""
        return self.within


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


Operation = (
    Correct | DeadLetters | Distinct | Source | Filter | Grace | Map | Rekey | Reorder | RowChanges | ToTable
    | Materialize | StreamTableJoin | ToStream | Merge | Explode | ExplodeChanges | StreamStreamJoin | StreamGlobalJoin
    | TableTableJoin | Subscribe | Answer | GroupChanges | Aggregate | Suppress | WithinAggregate
)  # fmt: skip
