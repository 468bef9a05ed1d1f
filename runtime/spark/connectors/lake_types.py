"""Which columns of a lake table hold the values of a type of the language, and which can be read as one.

Nothing is changed on the way: a number may become a wider one. Names of columns are compared without their case, as
Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from pyspark.sql import types as spark

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType

__all__ = ["columns_by_name", "gives", "holds", "misfits"]

_TYPES: Mapping[str, type[spark.DataType]] = {
    "boolean": spark.BooleanType, "tinyint": spark.ByteType, "smallint": spark.ShortType, "int": spark.IntegerType,
    "bigint": spark.LongType, "float": spark.FloatType, "double": spark.DoubleType, "string": spark.StringType,
    "binary": spark.BinaryType, "date": spark.DateType, "timestamp": spark.TimestampType,
}  # fmt: skip
_WIDTHS = ("tinyint", "smallint", "int", "bigint"), ("float", "double")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def holds(type: DataType, column: spark.DataType) -> bool:
    """Whether a column of a table holds every value of `type`."""
    match type, column:
        case ScalarType("timestamp"), spark.TimestampNTZType():
            return True
        case ScalarType(name), spark.DecimalType() if name in _DIGITS:
            return column.precision - column.scale >= _DIGITS[name]
        case ScalarType(name), _:
            return any(isinstance(column, _TYPES[wider]) for wider in _from(name))
        case DecimalType(precision, scale), spark.DecimalType():
            return column.scale >= scale and column.precision - column.scale >= precision - scale
    return _parts_fit(type, column, holds)


def gives(type: DataType, column: spark.DataType) -> bool:
    """Whether every value of a column of a table is one of `type`."""
    match type, column:
        case ScalarType("timestamp"), spark.TimestampNTZType():
            return True
        case ScalarType(name), _:
            return any(isinstance(column, _TYPES[narrower]) for narrower in _upto(name))
        case DecimalType(precision, scale), spark.DecimalType():
            return scale >= column.scale and precision - scale >= column.precision - column.scale
        case DecimalType(precision, scale), _:
            digits = next((d for n, d in _DIGITS.items() if isinstance(column, _TYPES[n])), None)
            return digits is not None and precision - scale >= digits
    return _parts_fit(type, column, gives)


def _parts_fit(type: DataType, column: spark.DataType, fits: Callable[[DataType, spark.DataType], bool]) -> bool:
    """Whether both are nested in the same way, and their parts fit."""
    match type, column:
        case ArrayType(element), spark.ArrayType():
            return fits(element, column.elementType)
        case MapType(key, value), spark.MapType():
            return fits(key, column.keyType) and fits(value, column.valueType)
        case StructType(fields), spark.StructType():
            names = [field.name for field in fields] == [field.name for field in column.fields]
            return names and all(fits(f.type, c.dataType) for f, c in zip(fields, column.fields, strict=True))
    return False


def columns_by_name(table: spark.StructType) -> dict[str, spark.StructField]:
    """The columns of a table by their names in lower case."""
    return {field.name.lower(): field for field in table.fields}


def misfits(
    columns: Mapping[str, DataType], table: spark.StructType, written: bool, beside: Collection[str] = ()
) -> Iterator[str]:
    """What keeps `columns` from being written to, or read from, a table; nothing if they fit.

    `beside` names columns that are written, too."""
    known = columns_by_name(table)
    fits = holds if written else gives
    for name, type in columns.items():
        there = known.get(name.lower())
        if there is None:
            yield f"it has no column '{name}' ({type})"
        elif not fits(type, there.dataType):
            found = there.dataType.simpleString()
            yield f"its column '{there.name}' is {found}, " + (
                f"which cannot hold {type}" if written else f"and {type} cannot hold it"
            )
    if written:
        mine = {name.lower() for name in (*columns, *beside)}
        for field in table.fields:
            if not field.nullable and field.name.lower() not in mine:
                yield f"its column '{field.name}' may not be null, and the topology has none of that name"


def _from(name: str) -> tuple[str, ...]:
    """The types that hold a scalar type, itself first."""
    return next((chain[chain.index(name) :] for chain in _WIDTHS if name in chain), (name,))


def _upto(name: str) -> tuple[str, ...]:
    return next((chain[: chain.index(name) + 1] for chain in _WIDTHS if name in chain), (name,))
