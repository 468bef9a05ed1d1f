"""Slowly changing dimensions of type 2: versions of keys as rows that are valid from one time to another.

A row is valid from its first time on, its second time excluded; it still is where the second is null (or in the year
9999). A deletion is the end of the row before it. One that ends no row, because none exists before it yet, is kept as a
row without values whose two times are the same: it is valid at no time, and becomes the end of an older version that
comes later. So the rows hold all that a store of versions knows.

Times are counted in microseconds here: those of a table may be finer than event times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Self

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from vsc.plan.nodes import Connector
from vsc.runtime.errors import LakeTableError
from vsc.runtime.spark.base.ddl import quoted
from vsc.runtime.spark.connectors.lake.merge import AT, CHANGE, PRESENT, Target, merged, place
from vsc.runtime.spark.connectors.lake.table import LakeTable
from vsc.runtime.spark.connectors.table_types import columns_by_name

__all__ = ["PROBLEM", "History", "kept", "points"]

_TIME_TYPES = (spark.TimestampType, spark.TimestampNTZType, spark.LongType)
"""Of the columns of times; whole numbers are milliseconds."""
_OPEN = 253_370_764_800_000_000
"""The year 9999, in which a row is valid for ever."""
PROBLEM = "problem"
_FROM, _TO, _ACTION = "valid_from", "valid_to", "action"
_RANK, _NUMBER, _ROW, _WAS = "rank", "number", "row", "was_to"


@dataclass(frozen=True, slots=True)
class History:
    """The two columns of a table that hold times."""

    valid_from: spark.StructField
    valid_to: spark.StructField

    @classmethod
    def of(cls, found: spark.StructType, table: LakeTable, connector: Connector) -> Self:
        """The columns with times, of a table with the columns `found`. LakeTableError if one is missing or has none."""
        known = columns_by_name(found)
        fields = []
        for name in (connector.valid_from, connector.valid_to):
            field = known.get(name.lower())
            if field is None or not isinstance(field.dataType, _TIME_TYPES):
                what = "no such column" if field is None else field.dataType.simpleString()
                raise LakeTableError(
                    f"{table.place}: {table.shown} does not fit: its column '{name}' of times is {what}",
                    "name columns of type timestamp or bigint (milliseconds) with valid_from and valid_to",
                )
            fields.append(field)
        return cls(*fields)


def points(table: DataFrame, columns: list[Column], keys: list[str], history: History) -> DataFrame:
    """The versions and the deletions that the rows of a table stand for: its `columns`, called by their places, `AT` in
    microseconds, `PRESENT`, and `PROBLEM`, why a row stands for nothing. A deletion is left out where a row of its key
    begins."""
    places = [place(i) for i in range(len(columns))]
    named = (column.alias(name) for column, name in zip(columns, places, strict=True))
    ours, theirs = history.valid_from.name, history.valid_to.name
    problem = F.when(F.col(_FROM).isNull(), f"'{ours}' is null").when(
        F.col(_TO) < F.col(_FROM), f"'{theirs}' is before '{ours}'"
    )
    rows = table.select(*named, *_times(history)).withColumn(PROBLEM, problem)
    is_bad = F.col(PROBLEM).isNotNull()
    begin = rows.where(is_bad | F.col(_TO).isNull() | (F.col(_FROM) != F.col(_TO))).select(
        *places, F.col(_FROM).alias(AT), F.lit(True).alias(PRESENT), PROBLEM
    )
    ends = rows.where(~is_bad & F.col(_TO).isNotNull()).select(*keys, F.col(_TO).alias(AT)).distinct()
    gone = ends.join(begin.where(~is_bad).select(*keys, AT), [*keys, AT], "left_anti").select(
        *(F.col(n) if n in keys else F.lit(None).cast(rows.schema[n].dataType).alias(n) for n in places),
        AT, F.lit(False).alias(PRESENT), F.lit(None).cast("string").alias(PROBLEM),
    )  # fmt: skip
    return begin.unionByName(gone)


def kept(frame: DataFrame, target: Target, history: History) -> None:
    """Brings the changes of an epoch into the history that a table holds: rows are added, and their neighbours end
    where they begin."""
    keys = [place(i) for i in range(target.keys)]
    values = [place(i) for i in range(target.keys, len(target.columns))]
    changes = frame.select(
        *keys, *values, (F.col(AT) * 1000).alias(AT), (F.col(CHANGE) == "upsert").alias(PRESENT),
        F.lit(2).alias(_RANK), F.monotonically_increasing_id().alias(_NUMBER),
        F.lit(False).alias(_ROW), F.lit(None).cast("bigint").alias(_WAS),
    )  # fmt: skip
    known = _known(frame, target, history, keys, values)
    every = reduce(DataFrame.unionByName, (changes, *known))
    best = F.struct(_RANK, _NUMBER)
    chosen = every.groupBy(*keys, AT).agg(
        F.max_by(F.struct(*values, PRESENT, _RANK), best).alias("best"), F.max(_ROW).alias(_ROW),
        F.max(_WAS).alias(_WAS),
    )  # fmt: skip
    order = Window.partitionBy(*keys).orderBy(AT)
    present = F.col(f"best.{PRESENT}")
    lined = chosen.select(
        "*", F.lead(AT).over(order).alias("next"), F.lag(present).over(order).alias("before"), present.alias(PRESENT)
    )
    stands = F.col(PRESENT) | ~F.coalesce("before", F.lit(False))
    until = F.when(F.col(PRESENT), F.col("next")).otherwise(F.col(AT))
    same = F.col(_ROW) & until.eqNullSafe(F.col(_WAS)) & (F.col(f"best.{_RANK}") < 2)
    rows = lined.select(
        *keys, *(F.col(f"best.{name}").alias(name) for name in values),
        _stored(F.col(AT), history.valid_from).alias(_FROM), _stored(until, history.valid_to).alias(_TO),
        F.when(~stands & F.col(_ROW), F.lit("delete")).when(stands & ~same, F.lit("upsert")).alias(_ACTION),
    ).where(F.col(_ACTION).isNotNull())  # fmt: skip
    matched = [*zip(target.columns[: target.keys], keys, strict=True), (history.valid_from.name, _FROM)]
    given = [*zip(target.columns[target.keys :], values, strict=True), (history.valid_to.name, _TO)]
    merged(rows, target.sql, matched, given, _ACTION)


def _known(
    frame: DataFrame, target: Target, history: History, keys: list[str], values: list[str]
) -> tuple[DataFrame, DataFrame]:
    """Where the table's rows of the changed keys begin, and where they end."""
    named = zip(target.columns, (*keys, *values), strict=True)
    table = frame.sparkSession.table(target.sql).select(
        *(F.col(quoted(name)).alias(place) for name, place in named), *_times(history)
    )
    types = {field.name: field.dataType for field in frame.schema.fields}
    cast = table.select(*(F.col(name).cast(types[name]).alias(name) for name in (*keys, *values)), _FROM, _TO)
    old = cast.join(frame.select(*keys).distinct(), keys, "left_semi")
    marker = F.col(_FROM).eqNullSafe(F.col(_TO))
    begin = old.where(~marker).select(
        *keys, *values, F.col(_FROM).alias(AT), F.lit(True).alias(PRESENT), F.lit(1).alias(_RANK),
        F.lit(0).cast("bigint").alias(_NUMBER), F.lit(True).alias(_ROW), F.col(_TO).alias(_WAS),
    )  # fmt: skip
    nothing = (F.lit(None).cast(types[name]).alias(name) for name in values)
    ends = old.where(F.col(_TO).isNotNull()).select(
        *keys, *nothing, F.col(_TO).alias(AT), F.lit(False).alias(PRESENT), F.lit(0).alias(_RANK),
        F.lit(0).cast("bigint").alias(_NUMBER), marker.alias(_ROW), F.when(marker, F.col(_TO)).alias(_WAS),
    )  # fmt: skip
    return begin, ends


def _times(history: History) -> tuple[Column, Column]:
    """The two times of a row, in microseconds; the second is null while the row is valid."""
    until = _micros(history.valid_to)
    return _micros(history.valid_from).alias(_FROM), F.when(until < _OPEN, until).alias(_TO)


def _micros(field: spark.StructField) -> Column:
    column = F.col(quoted(field.name))
    return column * 1000 if isinstance(field.dataType, spark.LongType) else F.unix_micros(column.cast("timestamp"))


def _stored(micros: Column, field: spark.StructField) -> Column:
    """A time as the column holds it."""
    if isinstance(field.dataType, spark.LongType):
        return F.unix_millis(F.timestamp_micros(micros))
    return F.timestamp_micros(micros).cast(field.dataType)
