"""Nested columns of parquet files: arrays, maps and structs, whose parts are converted as `parquet_types` says.

Guarantees: the fields of a struct are found by name, a missing one is null. Where a value does not fit (one of 64 bits
as `double`, a time that microseconds cannot count), the whole row is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, MapType, StructType
from vsc.runtime.spark.formats.parquet_types import Conversion, conversion, held_type
from vsc.runtime.values import arrow_type

__all__ = ["leaves", "nested_conversion"]

Fold = Callable[[str], str]
"""Makes names equal that are the same to a reader."""


def nested_conversion(held: pa.DataType, declared: DataType, fold: Fold, by_value: bool = True) -> Conversion | None:
    """How a column of type `held` becomes one that is `declared`; None: not at all.

    `by_value`: also if some values do not fit, which makes their rows null.
    """
    named, held = held, held_type(held)
    if pa.types.is_null(held):
        return lambda column: pa.nulls(len(column), arrow_type(declared))
    match declared:
        case ArrayType(element) if _is_list(held):
            return _of_list(nested_conversion(held.value_type, element, fold, by_value), declared)
        case MapType(key, value) if pa.types.is_map(held):
            keys = nested_conversion(held.key_type, key, fold, by_value=False)
            return _of_map(keys, nested_conversion(held.item_type, value, fold, by_value), declared)
        case StructType() if pa.types.is_struct(held):
            return _of_struct(held, declared, fold, by_value)
        case ArrayType() | MapType() | StructType():
            return None
    if pa.types.is_nested(held) or (not by_value and _goes_by_value(held, declared)):
        return None
    return conversion("INT96", named, declared)


def leaves(column: pa.Array) -> list[pa.Array]:
    """The columns of which a nested one is made."""
    if pa.types.is_struct(column.type):
        return [leaf for child in column.flatten() for leaf in leaves(child)]
    if pa.types.is_map(column.type):
        return [*leaves(column.keys), *leaves(column.items)]
    return leaves(column.flatten()) if pa.types.is_list(column.type) else [column]


def _is_list(held: pa.DataType) -> bool:
    kinds = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(is_kind(held) for is_kind in kinds)


def _goes_by_value(held: pa.DataType, declared: DataType) -> bool:
    return pa.types.is_integer(held) and (
        str(declared) == "boolean" or (str(declared) == "double" and held.bit_width == 64)
    )


def _of_list(element: Conversion | None, declared: ArrayType) -> Conversion | None:
    if element is None:
        return None

    def convert(column: pa.Array) -> pa.Array:
        column = column.cast(pa.list_(column.type.value_type))
        inner = column.flatten()
        values = element(inner)
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        mask = _nulls(column, [(inner, values)], pc.list_parent_indices(column))
        return pa.ListArray.from_arrays(_offsets(lengths), values, type=arrow_type(declared), mask=mask)

    return convert


def _of_map(keys: Conversion | None, items: Conversion | None, declared: MapType) -> Conversion | None:
    if keys is None or items is None:
        return None

    def convert(column: pa.Array) -> pa.Array:
        entries = column.cast(pa.list_(pa.struct([("k", column.type.key_type), ("v", column.type.item_type)])))
        inner = entries.flatten()
        values = items(inner.field(1))
        lengths = pc.fill_null(pc.list_value_length(entries), 0)
        found = keys(inner.field(0))
        read = [(inner.field(0), found), (inner.field(1), values)]
        mask = _nulls(entries, read, pc.list_parent_indices(entries))
        if found.null_count:  # a time that does not fit: its row is null, and a key of Arrow's may not be
            found = pc.fill_null(found, pa.scalar(0, found.type))
        return pa.MapArray.from_arrays(_offsets(lengths), found, values, type=arrow_type(declared), mask=mask)

    return convert


def _of_struct(held: pa.DataType, declared: StructType, fold: Fold, by_value: bool) -> Conversion | None:
    there: dict[str, list[int]] = {}
    for i in range(held.num_fields):
        there.setdefault(fold(held.field(i).name), []).append(i)
    parts: list[tuple[int, Conversion] | None] = []
    for field in declared.fields:
        places = there.get(fold(field.name))
        if places is None:
            parts.append(None)
            continue
        found = nested_conversion(held.field(places[0]).type, field.type, fold, by_value)
        if found is None or len(places) > 1:
            return None
        parts.append((places[0], found))

    def convert(column: pa.Array) -> pa.Array:
        children = column.flatten()
        arrays = [
            pa.nulls(len(column), arrow_type(field.type)) if part is None else part[1](children[part[0]])
            for field, part in zip(declared.fields, parts, strict=True)
        ]
        read = [(children[part[0]], array) for part, array in zip(parts, arrays, strict=True) if part is not None]
        mask = _nulls(column, read, pa.array(np.arange(len(column))))
        return pa.StructArray.from_arrays(arrays, fields=list(arrow_type(declared)), mask=mask)

    return convert


def _nulls(column: pa.Array, read: Iterable[tuple[pa.Array, pa.Array]], parents: pa.Array) -> pa.Array:
    """Where a column is null, or a value inside of it does not fit: then it was `read` as null. `parents`: the row of
    each value."""
    null = column.is_null()
    lost = [
        pc.and_(after.is_null(), before.is_valid()) for before, after in read if after.null_count > before.null_count
    ]
    if not lost:
        return null
    found = null.to_numpy(zero_copy_only=False).copy()
    for one in lost:
        found[parents.filter(one).to_numpy()] = True
    return pa.array(found)


def _offsets(lengths: pa.Array) -> pa.Array:
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
