"""The operations of a plan, each with what the compiler and the runtime have to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.expressions import Expr
from vsc.plan.facts import Facts, Placed, Schemas, always, made, of_versioned, placed, same_schema, value_of_items
from vsc.plan.parts import Column, Connector, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import STRING, TIMESTAMP, DataType

__all__ = [
    "DEAD_LETTER", "Aggregate", "AggregateCall", "Answer", "DeadLetters", "Distinct", "Explode", "Filter",
    "GroupChanges", "Map", "Materialize", "Merge", "Operation", "Rekey", "Source", "StreamGlobalJoin",
    "StreamTableJoin", "Subscribe", "Suppress", "TableTableJoin", "ToStream", "ToTable", "Window",
]  # fmt: skip


@record
class Source(Facts):
    """A source stream or table. `columns` are those of the declaration, in its order (key columns included).

    `timestamp` sees the declared columns as input 0 and is a ``timestamp`` or a ``bigint`` of milliseconds; None: the
    record's own time. `delete_when` is None for streams. `rank` is the place in D12's order: tables before streams,
    then the order in the file. `global_` tables are seen whole by every partition. `max_ahead`: rows whose event time
    is further ahead of the run's clock, in ms, are dropped; None: no bound.
    """

    by_key = False
    reads = ()
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
        """Both see the declared columns."""
        declared = (Schema((), self.columns),)
        yield from placed("timestamp", self.timestamp, declared)
        yield from placed("delete_when", self.delete_when, declared)

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """The declared columns, in another order."""
        return set(self.columns) == {*own.key, *own.value}


@record
class Filter(Facts):
    """Keeps the records for which `predicate` is true; on a table the others become tombstones.

    `dedupe` (D7): a tombstone of a key without a row is not sent on; so on an unversioned table that has a store.
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
        """To know whether there was a row."""
        return self.dedupe


@record
class Map(Facts):
    """Computes the value columns anew. The key is the input's; its columns may be renamed by the node's schema."""

    by_key = False
    reads = ("own",)
    row_by_row = True
    reads_all = False
    of_first = ("items",)
    fits = value_of_items

    items: tuple[Item, ...]
    op: Choice["map"] = "map"


@record
class Rekey(Facts):
    """Gives a stream another key: one item a key column. The value columns are the input's columns `value`.

    Also made by the lowering, in front of a join with ``on``; such a node is called ``JOIN#rekey``.
    """

    by_key = False
    moves = True
    reads_all = False
    hands_columns_on = True
    of_first = ("items",)

    items: tuple[Item, ...]
    op: Choice["rekey"] = "rekey"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """The key's columns are the items."""
        return made(self.items) == own.key


@record
class ToTable(Facts):
    """Reads a stream as a table: a record is its key's new row; a record without value, or one for which
    `delete_when` is true, is a tombstone."""

    of_first = ("delete_when",)

    delete_when: Item | None
    op: Choice["to_table"] = "to_table"


@record
class Materialize(Facts):
    """An identity with a store of its own."""

    reads = ("table",)
    fits = same_schema

    op: Choice["materialize"] = "materialize"


@record
class StreamTableJoin(Facts):
    """A stream record joined with the table's row (KIP-914): inputs are (stream, table), already of one key.

    `left`: a record without partner is kept. `as_of`: the row valid at the record's time, else the newest.
    `grace`: None, or how long in ms a record waits before it is joined (KIP-923). `items` see the stream's record as
    input 0 and the table's row as input 1; a column of input 1, its key included, is null without a partner.
    The result's key is the stream's key, under the names of the node's schema.
    """

    reads = ("stream", "table")
    looks_up = True
    reads_all = False
    of_both = ("items",)
    fits = value_of_items
    kept = "input"
    limits = ("grace",)

    left: bool
    as_of: bool
    grace: int | None
    items: tuple[Item, ...]
    op: Choice["stream_table_join"] = "stream_table_join"

    @property
    def waits(self) -> bool:
        """For its grace."""
        return self.grace is not None

    branches = waits

    @property
    def keeps(self) -> str | None:
        """The records that wait."""
        return "waiting" if self.waits else None


@record
class ToStream(Facts):
    """A table's changes as a stream: each new row is a record, a tombstone is a record without value."""

    reads = ("table",)
    fits = same_schema

    op: Choice["to_stream"] = "to_stream"


@record
class Merge(Facts):
    """The records of several streams of one key, as they come. Value columns go by name, not by position."""

    by_key = False
    reads = ("streams",)
    reads_all = False
    hands_columns_on = True

    op: Choice["merge"] = "merge"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """The same value columns, each input's in an order of its own."""
        return all(set(schema.value) == set(own.value) for schema in inputs)


@record
class Explode(Facts):
    """One record for each element of the array that `item` computes; `item.name` is the column that holds it.

    The element column replaces a value column of that name, or stands behind the others.
    """

    by_key = False
    branches = True
    reads_all = False
    hands_columns_on = True
    of_first = ("item",)

    item: Item
    op: Choice["explode"] = "explode"


@record
class StreamGlobalJoin(Facts):
    """A stream record joined with a global table's newest row by the key that `on` computes (KIP-99).

    Inputs are (stream, global table); `on` sees the stream's record, `items` see both. The result keeps the stream's
    key. A null in `on`: dropped by an inner join, kept without partner by a left one.
    """

    by_key = False
    reads = ("stream", "table")
    looks_up = True
    reads_all = False
    of_first = ("on",)
    of_both = ("items",)
    fits = value_of_items

    left: bool
    on: tuple[Item, ...]
    items: tuple[Item, ...]
    op: Choice["stream_global_join"] = "stream_global_join"


@record
class TableTableJoin(Facts):
    """A primary-key join of two tables of one key (KIP-914): inputs are (left, right), newest row against newest row.

    `left_versioned`, `right_versioned`: the side's status; a versioned side drops what is not its key's newest.
    `items` see the left row as input 0, the right one as input 1; a missing side's columns are null.
    """

    reads = ("table", "table")
    old_of_inputs = True
    of_both = ("items",)
    fits = value_of_items

    mode: Choice["inner", "left", "outer"]
    left_versioned: bool
    right_versioned: bool
    items: tuple[Item, ...]
    op: Choice["table_table_join"] = "table_table_join"

    def asks_old(self, port: int) -> bool:
        """A left join tells by the old left row whether there was a result, an outer join by both."""
        return self.mode == "outer" or (self.mode == "left" and port == 0)

    def asks_latest(self, port: int) -> bool:
        """Of a versioned side."""
        return self.right_versioned if port else self.left_versioned


@record
class Subscribe(Facts):
    """First step of a foreign-key join: changes of the left table become subscriptions, keyed by the foreign key.

    Made by the lowering as ``JOIN#subscribe``, a stream. `foreign_key` sees the left row. Its schema: the key is that
    of the right table; the value is the left table's key columns, its value columns that the join reads, and last
    ``#instruction`` (int; what the numbers mean is the runtime's). `left`: of a left join; `versioned`: the left
    table's status.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("foreign_key",)
    asks_old = always
    asks_latest = of_versioned

    foreign_key: tuple[Item, ...]
    left: bool
    versioned: bool
    op: Choice["subscribe"] = "subscribe"


@record
class Answer(Facts):
    """Second step of a foreign-key join, where the right table is: answers subscriptions and the right's changes.

    Made by the lowering as ``JOIN#answer``, a stream keyed as the left table; inputs are (``JOIN#subscribe``, right).
    `items` see the left row (schema `left_schema`, as it travelled with its subscription) as input 0 and the right
    row as input 1. `versioned`: the right table's status. The join's own node is a `ToTable` that reads it.
    """

    reads = ("stream", "table")
    moves = branches = True
    asks_latest = of_versioned
    keeps = "subscriptions"
    of_all_rows = True

    left: bool
    versioned: bool
    left_schema: Schema
    items: tuple[Item, ...]
    op: Choice["answer"] = "answer"

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """They see the left row as it travelled."""
        yield from placed("items", self.items, (self.left_schema, inputs[1]))


@record
class GroupChanges(Facts):
    """First step of an aggregate over a table: its changes, keyed by the group that each row belongs to.

    Made by the lowering as ``AGGREGATE#changes``, a stream. Its value: ``#old`` (boolean: is there a row to take back),
    ``#new`` (boolean: is there a row to add), then the table's columns that the aggregate reads, once
    as ``old#NAME`` and once as ``new#NAME``. `columns` names them: first the table's key columns, all of them, whether
    the aggregate reads them or not (they tell which row is taken back). `versioned`: the table's status.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("group",)
    asks_old = always
    asks_latest = of_versioned

    group: tuple[Item, ...]
    columns: tuple[str, ...]
    versioned: bool
    op: Choice["group_changes"] = "group_changes"


@record
class AggregateCall:
    """One call of an aggregate function: ``count sum avg min max min_by max_by first last collect_list collect_set``.

    `args` see the aggregated row (`Aggregate.row`) as input 0; ``count(*)`` has none. `type` is the result's.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool
    type: DataType
    text: str

    @property
    def kept_types(self) -> tuple[DataType, ...]:
        """The types of what it is computed from: its state depends on them, unless it only counts."""
        return () if self.function == "count" and not self.distinct else tuple(arg.type for arg in self.args)


@record
class Window:
    """The window of an aggregate, in ms. `size` is the size, a sliding window's difference or a session's gap;
    `advance` is that of a hopping window and the size of a tumbling one, else 0."""

    kind: Choice["tumbling", "hopping", "sliding", "session"]
    size: int
    advance: int
    grace: int


@record
class Aggregate(Facts):
    """Groups of a stream's records, or of a table's rows (then the input is a `GroupChanges`), by the input's key.

    `row` is the schema of the aggregated rows: for a stream the input's, for a table key () and the columns that
    travelled. `items` see the group's key columns (a window's bounds too) and the calls' results, as columns ``#0``,
    ``#1``, ..., as input 0. `final`: a window's result is sent once, when it closes (KIP-825).
    """

    reads_all = False
    fits = value_of_items
    limits = ("window.grace",)

    over: Choice["stream", "table"]
    row: Schema
    calls: tuple[AggregateCall, ...]
    items: tuple[Item, ...]
    window: Window | None
    final: bool
    op: Choice["aggregate"] = "aggregate"

    @property
    def branches(self) -> bool:
        """A record changes several windows, or closes them."""
        return self.window is not None

    begins_windows = branches

    @property
    def waits(self) -> bool:
        """For its windows to close."""
        return self.final

    @property
    def of_all_rows(self) -> bool:
        """A row that changes is taken back."""
        return self.over == "table"

    @property
    def keeps(self) -> str:
        """What each result is made of."""
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

    `until` ``window_closes``: one final row a window, `wait` ms (its grace; a session's gap too) behind the window's
    end. ``time_limit``: at most one change a key in `wait` ms. `max_records` and `max_bytes` bound what is held; when
    full, the oldest is sent early (``emit``) or the query fails (``fail``).
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


@record
class Distinct(Facts):
    """A stream without repeats: a record passes if none of its key that passed is less than `within` ms away in time.

    One that is more than `within` + `grace` ms behind stream time does not. `rekeyed`: the input's key is what tells
    records apart, made by a `Rekey` called ``DISTINCT#rekey``; the result's columns, its key's too, are among all
    columns of the input.
    """

    reads_all = False
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
        """Back to the stream's own key."""
        return self.rekeyed

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """All columns are the input's."""
        return own == inputs[0] or (self.rekeyed and {*own.key, *own.value} <= {*inputs[0].key, *inputs[0].value})


DEAD_LETTER = Schema(
    (),
    (
        *(Column(name, STRING) for name in ("node", "reason", "source", "position")),
        Column("event_time", TIMESTAMP),
        *(Column(name, STRING) for name in ("key", "value", "raw", "message")),
    ),
)
"""The columns of a dead letter: where and why a record was lost, where it was read, and the record."""


@record
class DeadLetters(Facts):
    """The records that node `of` (None: any node) has `lost`: those it dropped, or those that found no partner.

    Made by the lowering for ``sink dropped`` and ``sink missed``. It stands in no stage: every stage fills it.
    """

    by_key = False
    reads = ()

    lost: Choice["dropped", "missed"]
    of: str | None
    op: Choice["dead_letters"] = "dead_letters"

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """The same columns everywhere."""
        return own == DEAD_LETTER


Operation = (
    DeadLetters | Distinct | Source | Filter | Map | Rekey | ToTable | Materialize | StreamTableJoin | ToStream | Merge
    | Explode | StreamGlobalJoin | TableTableJoin | Subscribe | Answer | GroupChanges | Aggregate | Suppress
)  # fmt: skip
