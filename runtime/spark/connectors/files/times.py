"""Times that are written as text, in JSON and CSV: Spark's own format has milliseconds, and would cut the rest off."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.types import TIMESTAMP, ArrayType, DataType, MapType, StructType, types_in
from vsc.runtime.spark.base.ddl import quoted

__all__ = ["with_texts"]

_MILLIS, _MICROS = ("yyyy-MM-dd'T'HH:mm:ss." + fraction + "'Z'" for fraction in ("SSS", "SSSSSS"))


def with_texts(rows: DataFrame, columns: Mapping[str, DataType]) -> DataFrame:
    """The rows with a text for each timestamp of these columns, at whatever depth; with microseconds where it has some.

    The session's zone has to be UTC.
    """
    found = {name: _text(F.col(quoted(name)), type) for name, type in columns.items() if TIMESTAMP in types_in(type)}
    return rows.withColumns(found) if found else rows


def _text(value: Column, type: DataType) -> Column:
    if TIMESTAMP not in types_in(type):
        return value
    match type:
        case ArrayType(element):
            return F.transform(value, lambda one: _text(one, element))
        case MapType(key, item):
            values = F.transform_values(value, lambda _, one: _text(one, item))
            return F.transform_keys(values, lambda one, _: _text(one, key))
        case StructType(fields):
            made = [_text(value.getField(field.name), field.type).alias(field.name) for field in fields]
            return F.when(value.isNotNull(), F.struct(*made))
    is_whole = F.unix_micros(value) % 1000 == 0
    return F.when(is_whole, F.date_format(value, _MILLIS)).otherwise(F.date_format(value, _MICROS))
