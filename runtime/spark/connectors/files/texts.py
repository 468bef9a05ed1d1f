"""The texts of values in JSON and CSV for which Spark has none that can be read back.

Spark cuts times at milliseconds, writes binary in CSV as ``[22 0A]``, and names the keys of a JSON map as the JVM holds
them: a date by the number of its days, binary as ``[B@53e1ef23``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.types import BINARY, STRING, TIMESTAMP, ArrayType, DataType, MapType, StructType
from vsc.runtime.spark.base.ddl import quoted

__all__ = ["with_texts"]

_MILLIS, _MICROS = ("yyyy-MM-dd'T'HH:mm:ss." + fraction + "'Z'" for fraction in ("SSS", "SSSSSS"))


def with_texts(rows: DataFrame, columns: Mapping[str, DataType], types: frozenset[DataType]) -> DataFrame:
    """The rows with a text for each value of these `types`, BINARY or TIMESTAMP, in these columns, at whatever depth,
    and for each key of a map: times with microseconds where they have some, binary in base64.

    The session's zone has to be UTC.
    """
    found = {name: _text(F.col(quoted(name)), type, types) for name, type in columns.items() if _changes(type, types)}
    return rows.withColumns(found) if found else rows


def _changes(type: DataType, types: frozenset[DataType]) -> bool:
    match type:
        case ArrayType(element):
            return _changes(element, types)
        case MapType(key, item):
            return key != STRING or _changes(item, types)
        case StructType(fields):
            return any(_changes(field.type, types) for field in fields)
    return type in types


def _text(value: Column, type: DataType, types: frozenset[DataType]) -> Column:
    if not _changes(type, types):
        return value
    match type:
        case ArrayType(element):
            return F.transform(value, lambda one: _text(one, element, types))
        case MapType(key, item):
            values = F.transform_values(value, lambda _, one: _text(one, item, types))
            return F.transform_keys(values, lambda one, _: _scalar(one, key))
        case StructType(fields):
            made = [_text(value.getField(field.name), field.type, types).alias(field.name) for field in fields]
            return F.when(value.isNotNull(), F.struct(*made))
    return _scalar(value, type)


def _scalar(value: Column, type: DataType) -> Column:
    if type == BINARY:
        return F.translate(F.base64(value), "\r\n", "")  # which Spark puts behind 76 letters each
    if type != TIMESTAMP:
        return value.cast("string")
    is_whole = F.unix_micros(value) % 1000 == 0
    return F.when(is_whole, F.date_format(value, _MILLIS)).otherwise(F.date_format(value, _MICROS))
