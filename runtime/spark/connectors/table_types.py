"""Which columns of a table hold the values of a type of the language, and which can be read as one.

Nothing is changed on the way: a number may become a wider one. Of a lake table, names of columns are compared without
their case, as Spark does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pyspark.sql import types as spark

from vsc.plan.types import STRING, TIMESTAMP, ArrayType, DataType, DecimalType, Field, MapType, ScalarType, StructType

__all__ = ["INTEGER_DIGITS", "columns_by_name", "fits", "gives", "holds", "misfits"]

_WIDTHS = ("tinyint", "smallint", "int", "bigint"), ("float", "double")
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes of a column of texts that it is a ``char`` or a ``varchar``."""
INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The most decimal digits of each integer type, by its name."""


def holds(type: DataType, column: spark.DataType) -> bool:
    """Whether a column of a table holds every value of `type`."""
    return fits(type, _type(column))


def gives(type: DataType, column: spark.DataType) -> bool:
    """Whether every value of a column of a table is one of `type`."""
    return fits(_type(column), type)


def _type(column: spark.DataType) -> DataType:
    """The language's type of the values in a column; by another name where it has none."""
    match column:
        case spark.DecimalType():
            return DecimalType(column.precision, column.scale)
        case spark.ArrayType():
            return ArrayType(_type(column.elementType))
        case spark.MapType():
            return MapType(_type(column.keyType), _type(column.valueType))
        case spark.StructType():
            return StructType(tuple(Field(field.name, _type(field.dataType)) for field in column.fields))
        case spark.StringType():
            return STRING
        case spark.TimestampNTZType():
            return TIMESTAMP
    return ScalarType(column.simpleString())


def fits(narrow: DataType, wide: DataType) -> bool:
    """Whether every value of a type is also one of another."""
    match narrow, wide:
        case ScalarType(one), ScalarType(other):
            return one == other or any(one in chain and other in chain[chain.index(one) :] for chain in _WIDTHS)
        case ScalarType(name), DecimalType(precision, scale):
            return name in INTEGER_DIGITS and precision - scale >= INTEGER_DIGITS[name]
        case DecimalType(), DecimalType():
            return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
        case ArrayType(), ArrayType():
            return fits(narrow.element, wide.element)
        case MapType(), MapType():
            return fits(narrow.key, wide.key) and fits(narrow.value, wide.value)
        case StructType(), StructType():
            names = [field.name for field in narrow.fields] == [field.name for field in wide.fields]
            return names and all(fits(a.type, b.type) for a, b in zip(narrow.fields, wide.fields, strict=True))
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
    is_right = holds if written else gives
    for name, type in columns.items():
        there = known.get(name.lower())
        if there is None:
            yield f"it has no column '{name}' ({type})"
        elif written and (length := there.metadata.get(_LENGTH)) is not None:
            yield f"its column '{there.name}' is {length}, which does not hold every text"
        elif not is_right(type, there.dataType):
            found = there.dataType.simpleString()
            yield f"its column '{there.name}' is {found}, " + (
                f"which cannot hold {type}" if written else f"and {type} cannot hold it"
            )
    if written:
        mine = {name.lower() for name in (*columns, *beside)}
        for field in table.fields:
            if not field.nullable and field.name.lower() not in mine:
                yield f"its column '{field.name}' may not be null, and the topology has none of that name"
