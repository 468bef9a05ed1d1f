"""Values of the language's types: as Arrow columns, as the runtime's own Python values, and as users' Python values.

Loops over records, expressions and codecs work with a type's *internal value*:
boolean ``bool``; integers ``int``; float and double ``float`` (a float already rounded to 32 bits); decimal ``Decimal``
with the type's scale; string ``str``; binary ``bytes``; date ``int`` days since 1970-01-01; timestamp ``int``
microseconds since the epoch in UTC; array ``list``; map ``dict``; struct ``tuple`` in field order; null ``None``.

Guarantees: ``to_values(to_array(v, t), t)`` is `v` for every list of internal values, NaN and -0.0 included. Not for
converting between types: that is `vsc.runtime.expressions`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType
from vsc.runtime.texts import date_of, decimal_of, exact_decimal
from vsc.runtime.times import microseconds

__all__ = [
    "INTEGER_BITS", "arrow_type", "brief", "displayed", "from_python", "text_bytes", "to_array", "to_python",
    "to_values",
]  # fmt: skip

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""The width of each integer type, by its name."""

_BRIEF = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "void": pa.null(),
    "interval": pa.int64(),
}
_PHYSICAL = {"date": pa.int32(), "timestamp": pa.int64()}
_MISSING = {"NAType", "NaTType"}
"""The classes of what pandas writes for a missing value."""
_TIMES_OF_NUMPY = "mM"
"""The kinds of numpy's arrays of durations and of times."""
_DAYS_OF_NUMPY = ("Y", "M", "W", "D")
"""The units of numpy's times that are whole days."""


def arrow_type(type: DataType) -> pa.DataType:
    """The Arrow type that carries columns of `type`. (An interval, which no column has, is int64 milliseconds.)"""
    match type:
        case ScalarType(name):
            return _ARROW[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element):
            return pa.list_(arrow_type(element))
        case MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructType(fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in fields])


# ------------------------------------------------------------------------------------- Arrow and internal values


def to_values(array: pa.Array, type: DataType) -> list[Any]:
    """The internal values of `array`, whose Arrow type must be ``arrow_type(type)``."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    match type:
        case ScalarType() | DecimalType():
            plain = array.view(_PHYSICAL[str(type)]) if str(type) in _PHYSICAL else array
            return list(plain.to_pylist() if plain.null_count else plain.to_numpy(zero_copy_only=False).tolist())
        case ArrayType(element):
            offsets, start, end = _bounds(array)
            values = to_values(array.values.slice(start, end - start), element)
            lists = [values[a - start : b - start] for a, b in pairwise(offsets)]
            return _with_nulls(array, lists)
        case MapType(key, value):
            offsets, start, end = _bounds(array)
            keys = to_values(array.keys.slice(start, end - start), key)
            items = to_values(array.items.slice(start, end - start), value)
            maps = [
                dict(zip(keys[a - start : b - start], items[a - start : b - start], strict=True))
                for a, b in pairwise(offsets)
            ]
            return _with_nulls(array, maps)
        case StructType(fields):
            if not fields:
                return _with_nulls(array, [()] * len(array))
            columns = [to_values(pc.struct_field(array, [i]), f.type) for i, f in enumerate(fields)]
            return _with_nulls(array, list(zip(*columns, strict=True)))


def _bounds(array: pa.Array) -> tuple[list[int], int, int]:
    offsets = array.offsets.to_numpy(zero_copy_only=False).tolist() if len(array) else [0]
    return offsets, offsets[0], offsets[-1]


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if array.null_count:
        for i in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[i] = None
    return values


def to_array(values: Sequence[Any], type: DataType) -> pa.Array:
    """The Arrow array of type ``arrow_type(type)`` that holds the internal values `values`."""
    match type:
        case ScalarType(name) if name in _PHYSICAL:
            return pa.array(values, _PHYSICAL[name]).view(_ARROW[name])
        case ScalarType() | DecimalType():
            return pa.array(values, arrow_type(type))
        case ArrayType(element):
            flat = [item for value in values if value is not None for item in value]
            return pa.ListArray.from_arrays(
                _offsets(values), to_array(flat, element), type=arrow_type(type), mask=_nulls(values)
            )
        case MapType(key, value_type):
            entries = [entry for value in values if value is not None for entry in value.items()]
            keys = to_array([k for k, _ in entries], key)
            items = to_array([v for _, v in entries], value_type)
            return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow_type(type), mask=_nulls(values))
        case StructType(fields):
            if not fields:
                return pa.array([None if value is None else {} for value in values], arrow_type(type))
            children = [
                to_array([None if value is None else value[i] for value in values], f.type)
                for i, f in enumerate(fields)
            ]
            return pa.StructArray.from_arrays(children, fields=list(arrow_type(type)), mask=_nulls(values))


def _offsets(values: Sequence[Any]) -> pa.Array:
    lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    ends = np.concatenate(([0], np.cumsum(lengths)))
    if ends[-1] >= 2**31:
        raise OverflowError("a column of arrays or maps with more elements than Arrow numbers")
    return pa.array(ends.astype(np.int32))


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    mask = np.fromiter((value is None for value in values), np.bool_, len(values))
    return pa.array(mask) if mask.any() else None


def text_bytes(column: pa.Array) -> memoryview:
    """The bytes of a column of texts or binaries without nulls, one value after the other, not copied."""
    if not len(column):
        return memoryview(b"")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)
    return memoryview(data or b"")[int(ends[column.offset]) : int(ends[column.offset + len(column)])]


# --------------------------------------------------------------------------------- internal and users' values


def to_python(value: Any, type: DataType) -> Any:
    """The internal `value` as users see it: aware ``datetime``, ``date``, ``dict`` for a struct; null is None.

    Raises OverflowError for a date or timestamp outside Python's years 1 to 9999.
    """
    if value is None:
        return None
    match type:
        case ScalarType("timestamp"):
            return _since_1970(value, "timestamp", "microseconds")
        case ScalarType("date"):
            return _since_1970(value, "date", "days").date()
        case ArrayType(element):
            return [to_python(item, element) for item in value]
        case MapType(key, item_type):
            return {to_python(k, key): to_python(v, item_type) for k, v in value.items()}
        case StructType(fields):
            return {f.name: to_python(item, f.type) for f, item in zip(fields, value, strict=True)}
        case _:
            return value


def displayed(value: Any, type: DataType) -> Any:
    """As `to_python`, but gives text for a value with a date or timestamp outside Python's years 1 to 9999."""
    try:
        return to_python(value, type)
    except OverflowError:
        return str(value)


def _since_1970(count: int, what: str, unit: str) -> datetime:
    try:
        return _EPOCH + timedelta(**{unit: count})
    except OverflowError:
        raise OverflowError(f"{what} {count} {unit} from 1970-01-01 is outside of the years 1 to 9999") from None


def from_python(value: Any, type: DataType) -> Any:
    """The internal value of a user's Python `value`; None is null.

    Timestamps are aware ``datetime`` values, ISO text or milliseconds since the epoch. Dates may also be ISO text, and
    decimals ``int``, ``float`` or text if no digit is lost. A member missing in the ``dict`` of a struct is null. A
    number, a boolean, a text, a time or an array of numpy counts as that of Python, a time without a zone as one in
    UTC; what numpy and pandas write for a missing time or value is null.
    Raises a ValueError that names the type if `value` is of another type or does not fit.
    """
    if value is None or value.__class__.__name__ in _MISSING:
        return None
    if isinstance(value, np.generic | np.ndarray):
        value = _of_numpy(value, type)
        if value is None:
            return None
    match type:
        case ScalarType(name) if name in _FROM_PYTHON:
            return _FROM_PYTHON[name](value, type)
        case DecimalType():
            return _from_decimal(value, type)
        case ArrayType(element) if isinstance(value, list | tuple):
            return [from_python(item, element) for item in value]
        case MapType(key, item_type) if isinstance(value, dict) and None not in value:
            return {from_python(k, key): from_python(v, item_type) for k, v in value.items()}
        case StructType(fields) if isinstance(value, dict):
            unknown = [str(name) for name in value if name not in {f.name for f in fields}]
            if unknown:
                raise ValueError(f"unknown field {unknown[0]!r} of {type}")
            return tuple(from_python(value.get(f.name), f.type) for f in fields)
    raise _wrong(value, type)


def _of_numpy(value: Any, type: DataType) -> Any:
    """What numpy holds, as Python has it: as it is, if Python has no such value. Times by the declared type."""
    if isinstance(value, np.ndarray):
        return list(value) if value.dtype.kind in _TIMES_OF_NUMPY else value.tolist()
    if isinstance(value, np.longdouble):
        return float(value)
    if not isinstance(value, np.datetime64):
        return value if isinstance(value, np.timedelta64) else value.tolist()
    if np.isnat(value):
        return None
    if str(type) == "date" and np.datetime_data(value)[0] in _DAYS_OF_NUMPY:
        found = value.astype("datetime64[D]").tolist()
        return found if isinstance(found, date) else value
    found = value.astype("datetime64[us]").tolist()
    return found.replace(tzinfo=UTC) if isinstance(found, datetime) and str(type) == "timestamp" else value


def brief(value: object) -> str:
    """A value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3]}..."


def _wrong(value: object, type: DataType) -> ValueError:
    return ValueError(f"{brief(value)} is not a value of type {type}")


def _from_int(value: Any, type: DataType) -> int:
    limit = 1 << (INTEGER_BITS[str(type)] - 1)
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        raise _wrong(value, type)
    return value


def _from_float(value: Any, type: DataType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, type)
    try:
        number = float(value)
        return number if str(type) == "double" else float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise _wrong(value, type) from None


def _from_decimal(value: Any, type: DecimalType) -> Decimal:
    try:
        if isinstance(value, str):
            return decimal_of(value, type)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return exact_decimal(Decimal(repr(value)) if isinstance(value, float) else Decimal(value), type)
    except ValueError:
        pass
    raise _wrong(value, type)


def _from_timestamp(value: Any, type: DataType) -> int:
    try:
        return microseconds(value)
    except ValueError:
        what = "an aware datetime, ISO text, or milliseconds since 1970"
        raise ValueError(f"{brief(value)} is not a value of type {type} ({what})") from None


def _from_date(value: Any, type: DataType) -> int:
    if isinstance(value, str):
        try:
            return date_of(value)
        except ValueError:
            raise _wrong(value, type) from None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _wrong(value, type)
    return value.toordinal() - _EPOCH_DAY


def _from_instance(*classes: type) -> Callable[[Any, DataType], Any]:
    def convert(value: Any, type: DataType) -> Any:
        if not isinstance(value, classes):
            raise _wrong(value, type)
        return bytes(value) if isinstance(value, bytearray) else value

    return convert


def _from_string(value: Any, type: DataType) -> str:
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise _wrong(value, type)
    return value


_FROM_PYTHON: dict[str, Callable[[Any, DataType], Any]] = {
    "boolean": _from_instance(bool),
    **dict.fromkeys(INTEGER_BITS, _from_int),
    "float": _from_float,
    "double": _from_float,
    "string": _from_string,
    "binary": _from_instance(bytes, bytearray),
    "date": _from_date,
    "timestamp": _from_timestamp,
}
