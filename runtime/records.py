"""Records in batches, and the order in which they are processed (decision D12).

A `Batch` holds records of *one* node as columns. Each record has an event time, key and value columns, a flag that
says whether it has a value (if not, it is a tombstone), and its place in the `Order`. A batch's rows may be in any
order; code that needs D12's order sorts by it, with `processing_order`.

The order of a record is (time, origin, offset, moment, path), compared lexicographically:

* ``time``: the highest event time so far in the record's source partition in this epoch, the record's own included;
* ``origin``: the source partition from which the record, or the one that caused it, was read: by rank, then partition;
* ``offset``: its place in that source partition;
* ``moment``: absent, which comes last, for a record that goes on as it comes. What time releases (D25) has the place of
  the record that moved the clock, before that one, and its moment there: the clock at which it was due, its node's
  place in the plan, its key, its place among those of one key (`MOMENT_COLUMNS` columns);
* ``path``: one counter for each stage, 0 for stages that the record's cause has not passed through: a stage pads the
  paths that enter it to its own depth. A stage numbers the records that it emits for one cause **from 1**, so that a
  shorter path, padded with 0, comes before everything that it caused. Each repartition also adds `MOVED` to the first
  counter: records that have passed through fewer repartitions come first.

Two records that enter one stage never compare equal, unless the same record of one node enters it twice.
Not for single records.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Schema
from vsc.runtime.errors import StateError
from vsc.runtime.metrics import RETENTION_NEEDED, Dropped, Group, Metrics, Missed
from vsc.runtime.narrow import narrowed, widened

__all__ = [
    "DRAIN",
    "END_OF_TIME",
    "LAST_RANK",
    "MOMENT_COLUMNS",
    "MOVED",
    "NO_WORD",
    "ORDINARY",
    "QUIET",
    "RETENTION_NEEDED",
    "STEP",
    "Batch",
    "Dropped",
    "Group",
    "Int32s",
    "Int64s",
    "Mask",
    "Metrics",
    "Missed",
    "Order",
    "Origin",
    "orders_together",
    "partition_of",
    "processing_order",
    "sorted_places",
]

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Rows = slice | npt.NDArray[np.integer]

BATCH_FORMAT = "2"
"""Format version of `Batch.to_ipc`, in the metadata of its schema."""

RELEASED_FORMAT = "3"
"""The format version of a batch whose order has moments."""

_FIXED = 5
"""System columns beside the path: time, origin, offset, timestamp, present."""

_MOST_PARTS = 1000
"""A bound for system columns, the path included: it has one for each stage, so real batches stay far below."""

_BITS = 64
"""Of a bigint, the sign included."""

_MALFORMED = (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)
"""The errors that metadata not written by `Batch.to_ipc` may cause."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A source partition: the source's node name, its rank (`vsc.plan.nodes.Source.rank`) and the partition's name.

    `part` sorts as text in the order of the partitions: a file's path, or a zero-padded Kafka partition.
    """

    source: str
    rank: int
    part: str

    @property
    def sort_key(self) -> tuple[int, str, str]:
        """Sorts as D12 says. The rank puts tables before streams, then follows the order of the file."""
        return (self.rank, self.part, self.source)


MOMENT_COLUMNS = 4
"""The columns of a moment that are always there: the clock, the node's place, then what is compared last: a number that
distinguishes keys of which the words are the same, the old place. The words of the encoded key follow."""

NO_WORD = -(2**63)
"""A word of a key, of eight bytes, that is not there."""

END_OF_TIME = 2**63 - 1
"""Later than any event time, in ms."""

LAST_RANK = 2**31 - 1
"""Behind the rank of every source."""

ORDINARY = END_OF_TIME
"""The first column of the moment of a record that was not released, where others were."""

STEP = ORDINARY - 1
"""The first column of the moment of a step of the clock: after all that it releases, before its record."""

DRAIN = "#drain"
"""Source name in the origin of records that the end of the input, or a changed topology, emitted."""

QUIET = "#quiet"
"""The source partition of a step of a source that brings nothing."""

MOVED = 1 << 48
"""What each repartition adds to the first part of a path: far more than the records of one cause in a stage."""


@dataclass(frozen=True, slots=True)
class Order:
    """The order of n records, as columns (see the module).

    `path` has the shape (n, stages passed). `moment` has the shape (n, `MOMENT_COLUMNS` + the words of the longest
    key); None: no record was released.
    """

    time: Int64s
    origin: Int32s
    offset: Int64s
    path: Int64s
    moment: Int64s | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def depth(self) -> int:
        """How many stages the records' causes have passed through."""
        return int(self.path.shape[1])

    def take(self, indices: Rows | Mask) -> Order:
        """The rows that an index array, a slice or a mask selects."""
        moment = None if self.moment is None else _rows_of(self.moment, indices)
        path = _rows_of(self.path, indices)
        return Order(self.time[indices], self.origin[indices], self.offset[indices], path, moment)

    @property
    def clock(self) -> Int64s:
        """The clock of the input at each place, as far as this epoch has moved it."""
        return self.time if self.moment is None else np.minimum(self.time, self.moment[:, 0])

    def moments(self, columns: int) -> Int64s:
        """`moment` with at least so many columns, also where no record was released."""
        if self.moment is None:
            moment = np.full((len(self), columns), NO_WORD, dtype=np.int64)
            moment[:, :MOMENT_COLUMNS] = 0
            moment[:, 0] = ORDINARY
            return moment
        missing = columns - self.moment.shape[1]
        if missing <= 0:
            return self.moment
        return np.hstack([self.moment, np.full((len(self), missing), NO_WORD, dtype=np.int64)])

    @property
    def levels(self) -> tuple[Int64s | Int32s, ...]:
        """What the order compares, one after the other."""
        moment = () if self.moment is None else tuple(np.ascontiguousarray(self.moment.T))
        compared = (*moment[:2], *moment[MOMENT_COLUMNS:], *moment[2:MOMENT_COLUMNS])
        return (self.time, self.origin, self.offset, *compared, *np.ascontiguousarray(self.path.T))

    def padded(self, depth: int) -> Int64s:
        """The path with at least `depth` columns; added columns are 0."""
        missing = depth - self.depth
        if missing <= 0:
            return self.path
        return np.hstack([self.path, np.zeros((len(self), missing), dtype=np.int64)])

    def deepened(self, depth: int) -> Order:
        """The order with a path of at least `depth` columns."""
        return self if self.depth >= depth else replace(self, path=self.padded(depth))

    def extended(self, counters: Int64s, moved: bool = False) -> Order:
        """The order one stage later. `counters` (from 1) are the places among the stage's records of the same cause.

        `moved`: the records have another key. In Kafka such records pass through a topic, and are taken from it only
        after everything that the cause leads to without a topic: they come after records that have passed through fewer
        topics.
        """
        path = np.column_stack([self.path, counters])
        if moved:
            path[:, 0] += MOVED
        return replace(self, path=path)

    @staticmethod
    def concat(orders: Sequence[Order]) -> Order:
        """All rows of `orders` (at least one), one after the other."""
        depth = max(order.depth for order in orders)
        columns = max(0 if order.moment is None else order.moment.shape[1] for order in orders)
        return Order(
            np.concatenate([order.time for order in orders]),
            np.concatenate([order.origin for order in orders]),
            np.concatenate([order.offset for order in orders]),
            np.concatenate([order.padded(depth) for order in orders]),
            np.concatenate([order.moments(columns) for order in orders]) if columns else None,
        )

    @staticmethod
    def empty(depth: int = 0) -> Order:
        """No records."""
        none = np.zeros(0, dtype=np.int64)
        return Order(none, none.astype(np.int32), none, np.zeros((0, depth), dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one node, as columns.

    ``order.origin`` holds indices into `origins`. `timestamps` are event times in ms. Where `present` is False, the
    record has no value (a tombstone of a table; D14 for streams) and its value columns are null. `keys` and `values`
    are the columns of `schema`, in the Arrow types of their column types. A stream's record with a null among its key
    columns has no key (D26). `latest` marks the changes of a table that are their key's newest, if a sink needs it;
    None means all of them. It is not serialized.
    """

    schema: Schema
    origins: tuple[Origin, ...]
    order: Order
    timestamps: Int64s
    present: Mask
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]
    latest: Mask | None = None

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        """Key columns, then value columns."""
        return self.keys + self.values

    def take(self, indices: npt.NDArray[np.integer]) -> Batch:
        """The rows at `indices`, in that order."""
        chosen = pa.array(indices, type=pa.int64())
        return self._picked(indices, lambda column: column.take(chosen))

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from `start` to `stop` (exclusive), not copied."""
        return self._picked(slice(start, stop), lambda column: column.slice(start, stop - start))

    def filter(self, mask: Mask) -> Batch:
        """The rows where `mask` is true; the batch itself if all are."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return self._picked(mask, lambda column: column.filter(chosen))

    def _picked(self, rows: Rows | Mask, pick: Callable[[pa.Array], pa.Array]) -> Batch:
        """Some rows: `rows` selects them from numpy arrays, `pick` from Arrow's."""
        return Batch(
            self.schema, self.origins, self.order.take(rows), self.timestamps[rows], self.present[rows],
            tuple(map(pick, self.keys)), tuple(map(pick, self.values)),
            None if self.latest is None else self.latest[rows],
        )  # fmt: skip

    def sorted(self) -> Batch:
        """The rows in D12's order; the batch itself if it is already sorted."""
        order = processing_order([self])
        return self if (order[:-1] < order[1:]).all() else self.take(order)

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """All rows of `batches`, one batch after the other. Needs at least one batch; all must be of one node."""
        if len(batches) == 1:
            return batches[0]
        origins, order = orders_together(batches)
        return Batch(
            batches[0].schema,
            origins,
            order,
            np.concatenate([b.timestamps for b in batches]),
            np.concatenate([b.present for b in batches]),
            tuple(pa.concat_arrays(list(c)) for c in zip(*(b.keys for b in batches), strict=True)),
            tuple(pa.concat_arrays(list(c)) for c in zip(*(b.values for b in batches), strict=True)),
            _joined_masks([b.latest for b in batches], [len(b) for b in batches]),
        )

    def to_ipc(self) -> bytes:
        """The batch as the bytes that `write_ipc` writes."""
        sink = pa.BufferOutputStream()
        self.write_ipc(sink)
        return bytes(sink.getvalue())

    def write_ipc(self, sink: pa.NativeFile) -> None:
        """Writes the batch to `sink` as an Arrow IPC stream.

        The metadata has the bases of the system columns; the columns are those system columns that vary, then the
        batch's own.
        """
        order = self.order
        system: list[npt.NDArray[np.integer]] = [order.time, order.origin, order.offset, self.timestamps]
        system.append(self.present.astype(np.uint8))
        moment = () if order.moment is None else tuple(order.moment.T)
        parts = [narrowed(c) for c in (*system, *moment, *order.path.T)]
        columns = [added for _, added in parts if added is not None] + list(self.columns)
        metadata = {
            "vsc": RELEASED_FORMAT if moment else BATCH_FORMAT,
            "rows": str(len(self)),
            "system": json.dumps([[base, added is not None] for base, added in parts]),
            "origins": json.dumps([[o.source, o.rank, o.part] for o in self.origins]),
        }
        metadata |= {"moment": str(len(moment))} if moment else {}
        fields = [pa.field(f"c{i}", c.type) for i, c in enumerate(columns)]
        record = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=metadata))
        with pa.ipc.new_stream(sink, record.schema) as writer:
            writer.write_batch(record)

    @classmethod
    def from_ipc(cls, data: bytes, schema: Schema, trusted: bool = True) -> Batch:
        """The batch that `to_ipc` wrote; `schema` is its node's. Raises StateError for anything else.

        If not `trusted`, the bytes come from a checkpoint, and every offset in them is validated before it is followed.
        """
        try:
            with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
                metadata = reader.schema.metadata or {}
                record = reader.read_next_batch()
            if not trusted:
                record.validate(full=True)
            return cls._of_record(record, metadata, schema)
        except (pa.ArrowException, OSError, StopIteration, *_MALFORMED) as error:
            raise StateError(f"a batch of records is damaged: {str(error)[:200]}") from error

    @classmethod
    def _of_record(cls, record: pa.RecordBatch, metadata: Mapping[bytes, bytes], schema: Schema) -> Batch:
        if (version := metadata.get(b"vsc")) not in (BATCH_FORMAT.encode(), RELEASED_FORMAT.encode()):
            raise StateError("a batch of records has another format version", "use the same release of vsc everywhere")
        rows, parts = int(metadata[b"rows"]), json.loads(metadata[b"system"])
        head = sum(varies for _, varies in parts)
        fixed = _FIXED + (int(metadata[b"moment"]) if version == RELEASED_FORMAT.encode() else 0)
        if not fixed <= len(parts) <= _MOST_PARTS or rows != (record.num_rows if record.num_columns else min(rows, 1)):
            raise ValueError("its rows are not as many as it says")
        if record.num_columns != head + len(schema.key) + len(schema.value):
            raise StateError(f"a batch has {record.num_columns - head} columns, not those of its node's schema")
        columns = iter(record.columns)
        system = [widened(base, next(columns) if varies else None, rows) for base, varies in parts]
        time, origin, offset, timestamps, present = system[:_FIXED]
        path = np.column_stack(system[fixed:]) if len(system) > fixed else np.zeros((rows, 0), dtype=np.int64)
        moment = np.column_stack(system[_FIXED:fixed]) if fixed > _FIXED else None
        order = Order(time, origin.astype(np.int32), offset, path, moment)
        origins = tuple(Origin(*o) for o in json.loads(metadata[b"origins"]))
        values = tuple(columns)
        keys = len(schema.key)
        return cls(schema, origins, order, timestamps, present.astype(np.bool_), values[:keys], values[keys:])


def _joined_masks(masks: Sequence[Mask | None], lengths: Sequence[int]) -> Mask | None:
    if all(mask is None for mask in masks):
        return None
    return np.concatenate(
        [np.ones(n, dtype=np.bool_) if mask is None else mask for mask, n in zip(masks, lengths, strict=True)]
    )


def orders_together(batches: Sequence[Batch]) -> tuple[tuple[Origin, ...], Order]:
    """All origins of `batches` (at least one batch), sorted as D12 says, and the order of all their rows.

    The rows are those of one batch after the other; their ``origin`` holds indices into all origins.
    """
    origins = tuple(sorted({o for b in batches for o in b.origins}, key=lambda o: o.sort_key))
    place = {o: i for i, o in enumerate(origins)}
    orders = []
    for batch in batches:
        table = np.array([place[o] for o in batch.origins], dtype=np.int32)
        orders.append(replace(batch.order, origin=table[batch.order.origin]) if len(batch) else batch.order)
    return origins, Order.concat(orders)


def processing_order(batches: Sequence[Batch]) -> Int64s:
    """D12's order of the rows of several batches (of any nodes).

    The result holds indices into the concatenation of the batches, in the order of processing. Rows that compare
    equal keep the order of the batches, and in a batch that of its rows.
    """
    return sorted_places(orders_together(batches)[1]) if batches else np.zeros(0, dtype=np.int64)


def sorted_places(order: Order) -> Int64s:
    """The places of the rows in D12's order. Its origins must be sorted, as those of `orders_together` are."""
    levels = [level for level in order.levels if len(level) and (level != level[0]).any()]
    if not levels or not _ascends(levels, slice(1, None), slice(None, -1)).any():
        return np.arange(len(order), dtype=np.int64)
    places: Int64s | None = None
    for level in reversed(_packed(levels)):
        if places is None:
            places = np.argsort(level, kind="stable").astype(np.int64, copy=False)
        else:
            places = places[np.argsort(level[places], kind="stable")]
    assert places is not None
    return places


def _packed(levels: Sequence[npt.NDArray[np.integer]]) -> list[Int64s]:
    """As few levels as possible that compare the same: those whose differences fit into one number become one.

    A stable sort of one number is fast where rows come in runs, as those of a source partition do.
    """
    packed: list[Int64s] = []
    free = 0
    for level in levels:
        low = int(level.min())
        bits = (int(level.max()) - low).bit_length()
        if bits <= free:
            packed[-1] = (packed[-1] << bits) | (level - low)
            free -= bits
        else:
            wide = level.astype(np.int64, copy=False)
            packed.append(wide - low if bits < _BITS else wide)
            free = max(0, _BITS - 1 - bits)
    return packed


def _ascends(levels: Sequence[npt.NDArray[np.integer]], before: Rows, after: Rows) -> Mask:
    """Where the rows `after` are strictly greater than the rows `before`, lexicographically."""
    less: Mask = np.zeros(len(levels[0][before]), dtype=np.bool_)
    equal = ~less
    for level in levels:
        low, high = level[before], level[after]
        less |= equal & (low < high)
        equal &= low == high
        if not equal.any():
            break
    return less


def _rows_of(columns: Int64s, rows: Rows | Mask) -> Int64s:
    """``columns[rows]``, for which numpy takes 20 times as long where there are several columns."""
    if isinstance(rows, slice) or columns.shape[1] < 2:
        return columns[rows]
    return columns.take(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows, axis=0)


def partition_of(keys: Sequence[bytes], partitions: int) -> Int32s:
    """The vsc partition of each encoded key: its CRC-32 modulo `partitions`. This must never change."""
    if partitions == 1:
        return np.zeros(len(keys), dtype=np.int32)
    hashes = np.fromiter(map(zlib.crc32, keys), dtype=np.uint32, count=len(keys))
    return (hashes % np.uint32(partitions)).astype(np.int32)
