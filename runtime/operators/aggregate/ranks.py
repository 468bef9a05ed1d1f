"""Integers that sort as the values of a column do in Spark SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, ScalarType, StructType
from vsc.runtime.operators.aggregate.distinct import ordered
from vsc.runtime.records import Int64s

__all__ = ["ranks"]

_NUMBERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64}
_FLOATS = ("float", "double")


def ranks(column: pa.Array, data_type: DataType, ascending: bool) -> Int64s:
    """A number for each value, equal for equal values (-0.0 equals 0.0, NaN is the greatest). Any number for null."""
    rank = _ascending(column, data_type)
    return rank if ascending else -1 - rank  # unlike a negation, never overflows


def _ascending(column: pa.Array, data_type: DataType) -> Int64s:
    name = data_type.name if isinstance(data_type, ScalarType) else ""
    if name in _NUMBERS:
        numbers = column.view(f"int{_NUMBERS[name]}")
        found: Int64s = (numbers.fill_null(0) if numbers.null_count else numbers).to_numpy().astype(np.int64)
        return found
    if name in _FLOATS:
        return _of_floats(column)
    if isinstance(data_type, ArrayType | StructType):
        return _of_several(column, data_type)
    encoded = column.dictionary_encode()
    places = np.empty(len(encoded.dictionary), dtype=np.int64)
    places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(places))
    indices = encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices
    return places[indices.to_numpy()] if len(places) else np.zeros(len(column), dtype=np.int64)


def _of_several(column: pa.Array, data_type: DataType) -> Int64s:
    found = np.zeros(len(column), dtype=np.int64)
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    names, index = ordered(data_type, column.take(pa.array(there)))
    places = np.empty(len(names), dtype=np.int64)
    places[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    found[there] = places[index]
    return found


def _of_floats(column: pa.Array) -> Int64s:
    """The bits of each double as an integer; negative doubles have theirs inverted."""
    values = (column.fill_null(0.0) if column.null_count else column).to_numpy().astype(np.float64) + 0.0
    bits = values.view(np.int64)
    ordered: Int64s = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return np.where(np.isnan(values), np.iinfo(np.int64).max, ordered)
