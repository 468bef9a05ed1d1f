"""The plan: what the compiler has decided, as frozen values, and all that the runtime needs to know.

A plan is a list of *nodes* (what is computed: one per statement, plus the sinks) and a list of *stages* (where it
is computed: everything between two repartitions). A stage runs once per vsc partition; the records that enter it
come through its *inputs*, each a node of an earlier stage whose records are partitioned by the given key.
"""

from __future__ import annotations

from typing import Literal as Choice

from vsc.plan.expressions import Expr
from vsc.plan.record import record
from vsc.plan.types import DataType

FORMAT_VERSION = 1
"""The format version of the plan's JSON. A plan of another one is refused."""


@record
class Column:
    """A named column. `name` is as the user wrote it, without backticks."""

    name: str
    type: DataType


@record
class Schema:
    """The columns of a node's records: `key` first (empty for a stream without key), then `value`; names are unique."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]


@record
class Item:
    """A computed column: its name, its expression, and the text that the user wrote, for messages."""

    name: str
    expr: Expr
    text: str


@record
class Store:
    """The store of a table.

    `kind` is ``versioned`` (KIP-889) or ``unversioned``. For a versioned store, in milliseconds: `retention` how far
    behind stream time a read as of a time may look, `grace` how far behind it a write is accepted, `segment` how much
    time a segment spans; all three None for an unversioned one. `implied` is true where no clause asked for the store
    but an operator needs it.
    """

    name: str
    kind: Choice["versioned", "unversioned"]
    retention: int | None = None
    grace: int | None = None
    segment: int | None = None
    implied: bool = False


@record
class Status:
    """Whether a table is versioned, why (a sentence), and the node that decided it. None for streams."""

    versioned: bool
    reason: str
    decided_by: str


@record
class Connector:
    """Where rows come from or go to. `options` are vsc's own (checked), `spark_options` are Spark's, handed through.

    Values are strings, whole numbers, decimals as strings, booleans; a string may hold ``${name}``, resolved by the
    runtime when the plan is run. Pairs are in the order in which they were written.
    """

    kind: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    spark_options: tuple[tuple[str, str | int | float | bool], ...] = ()


@record
class Source:
    """A source stream or table. `columns` are those of the declaration, in its order (key columns included).

    `timestamp` sees the declared columns as input 0 and is a ``timestamp`` or a ``bigint`` of milliseconds; None: the
    record's own time. `delete_when` is None for streams. `rank` is the place in D12's order: tables before streams,
    then the order in the file. `global_` tables are seen whole by every partition. `max_ahead`: rows whose event time
    is further ahead of the run's clock, in ms, are dropped; None: no bound.
    """

    connector: Connector
    columns: tuple[Column, ...]
    timestamp: Item | None
    delete_when: Item | None
    rank: int
    global_: bool = False
    max_ahead: int | None = None
    op: Choice["source"] = "source"


@record
class Filter:
    """Keeps the records for which `predicate` is true; on a table the others become tombstones."""

    predicate: Item
    op: Choice["filter"] = "filter"


@record
class Map:
    """Computes the value columns anew. The key is the input's; its columns may be renamed by the node's schema."""

    items: tuple[Item, ...]
    op: Choice["map"] = "map"


@record
class Rekey:
    """Gives a stream another key: one item a key column. The value columns are the input's columns `value`.

    Also made by the lowering, in front of a join with ``on``; such a node is called ``JOIN#rekey``.
    """

    items: tuple[Item, ...]
    op: Choice["rekey"] = "rekey"


@record
class ToTable:
    """Reads a stream as a table: a record is its key's new row; a record without value, or one for which
    `delete_when` is true, is a tombstone."""

    delete_when: Item | None
    op: Choice["to_table"] = "to_table"


@record
class Materialize:
    """An identity with a store of its own."""

    op: Choice["materialize"] = "materialize"


@record
class StreamTableJoin:
    """A stream record joined with the table's row (KIP-914): inputs are (stream, table), already of one key.

    `left`: a record without partner is kept. `as_of`: the row valid at the record's time, else the newest.
    `grace`: None, or how long in ms a record waits before it is joined (KIP-923). `items` see the stream's record as
    input 0 and the table's row as input 1; a column of input 1, its key included, is null without a partner.
    The result's key is the stream's key, under the names of the node's schema.
    """

    left: bool
    as_of: bool
    grace: int | None
    items: tuple[Item, ...]
    op: Choice["stream_table_join"] = "stream_table_join"


@record
class ToStream:
    """A table's changes as a stream: each new row is a record, a tombstone is a record without value."""

    op: Choice["to_stream"] = "to_stream"


@record
class Merge:
    """The records of several streams of one key, as they come. Value columns go by name, not by position."""

    op: Choice["merge"] = "merge"


@record
class Explode:
    """One record for each element of the array that `item` computes; `item.name` is the column that holds it.

    The element column replaces a value column of that name, or stands behind the others.
    """

    item: Item
    op: Choice["explode"] = "explode"


@record
class StreamGlobalJoin:
    """A stream record joined with a global table's newest row by the key that `on` computes (KIP-99).

    Inputs are (stream, global table); `on` sees the stream's record, `items` see both. The result keeps the stream's
    key. A null in `on`: dropped by an inner join, kept without partner by a left one.
    """

    left: bool
    on: tuple[Item, ...]
    items: tuple[Item, ...]
    op: Choice["stream_global_join"] = "stream_global_join"


@record
class TableTableJoin:
    """A primary-key join of two tables of one key (KIP-914): inputs are (left, right), newest row against newest row.

    `left_versioned`, `right_versioned`: the side's status; a versioned side drops what is not its key's newest.
    `items` see the left row as input 0, the right one as input 1; a missing side's columns are null.
    """

    mode: Choice["inner", "left", "outer"]
    left_versioned: bool
    right_versioned: bool
    items: tuple[Item, ...]
    op: Choice["table_table_join"] = "table_table_join"


@record
class Subscribe:
    """First step of a foreign-key join: changes of the left table become subscriptions, keyed by the foreign key.

    Made by the lowering as ``JOIN#subscribe``, a stream. `foreign_key` sees the left row. Its schema: the key is that
    of the right table; the value is the left table's key columns, its value columns that the join reads, and last
    ``#instruction`` (int; what the numbers mean is the runtime's). `left`: of a left join; `versioned`: the left
    table's status.
    """

    foreign_key: tuple[Item, ...]
    left: bool
    versioned: bool
    op: Choice["subscribe"] = "subscribe"


@record
class Answer:
    """Second step of a foreign-key join, where the right table is: answers subscriptions and the right's changes.

    Made by the lowering as ``JOIN#answer``, a stream keyed as the left table; inputs are (``JOIN#subscribe``, right).
    `items` see the left row (schema `left_schema`, as it travelled with its subscription) as input 0 and the right
    row as input 1. `versioned`: the right table's status. The join's own node is a `ToTable` that reads it.
    """

    left: bool
    versioned: bool
    left_schema: Schema
    items: tuple[Item, ...]
    op: Choice["answer"] = "answer"


@record
class GroupChanges:
    """First step of an aggregate over a table: its changes, keyed by the group that each row belongs to.

    Made by the lowering as ``AGGREGATE#changes``, a stream. Its value: ``#old`` (boolean: is there a row to take back),
    ``#new`` (boolean: is there a row to add), then the table's columns that the aggregate reads, once
    as ``old#NAME`` and once as ``new#NAME``. `columns` names them: first the table's key columns, all of them, whether
    the aggregate reads them or not (they tell which row is taken back). `versioned`: the table's status.
    """

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


@record
class Window:
    """The window of an aggregate, in ms. `size` is the size, a sliding window's difference or a session's gap;
    `advance` is that of a hopping window and the size of a tumbling one, else 0."""

    kind: Choice["tumbling", "hopping", "sliding", "session"]
    size: int
    advance: int
    grace: int


@record
class Aggregate:
    """Groups of a stream's records, or of a table's rows (then the input is a `GroupChanges`), by the input's key.

    `row` is the schema of the aggregated rows: for a stream the input's, for a table key () and the columns that
    travelled. `items` see the group's key columns (a window's bounds too) and the calls' results, as columns ``#0``,
    ``#1``, ..., as input 0. `final`: a window's result is sent once, when it closes (KIP-825).
    """

    over: Choice["stream", "table"]
    row: Schema
    calls: tuple[AggregateCall, ...]
    items: tuple[Item, ...]
    window: Window | None
    final: bool
    op: Choice["aggregate"] = "aggregate"


@record
class Suppress:
    """Holds a table's changes back (KIP-328).

    `until` ``window_closes``: one final row a window, `wait` ms (its grace; a session's gap too) behind the window's
    end. ``time_limit``: at most one change a key in `wait` ms. `max_records` and `max_bytes` bound what is held; when
    full, the oldest is sent early (``emit``) or the query fails (``fail``).
    """

    until: Choice["window_closes", "time_limit"]
    wait: int
    max_records: int | None
    max_bytes: int | None
    when_full: Choice["emit", "fail"] | None
    op: Choice["suppress"] = "suppress"


Operation = (
    Source | Filter | Map | Rekey | ToTable | Materialize | StreamTableJoin | ToStream | Merge | Explode
    | StreamGlobalJoin | TableTableJoin | Subscribe | Answer | GroupChanges | Aggregate | Suppress
)  # fmt: skip


@record
class Node:
    """One named node. `inputs` are node names. `line` is where its statement stands in the source (1-based)."""

    name: str
    kind: Choice["stream", "table"]
    schema: Schema
    operation: Operation
    inputs: tuple[str, ...]
    line: int
    store: Store | None = None
    status: Status | None = None


@record
class Sink:
    """Writes `node`. `id` is ``sink-<n>``, counted from 0 in the order of the file."""

    id: str
    node: str
    connector: Connector
    line: int


@record
class StageInput:
    """Records of `node` (of an earlier stage) enter a stage, partitioned by that node's key.

    The bounds of a window at the end of a key do not count: a group's windows, and what is joined with them, stay in
    one place.
    `broadcast`: every partition gets all of them (a global table).
    """

    node: str
    broadcast: bool = False


@record
class Stage:
    """A sub-topology. `nodes` in an order in which inputs come first; consumers of a node run in this order.

    Stage 0 runs where the sources are read: it holds the sources and what is stateless behind them, has no inputs, no
    state and no partitions. A source table's records are checked and parsed in stage 0, and enter its store in every
    stage that lists the node again. A node may stand in several stages (a table that is read in both); `emits` names
    those whose changes this stage hands on to sinks, observers and later stages: each node is in exactly one `emits`.
    """

    id: int
    nodes: tuple[str, ...]
    inputs: tuple[StageInput, ...]
    emits: tuple[str, ...]


@record
class Plan:
    """A compiled topology. `variables` are the names that connector options still refer to."""

    name: str
    nodes: tuple[Node, ...]
    sinks: tuple[Sink, ...]
    stages: tuple[Stage, ...]
    variables: tuple[str, ...] = ()

    def node(self, name: str) -> Node:
        """The node called `name`; KeyError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)
