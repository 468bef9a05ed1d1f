"""PostgreSQL: a snapshot of a table as a source; a sink that keeps a table by key, or appends a stream.

A snapshot has the rows of the table as one statement sees them, written into the checkpoint once, read from there.
Guarantees: those of `snapshot`, whatever becomes of the table or the server. A value that its declared type cannot hold
makes its row a bad one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.extras import required
from vsc.plan.nodes import Source
from vsc.plan.types import ArrayType, DataType, MapType, ScalarType, StructType
from vsc.runtime.errors import DatabaseTableError
from vsc.runtime.expressions.json_data import data_reader, json_values
from vsc.runtime.spark.base.ddl import ddl
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.connectors.postgres.checks import check_privileges, check_readable
from vsc.runtime.spark.connectors.postgres.database import Database
from vsc.runtime.spark.connectors.postgres.sink import PostgresSink
from vsc.runtime.spark.connectors.postgres.table import Table, found_table, identifier
from vsc.runtime.spark.connectors.postgres.types import TableColumn, as_json, created_type
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.connectors.snapshot import kept_rows, take_once, write_rows
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.formats.source_columns import BAD, TIME
from vsc.runtime.values import brief, from_python, to_array

__all__ = ["PostgresSource", "PostgresTarget"]

_FETCHED = 1 << 13
_KINDS = ("r", "p", "v", "m", "f")
"""Tables, views, materialized views, foreign tables."""


class PostgresSource(OpenSource):
    """A snapshot of a table of PostgreSQL."""

    is_snapshot = True

    def _check(self, default_local: bool) -> None:
        """Refuses what cannot be understood, and a missing client."""
        _check(self.options)

    def reach(self) -> None:
        """Refuses a table that cannot be read as it is declared."""
        _look_at_table(self.node.source, self.options)

    def take(self, spark: SparkSession, begun: bool) -> None:
        """Takes the snapshot."""

        def write(path: str) -> None:
            database, table = _look_at_table(self.node.source, self.options)
            read = (c for c in self.node.source.columns if c.name in self.read)
            columns = tuple((c.name, c.type, table.columns[c.name]) for c in read)
            names = [*((name, type) for name, type, _ in columns), (BAD, "string")]
            fetch = _Fetch(database, table.sql, self.place, columns)
            rows = spark.range(0, 1, 1, 1).mapInArrow(fetch, ddl(names))
            write_rows(rows, path)

        take_once(spark, self.place, self.kept, begun, write)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows of the snapshot. Without a timestamp clause they are of time 0."""
        source = self.node.source
        frame = kept_rows(spark, source, self.place, self.kept, self.read)
        return frame if source.timestamp is not None else frame.withColumn(TIME, F.lit(0).cast("bigint"))

    def servers(self) -> tuple[Servers, ...]:
        """The hosts of the URL, any of which may be the one in charge."""
        return (Database.of(self.options).servers,)


class PostgresTarget(OpenSink):
    """A table of PostgreSQL that is written."""

    def check(self) -> None:
        """Refuses what cannot be understood, and a missing client."""
        _check(self.options)
        self.options.flag("with_timestamp")
        self.options.flag("create")
        self.options.is_upsert()

    def reach(self, fresh: bool, default_local: bool) -> None:
        """Refuses a table that cannot be written."""
        PostgresSink(self, "").reach()

    def servers(self) -> tuple[Servers, ...]:
        """The hosts of the URL, any of which may be the one in charge."""
        return (Database.of(self.options).servers,)

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        return PostgresSink(self, checkpoint)


def _check(options: Options) -> None:
    Database.of(options)
    with required(f"{options.place}: jdbc"):
        import psycopg  # noqa: F401


def _look_at_table(source: Source, options: Options) -> tuple[Database, Table]:
    """The table that a source reads. DatabaseError, DatabaseTableError if it cannot be read as it is declared."""
    database, place = Database.of(options), options.place
    with database.connected(place) as connection:
        table = found_table(connection, options.text("table"), place, _KINDS)
        if table is None:
            raise DatabaseTableError(
                f"{place}: there is no table {options.text('table')!r} in {database.name}", "correct the name"
            )
        check_readable(table, {c.name: c.type for c in source.columns}, place)
        check_privileges(connection, table, ("select",), place)
    return database, table


@dataclass(frozen=True, slots=True)
class _Fetch:
    """For mapInArrow, in one task: the rows of a table, and why a row cannot be read."""

    database: Database
    table: str
    place: str
    columns: tuple[tuple[str, DataType, TableColumn], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, some at a time, as one statement sees them."""
        for _ in batches:
            pass
        chosen = ", ".join(_selected(type, column) for _, type, column in self.columns)
        with self.database.connected(self.place) as connection, connection.transaction():
            cursor = connection.cursor(name="vsc_snapshot")
            cursor.execute(f"select {chosen or 'null'} from {self.table}")
            while rows := cursor.fetchmany(_FETCHED):
                yield self._batch(rows)

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        problems: dict[int, str] = {}
        arrays = []
        for place, (name, type, column) in enumerate(self.columns):
            convert = _converter(type, column)
            values: list[Any] = []
            for number, row in enumerate(rows):
                value, found = row[place], None
                if value is not None:
                    try:
                        found = convert(value)
                    except ValueError:
                        problems.setdefault(number, f"column '{name}' ({type}) cannot hold {brief(value)}")
                values.append(found)
            arrays.append(to_array(values, type))
        arrays.append(pa.array([problems.get(number) for number in range(len(rows))], pa.string()))
        return pa.RecordBatch.from_arrays(arrays, names=[*(name for name, _, _ in self.columns), BAD])


def _selected(type: DataType, column: TableColumn) -> str:
    """How a column is asked for: so that whatever it holds arrives, and no digit is lost."""
    name = identifier(column.name)
    match type:
        case ScalarType("string"):
            return f"{name}::text"
        case ScalarType("timestamp"):  # in whole numbers, which `extract` gives from version 14 on only
            seconds = f"extract(epoch from date_trunc('second', {name}))::bigint"
            number = f"{seconds} * 1000000 + extract(microseconds from {name})::bigint % 1000000"
            return f"case when {_in_years(name, type)} then ({number})::text else {name}::text end"
        case ScalarType("date"):
            return f"case when {_in_years(name, type)} then ({name} - date '1970-01-01')::text else {name}::text end"
        case ScalarType("float" | "double"):  # the text of a real, read as a double, would be another number
            return f"{name}::double precision"
        case ArrayType() | MapType() | StructType() if as_json(type, column):
            return f"{name}::text"
        case ArrayType(ScalarType("float" | "double")):
            return f"{name}::double precision[]"
        case ArrayType(ScalarType("date" | "timestamp")):
            return f"{name}::{created_type(type)}::text[]"
        case ArrayType(ScalarType("string")):
            return f"{name}::text[]"
        case _:
            return name


def _in_years(name: str, type: DataType) -> str:
    """Whether a date or a time is in the years 1 to 9999: others, which the server has, may overflow on the way."""
    return f"{name} >= {created_type(type)} '0001-01-01 00:00Z' and {name} < {created_type(type)} '10000-01-01 00:00Z'"


def _converter(type: DataType, column: TableColumn) -> Callable[[Any], Any]:
    """The internal value of what psycopg gives. Raises ValueError for what does not fit."""
    if as_json(type, column):
        read = data_reader(type)
        return lambda text: _parsed(text, read)
    match type:
        case ScalarType("date" | "timestamp"):
            return int
        case ArrayType(ScalarType("date") as element):
            return lambda texts: [_item(text, element, date.fromisoformat) for text in texts]
        case ArrayType(ScalarType("timestamp") as element):
            return lambda texts: [_item(text, element, datetime.fromisoformat) for text in texts]
    return lambda value: from_python(value, type)


def _item(text: Any, element: DataType, read: Callable[[str], Any]) -> Any:
    """An element that is written as text. Raises ValueError for what does not fit."""
    if not isinstance(text, str | None):
        raise ValueError("an array of arrays")
    return None if text is None else from_python(read(text), element)


def _parsed(text: str, read: Callable[[Any], Any]) -> Any:
    (value,) = json_values(text, exact=True)
    return None if value is None else read(value)
