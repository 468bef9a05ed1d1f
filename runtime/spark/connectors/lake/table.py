"""A table of a lake format as SQL reaches it: its name there, its columns, what of a query it holds.

And what is wrong if it cannot be used, in the user's words. Not for what is written into it, nor for reading it as a
stream.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from vsc.plan.connectors.lake import TABLE_NAME
from vsc.plan.nodes import Node
from vsc.plan.types import DataType
from vsc.runtime.errors import LakeChangeError, LakeStorageError, LakeTableError, RefusedRowError, VscRuntimeError
from vsc.runtime.spark.base.ddl import ddl, quoted
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.jars import Package, check_session
from vsc.runtime.spark.connectors.table_types import misfits

__all__ = ["LakeTable", "declared", "identifier", "lake_error", "lake_failure"]

_LOGGER = logging.getLogger("SQLQueryContextLogger")
_MISSING = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND|DELTA_MISSING_DELTA_TABLE|DELTA_TABLE_NOT_FOUND|PATH_NOT_FOUND|PATH_DOES_NOT_EXIST|"
    r"NoSuchTable|DELTA_TABLE_ONLY_OPERATION|NOT_A_DELTA_TABLE"
)
_NO_SCHEMA = re.compile(r"SCHEMA_NOT_FOUND|NoSuchNamespace|NoSuchDatabase")
_NO_CATALOG = re.compile(r"REQUIRES_SINGLE_PART_NAMESPACE|CATALOG_NOT_FOUND|CatalogNotFound")
_PROTOCOL = re.compile(
    r"UNSUPPORTED_FEATURES_FOR|DELTA_INVALID_PROTOCOL_VERSION|UnsupportedTableFeature|InvalidProtocolVersion|"
    r"Cannot read unsupported version|Unsupported format version",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"\[(?:DELTA_NOT_NULL_CONSTRAINT_VIOLATED|DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|DELTA_EXCEED_CHAR_VARCHAR_LIMIT|"
    r"EXCEED_LIMIT_LENGTH|NOT_NULL_ASSERT_VIOLATION)[\w.]*\] ?([^\n]*)((?:\n - [^\n]*)*)"
)
"""A row that does not keep a rule of the table; behind it the values that the rule is about."""
_ANEW = "or start with a new checkpoint"
_ENDS = (
    (
        r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE",
        "rows of a Delta table were changed or deleted, and the source reads only those that are appended",
        "read the change feed ('readChangeFeed' = 'true'), leave such commits out ('skipChangeCommits' = 'true'), "
        + _ANEW,
    ),
    (
        r"Cannot process (?:overwrite|delete) snapshot",
        "rows of an Iceberg table were changed or deleted, and the source reads only those that are appended",
        "leave such snapshots out ('streaming-skip-overwrite-snapshots' = 'true', "
        f"'streaming-skip-delete-snapshots' = 'true'), {_ANEW}",
    ),
    (
        r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        "the Delta table is not the one that the checkpoint has read", "start with a new checkpoint",
    ),
    (
        r"DELTA_MISSING_CHANGE_DATA|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG|"
        r"DELTA_VERSION_NOT_FOUND|DELTA_FILE_NOT_FOUND|"
        r"snapshot \d+ was expired|parent .*is (?:missing|expired)",
        "versions of a lake table that are still to be read are gone",
        f"keep them for longer (log and file retention, expiry of snapshots), {_ANEW}",
    ),
    (
        r"Cannot load current offset at snapshot",
        "the snapshot up to which the checkpoint has read an Iceberg table is gone: it has expired, or the table was "
        "created again", f"keep snapshots for longer, {_ANEW}",
    ),
    (
        r'Snapshot\.parentId\(\)" is null',
        "the snapshot up to which the checkpoint has read an Iceberg table is no longer in its history: the table was "
        "rolled back or replaced", "start with a new checkpoint",
    ),
    (
        r'lastOffsetForTriggerAvailableNow" is null',
        "an Iceberg table has no new rows since `vsc upgrade`, and Iceberg cannot begin there with what is available",
        "run again when it has some, or with --trigger '10 seconds'",
    ),
    (
        r"DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE",
        "a column of a Delta table was renamed or dropped, or has another type, and Delta reads no further",
        "start with a new checkpoint",
    ),
    (
        r"DELTA_SCHEMA_CHANGED|DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
        "the columns of a Delta table have changed",
        "if those that the source declares are still there, run the same command again; if that fails at the same "
        "version, a column that the table had there has been dropped since: start with a new checkpoint",
    ),
)  # fmt: skip
"""What ends a query that reads on in a table: how Spark's text is known, what to say, and what to do."""


class LakeTable(ABC):
    """The table that the options of a connector name. `sql` is its name in Spark SQL, `shown` that for people."""

    lake: Package
    sql: str

    def __init__(self, options: Options) -> None:
        self.place = options.place
        path = options.get("path")
        self.path = None if path is None else str(path)
        self.name = None if path is not None else options.text("table")
        self.shown = f"the {self.lake.name} table {(self.path or self.name)!r}"

    @abstractmethod
    def use(self, spark: SparkSession) -> None:
        """Makes `sql` known to a session."""

    @abstractmethod
    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """The properties of the table, which is there."""

    @abstractmethod
    def location(self, spark: SparkSession) -> str:
        """The folder of the table, which the session knows (`use`)."""

    @abstractmethod
    def written(self, spark: SparkSession, writer: str) -> int | None:
        """The number of the last write of `writer` that is in the table; None without one."""

    @abstractmethod
    def forgets(self, spark: SparkSession) -> bool:
        """Whether the table, which is there, may no longer know of a write whose rows it has."""

    @abstractmethod
    def numbered(self, writer: str, number: int) -> Mapping[str, str]:
        """The settings of a session in which a write is that of `writer` with this number."""

    def open(self, spark: SparkSession) -> StructType | None:
        """Its columns; None if the table does not exist. Raises VscRuntimeError if it cannot be used."""
        check_session(self.lake, spark, self.place)
        with self.errors_in_words():
            self.use(spark)
            try:
                found = spark.sql(f"select * from {self.sql}").schema
            except PySparkException as error:
                if _MISSING.search(str(error)):
                    return None
                raise
            self.check(spark)
            return found

    def columns(self, spark: SparkSession) -> StructType:
        """Its columns. Raises VscRuntimeError if the table does not exist or cannot be used."""
        found = self.open(spark)
        if found is None:
            raise self.missing("correct the name; a source does not create a table")
        return found

    def readable(self, spark: SparkSession, node: Node) -> StructType:
        """Its columns. Raises VscRuntimeError as `columns`, and if they are not those that source `node` declares."""
        found = self.columns(spark)
        for problem in misfits({c.name: c.type for c in node.source.columns}, found, written=False):
            raise LakeTableError(f"{self.place}: {self.shown} does not fit: {problem}", "correct the source's columns")
        return found

    @abstractmethod
    def check(self, spark: SparkSession) -> None:
        """Raises LakeTableError for a table of another format."""

    def missing(self, help: str) -> LakeTableError:
        """The error for a table that is not there."""
        return LakeTableError(f"{self.place}: there is no {self.shown.removeprefix('the ')}", help)

    def create(self, spark: SparkSession, columns: Mapping[str, DataType], properties: Mapping[str, str]) -> None:
        """Makes the table."""
        given = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())
        with self.errors_in_words():
            spark.sql(
                f"create table if not exists {self.sql} ({ddl(columns.items())}) using {self.lake.kind}"
                + (f" tblproperties ({given})" if given else "")
            )

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        """Sets a property of the table."""
        with self.errors_in_words():
            spark.sql(f"alter table {self.sql} set tblproperties ({_text(name)} = {_text(value)})")

    @contextmanager
    def errors_in_words(self) -> Iterator[None]:
        """What Spark raises inside of this, in the user's words; pyspark would log pages about it first."""
        level = _LOGGER.level
        _LOGGER.setLevel(logging.CRITICAL)
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            raise lake_error(self, error) from error
        finally:
            _LOGGER.setLevel(level)


def lake_error(table: LakeTable, error: Exception) -> VscRuntimeError:
    """What keeps a table from being used."""
    text = _message(error)
    if (broken := _CONSTRAINT.search(text)) is not None:
        values = ", ".join(line.removeprefix(" - ") for line in broken[2].splitlines() if line)
        rule = broken[1].removesuffix("with values:").rstrip(" .:") + (f" with {values}" if values else "")
        return RefusedRowError(
            f"{table.place}: {table.shown} refuses a row: {rule}",
            "filter or correct such rows in the topology, or change the rule of the table",
        )
    first = " ".join(text.splitlines()[0].split())[:400] if text else type(error).__name__
    if _NO_CATALOG.search(text):
        return LakeStorageError(
            f"{table.place}: the session has no catalog for {table.shown}: {first}",
            "set the catalog up with --conf spark.sql.catalog.NAME=..., or give the table's `path`",
        )
    if _PROTOCOL.search(text):
        return LakeTableError(
            f"{table.place}: {table.shown} needs a newer {table.lake.name}: {first}",
            f"this vsc uses {table.lake.coordinates()}; switch the feature off in the table, or give a newer release "
            "with --packages",
        )
    if _NO_SCHEMA.search(text):
        return LakeTableError(
            f"{table.place}: there is no schema for {table.shown}", "create the schema, or correct the name"
        )
    if _MISSING.search(text):
        return table.missing("correct the name")
    return LakeStorageError(
        f"{table.place}: {table.shown} cannot be used: {first}",
        "correct the path or name, the credentials, or what else keeps it from being used",
    )


def lake_failure(text: str, cause: str) -> LakeChangeError | None:
    """The error that an exception with that `text` amounts to, for that `cause`; None for what is not known here."""
    for pattern, message, help in _ENDS:
        if re.search(pattern, text):
            return LakeChangeError(f"{message}: {cause}", help)
    return None


def declared(node: Node, read: frozenset[str]) -> list[Column]:
    """The declared columns of a source as a table has them; null where nothing reads them."""
    return [
        (F.col(quoted(c.name)) if c.name in read else F.lit(None)).cast(str(c.type)).alias(c.name)
        for c in node.source.columns
    ]


def identifier(name: str, place: str) -> str:
    """A name as Spark SQL writes it: of a table, perhaps with its catalog and schema. LakeTableError for none."""
    parts = TABLE_NAME.findall(name)
    if not parts or ".".join(parts) != name:
        raise LakeTableError(
            f"{place}: {name!r} is not the name of a table", "write TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE"
        )
    return ".".join(part if part.startswith("`") else quoted(part) for part in parts)


def _message(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        java: Any = error.java_exception
        cause = java.getCause()
        return str(java.toString()) + ("" if cause is None else f"\n{cause.toString()}")
    return str(error)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
