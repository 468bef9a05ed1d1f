"""The test driver: runs a topology in the test's process, without a JVM, and feeds it record by record.

It runs the same operators and stores as a query on Spark, over maps in memory instead of RocksDB. Each piped record is
fully processed before the next. The rows come from the test, or from a file in the format of their source. Not for
measuring, and not for testing connectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Any

import numpy as np

from vsc.api import Topology, compile
from vsc.plan import expressions
from vsc.plan.nodes import Column, Node, Plan, Source
from vsc.runtime.local import LocalRuntime
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.context import RunOptions, module_names
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.operators.views import Status, StoreInfo
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.records import Batch, Origin
from vsc.runtime.state.kv import MemoryKV, OrderedKV, OverlayKV
from vsc.runtime.times import event_time
from vsc.runtime.values import brief, displayed, from_python, to_array, to_values
from vsc.testing.files import FileRows, dropped_rows, file_rows

__all__ = ["MOST_PARTITIONS", "Record", "StoreView", "TopologyTestDriver", "VersionedRecord", "timestamp_column"]

Row = Mapping[str, Any]
Time = int | str | datetime
"""An event time: ms, ISO text, or an aware datetime."""
MOST_PARTITIONS = 1000
"""A bound because each partition has its own state for every stage."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a node. `key` and `value` are dicts of column values; a tombstone's `value` is None. Time in ms.

    A key column is None only in a stream's record that a left join has kept without a key.
    """

    key: dict[str, Any]
    value: dict[str, Any] | None
    timestamp: int


@dataclass(frozen=True, slots=True)
class VersionedRecord:
    """A row of a table and its validity in ms; `valid_to` is None for the newest row."""

    value: dict[str, Any]
    valid_from: int
    valid_to: int | None


class TopologyTestDriver:
    """Compiles a topology and runs it. Use it as a context manager, or `close` it.

    `topology` and `variables` are those of `vsc.compile`: a path or the text itself, and the ``${name}`` in it.
    `partitions` is the number of vsc partitions. `on_bad_row` and `on_error` are those of ``vsc run``. `now` is the
    run's clock, a time as `pipe` takes it: rows further ahead of it than their source's ``max_ahead`` are dropped.
    Without it, no row is dropped for that reason, so that a test does not depend on the day it runs. `functions`
    are the modules from which the topology may call functions. Raises what `vsc.compile` does, FunctionError for a
    function that is not allowed or cannot be imported, and ValueError for any other invalid argument.
    """

    def __init__(
        self,
        topology: Topology,
        variables: Mapping[str, str] | None = None,
        partitions: int = 1,
        on_bad_row: str = "drop",
        on_error: str = "fail",
        now: Time | None = None,
        functions: Sequence[str] = (),
    ) -> None:
        _check_partitions(partitions)
        options = replace(_options(on_bad_row, on_error, now), functions=module_names(functions))
        self._plan = compile(topology, variables)
        self._variables = dict(variables or {})
        self._nodes = {n.name: n for n in self._plan.nodes if n.part_of is None}
        self._read_as = {self._plan.read_as(name).name: name for name in self._nodes}
        self._offsets = dict.fromkeys(self._nodes, 0)
        self._records: dict[str, list[Record]] = {name: [] for name in self._nodes}
        self._stores: list[MemoryKV] = []
        self._written: dict[tuple[int, int], OverlayKV] = {}
        self._closed = False
        self._partitions, self._options = partitions, options
        self._together: list[tuple[str, SourceRows]] | None = None
        self._runtime = self._started({}, {})

    # ---------------------------------------------------------------------------------------------------------- in

    def pipe(self, source: str, row: Row, timestamp: Time | None = None) -> None:
        """Feeds one row to a source. `timestamp` is the record's time, if no timestamp column gives it.

        Times, also those in timestamp columns, are ms, ISO text (UTC unless it says otherwise) or aware datetimes. A
        date may be ISO text; a decimal may be text. A missing column is null. A row with a null in its key, or with a
        null or negative event time, is dropped and counted, as in a query. Raises ValueError for an unknown source or
        column, a value of the wrong type, or a missing time; and what a query fails with: no store is changed then.
        """
        node, operation = self._source(source)
        _check_columns(node, row, operation.columns)
        filled = dict(row)
        time = None
        column = timestamp_column(operation)
        if timestamp is not None or operation.timestamp is None or (column is not None and column not in filled):
            time = _time(source, timestamp)
            if column is not None and column not in filled:
                filled[column] = time
        self._process(node, operation, filled, time, deleted=False)

    def pipe_file(self, source: str, path: str | os.PathLike[str], timestamp: Time | None = None) -> None:
        """Feeds the rows of a file, in its order, as one micro-batch. They are read as a query reads the source: by its
        format and options. Rows that cannot be used are dropped and counted.

        `timestamp` is their time where a query takes that of the file. Of a source from Kafka, the file has records as
        ``kcat -J`` prints them. Raises ValueError for an unknown source, SourceError for a file that cannot be read or
        that only Spark can read, ConfigurationError for an option without a value, OSError, and what `pipe` does.
        """
        node, _ = self._source(source)
        time = None if timestamp is None else _time(source, timestamp)
        self.pipe_rows(file_rows(node, os.fspath(path), self._variables, time))

    def pipe_rows(self, rows: FileRows) -> tuple[str, ...]:
        """Feeds rows of a file that have been read. Returns in words which of them were dropped, unless they are part
        of a `batch`. Raises what `pipe` does."""
        node, _ = self._source(rows.node.name)
        if not len(rows):
            return ()
        first = self._offsets[node.name]
        offsets = rows.rows.offsets - rows.rows.offsets[0] + first
        before, self._runtime.metrics = self._runtime.metrics, Metrics()
        try:
            self._feed(node, replace(rows.rows, offsets=offsets))
        finally:
            found, self._runtime.metrics = self._runtime.metrics, before
            before.merge(found)
        return dropped_rows(rows, found, first)

    def delete(self, source: str, key: Row, timestamp: Time | None = None) -> None:
        """Feeds a tombstone to a source table, or a record without a value to a source stream. `key`: its key columns.

        Raises ValueError as `pipe` does, and if `timestamp` is missing.
        """
        node, operation = self._source(source)
        _check_columns(node, key, node.schema.key)
        self._process(node, operation, dict(key), _time(source, timestamp), deleted=True)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """A micro-batch: what is piped and deleted inside of it is processed together at its end, in the order of a
        query: merged by event time, tables first. If the block raises, nothing of it is. Raises what `pipe` does."""
        self._check_open()
        if self._together is not None:
            raise ValueError("a batch cannot be inside another one")
        self._together = []
        try:
            yield
            rows = self._together
        finally:
            self._together = None
        self._keep(lambda: self._runtime.process(rows))

    def restart(self) -> None:
        """Stops the query and starts it again on the state it has left."""
        self._check_open()
        metrics = self._runtime.metrics
        self._runtime = self._started(self._runtime.starts, self._runtime.quieted)
        self._runtime.metrics = metrics

    def quiet(self, until: Time) -> None:
        """The clocks of all sources go on to `until`, if they are not beyond it, as those of a query do whose topology
        has a `quiet`: what is due by then comes out, and rows of earlier times are late from then on.

        Raises ValueError for a topology with ``clock = 'records'``, and for what is not a time.
        """
        self._check_open()
        if self._together is not None:
            raise ValueError("a step of quiet cannot be inside a batch")
        if self._plan.clock == "records":
            raise ValueError("the clock of records goes on with records alone: use the clock of the input")
        time = _checked("quiet", "until", until)
        self._keep(lambda: self._runtime.quiet(time))

    def drain(self) -> None:
        """Ends the input, as ``vsc run --drain`` does: emits everything still held."""
        self._check_open()
        if self._together is not None:
            raise ValueError("the end of the input cannot be inside a batch")
        self._keep(self._runtime.drain)

    # --------------------------------------------------------------------------------------------------------- out

    def read(self, name: str) -> list[Record]:
        """The records of a node, which its sinks get too, since the last `read` of it, in order."""
        self._check_open()
        self._node(name)
        found, self._records[name] = self._records[name], []
        return found

    def store(self, name: str) -> StoreView:
        """The store of a table, by the store's name or the table's. Raises ValueError if neither exists."""
        self._check_open()
        _check_name(name)
        stores = [s for s in stores_of(self._plan) if s.is_table and s.canonical]
        found = [s for s in stores if s.name == name] or [s for s in stores if s.node == name]
        if not found:
            known = ", ".join(sorted(s.name for s in stores)) or "none"
            raise ValueError(f"no store {brief(name)}; the topology's stores: {known}")
        return StoreView(self._runtime, self._plan.node(found[-1].node), found[-1])

    def metrics(self) -> dict[str, dict[str, dict[str, int] | int]]:
        """What was dropped or not found so far: ``{"dropped_records": {node: {reason: n}}, "missed_lookups": ...}``."""
        self._check_open()
        return self._runtime.metrics.as_dict()

    def close(self) -> None:
        """Ends the use of the driver; closing twice is fine."""
        self._closed = True

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------ inside

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        return self._plan

    def _open(self, stage: int, partition: int) -> OrderedKV:
        if (stage, partition) not in self._written:
            self._stores.append(MemoryKV())
            self._written[stage, partition] = OverlayKV(self._stores[-1])
        return self._written[stage, partition]

    def _started(self, starts: Mapping[str, int], quieted: Mapping[str, int]) -> LocalRuntime:
        return LocalRuntime(
            self._plan, self._open, self._read_as, self._partitions, self._options, starts=starts, quieted=quieted
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the driver is closed")

    def _node(self, name: str) -> Node:
        _check_name(name)
        node = self._nodes.get(name)
        if node is None:
            raise ValueError(f"no node {brief(name)}; the topology has {', '.join(sorted(self._nodes))}")
        return node

    def _source(self, name: str) -> tuple[Node, Source]:
        self._check_open()
        node = self._node(name)
        if not isinstance(node.operation, Source):
            raise ValueError(f"'{name}' is not a source: it is computed")
        return node, node.operation

    def _process(self, node: Node, source: Source, row: Row, timestamp: int | None, deleted: bool) -> None:
        columns = tuple(to_array([_internal(node, c, row.get(c.name))], c.type) for c in source.columns)
        offset = self._offsets[node.name]
        rows = SourceRows(
            Origin(node.name, source.rank, ""),
            columns,
            np.array([offset], dtype=np.int64),
            None if timestamp is None else np.array([timestamp], dtype=np.int64),
            np.array([deleted], dtype=np.bool_),
        )
        self._feed(node, rows)

    def _feed(self, node: Node, rows: SourceRows) -> None:
        self._offsets[node.name] = int(rows.offsets[-1]) + 1
        if self._together is None:
            self._keep(lambda: self._runtime.process([(node.name, rows)]))
        else:
            self._together.append((node.name, rows))

    def _keep(self, process: Callable[[], Mapping[str, Batch]]) -> None:
        """Keeps the records that `process` gives, and what it has written, unless it fails."""
        try:
            found = process()
        except BaseException:
            for written in self._written.values():
                written.discard()
            raise
        for written in self._written.values():
            written.commit()
        for name, batch in found.items():
            self._records[self._read_as[name]].extend(_records(batch))


class StoreView:
    """Reads the store of a table, or fills it ahead of a test."""

    def __init__(self, runtime: LocalRuntime, node: Node, store: StoreInfo) -> None:
        self._runtime = runtime
        self._node = node
        self._store = store

    def get(self, key: Row, as_of: Time | None = None) -> VersionedRecord | None:
        """The newest row of `key`, or the row valid at `as_of`, a time as `pipe` takes it.

        None if no such row exists, or if `as_of` is older than the history kept. Raises ValueError for a key that does
        not fit the table, and for `as_of` on an unversioned store.
        """
        node, values = self._node, self._key(key)
        time = None if as_of is None else _checked(node.name, "as_of", as_of)
        if time is not None and self._store.kind == "unversioned":
            raise ValueError(f"'{node.name}' has an unversioned store: it cannot be read as of a time")
        answer = self._runtime.look_up(self._store, values, time)
        if answer.status not in (Status.VERSION, Status.ROW):
            return None
        assert answer.value is not None
        valid_from, valid_to = answer.extra
        assert valid_from is not None
        return VersionedRecord(_outside(node.schema.value, answer.value), valid_from, valid_to)

    def put(self, key: Row, value: Row | None, timestamp: Time) -> None:
        """Writes the row that `key` has from a time on, or None for a tombstone, into the store and nothing else.

        It is for tests that begin with a filled store (KIP-889): nothing that is computed from the table gets a change,
        and the groups of an aggregate stay what they are. Later look-ups, and changes that come by `pipe`, find it.
        Columns that `value` leaves out are null. Raises ValueError for a row or a time that does not fit the table.
        """
        node, values = self._node, self._key(key)
        if value is not None:
            _check_columns(node, value, node.schema.value)
        row = None if value is None else tuple(_internal(node, c, value.get(c.name)) for c in node.schema.value)
        self._runtime.put(node, values, row, _checked(node.name, "timestamp", timestamp))

    def _key(self, key: Row) -> tuple[object, ...]:
        node = self._node
        _check_columns(node, key, node.schema.key)
        missing = [c.name for c in node.schema.key if key.get(c.name) is None]
        if missing:
            raise ValueError(f"'{node.name}': key column '{missing[0]}' is missing")
        return tuple(_internal(node, c, key[c.name]) for c in node.schema.key)


def _options(on_bad_row: str, on_error: str, now: Time | None) -> RunOptions:
    for name, value in (("on_bad_row", on_bad_row), ("on_error", on_error)):
        if value not in ("drop", "fail"):
            raise ValueError(f"{name} is 'drop' or 'fail', not {brief(value)}")
    try:
        clock = None if now is None else event_time(now)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"now= is a time in ms or as ISO text, or an aware datetime, not {brief(now)}") from error
    return RunOptions("fail" if on_bad_row == "fail" else "drop", "fail" if on_error == "fail" else "drop", clock)


def timestamp_column(source: Source) -> str | None:
    """The column that the timestamp clause names, if it is only a column, cast or not."""
    expr = None if source.timestamp is None else source.timestamp.expr
    while isinstance(expr, expressions.Cast):
        expr = expr.arg
    return expr.name if isinstance(expr, expressions.Column) else None


def _check_columns(node: Node, row: object, columns: tuple[Column, ...]) -> None:
    if not isinstance(row, Mapping):
        hint = "; a tombstone is given by delete()" if row is None else ""
        raise ValueError(f"'{node.name}': a row is a dict of column values, not {brief(row)}{hint}")
    known = {c.name for c in columns}
    for name in row:
        if name not in known:
            raise ValueError(f"'{node.name}': no column {brief(name)} here; there are {', '.join(sorted(known))}")


def _check_partitions(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PARTITIONS:
        raise ValueError(f"partitions is a number from 1 to {MOST_PARTITIONS}, not {brief(count)}")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise ValueError(f"a node is named by a text, not by {brief(name)}")


def _time(source: str, timestamp: object) -> int:
    if timestamp is None:
        raise ValueError(f"'{source}': the record has no time; give timestamp=, in ms or as ISO text")
    return _checked(source, "timestamp", timestamp)


def _checked(name: str, argument: str, time: object) -> int:
    try:
        return event_time(time)
    except OverflowError:
        raise ValueError(f"'{name}': {argument}= is too far from 1970: {brief(time)}") from None
    except ValueError:
        what = "an int of ms, ISO text or an aware datetime"
        raise ValueError(f"'{name}': {argument}= is {what}, not {brief(time)}") from None


def _internal(node: Node, column: Column, value: Any) -> Any:
    if value is None:
        return None
    try:
        return from_python(value, column.type)
    except ValueError as error:
        raise ValueError(f"'{node.name}': column '{column.name}' {column.type}: {error}") from error


def _outside(columns: tuple[Column, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return {c.name: displayed(v, c.type) for c, v in zip(columns, row, strict=True)}


def _records(batch: Batch) -> list[Record]:
    schema = batch.schema
    keys = _dicts(schema.key, batch.keys, len(batch))
    values = _dicts(schema.value, batch.values, len(batch))
    present = batch.present.tolist()
    times = batch.timestamps.tolist()
    return [Record(k, v if p else None, t) for k, v, p, t in zip(keys, values, present, times, strict=True)]


def _dicts(columns: tuple[Column, ...], arrays: tuple[Any, ...], count: int) -> list[dict[str, Any]]:
    decoded = [to_values(a, c.type) for a, c in zip(arrays, columns, strict=True)]
    rows = zip(*decoded, strict=True) if decoded else [()] * count
    return [_outside(columns, row) for row in rows]
