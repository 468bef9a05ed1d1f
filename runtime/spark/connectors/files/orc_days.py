"""The ten days that the calendar of ORC's files lacks, 1582-10-05 to 1582-10-14: Spark would write another day."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Node
from vsc.plan.types import DATE, TIMESTAMP, ArrayType, DataType, MapType, StructType
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.spark.base.ddl import quoted
from vsc.runtime.values import brief

__all__ = ["check_orc_days", "refusing_orc_days"]

_FIRST, _END = -141_437, -141_427
"""The first of these days and the one behind them, in days since 1970."""
_MICROS = 86_400_000_000


def refusing_orc_days(rows: DataFrame, node: Node) -> DataFrame:
    """The rows of `node`; one with such a day fails its task."""
    found = dict(_lacking(node))
    if not found:
        return rows
    name, *_ = found
    failed = F.raise_error(F.lit("a day that ORC lacks")).cast(str(_types(node)[name]))
    wrong = F.coalesce(*(F.nullif(one, F.lit(False)) for one in found.values()))
    return rows.withColumn(name, F.when(wrong, failed).otherwise(F.col(quoted(name))))


def check_orc_days(rows: DataFrame, node: Node, place: str) -> None:
    """Raises RefusedRowError for a row of `node` with such a day."""
    keys = [column.name for column in node.schema.key]
    for name, wrong in _lacking(node):
        for row in rows.where(wrong).select(*map(quoted, keys)).take(1):
            key = ", ".join(f"{key} = {brief(row[key])}" for key in keys)
            raise RefusedRowError(
                f"{place}: {f'the row of {key}' if key else 'a row'}: {name} has a day from 1582-10-05 to 1582-10-14, "
                "which ORC's calendar lacks",
                "write parquet, or filter such rows in the topology",
            )


def _types(node: Node) -> dict[str, DataType]:
    return {column.name: column.type for column in (*node.schema.key, *node.schema.value)}


def _lacking(node: Node) -> Iterator[tuple[str, Column]]:
    """Of the columns that may hold a day, whether a row's value has one that ORC lacks."""
    for name, type in _types(node).items():
        if (wrong := _wrong(F.col(quoted(name)), type)) is not None:
            yield name, wrong


def _wrong(value: Column, type: DataType) -> Column | None:
    match type:
        case _ if type == DATE:
            days = F.unix_date(value)
            return (days >= _FIRST) & (days < _END)
        case _ if type == TIMESTAMP:
            micros = F.unix_micros(value)
            return (micros >= _FIRST * _MICROS) & (micros < _END * _MICROS)
        case ArrayType(element):
            return _any(value, element)
        case MapType(key, element):
            found = [_any(F.map_keys(value), key), _any(F.map_values(value), element)]
        case StructType(fields):
            found = [_wrong(value[field.name], field.type) for field in fields]
        case _:
            return None
    parts = [F.coalesce(one, F.lit(False)) for one in found if one is not None]
    return F.greatest(F.lit(False), *parts) if parts else None


def _any(values: Column, type: DataType) -> Column | None:
    """Whether one of the values of an array has such a day; None if none can."""
    if _wrong(F.lit(None).cast(str(type)), type) is None:
        return None
    return F.exists(values, lambda one: _checked(one, type))


def _checked(value: Column, type: DataType) -> Column:
    found = _wrong(value, type)
    assert found is not None
    return found
