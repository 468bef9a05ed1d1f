"""Nested columns of parquet files: arrays, maps and structs, whose parts are converted as `parquet_types` says.

Guarantees: the fields of a struct are found by name, a missing one is null. What goes by the value (`double` from
whole numbers of 64 bits) is not read in here.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, MapType, StructType
from vsc.runtime.spark.formats.parquet_types import Conversion, conversion, held_type
from vsc.runtime.values import arrow_type

__all__ = ["leaves", "nested_conversion"]

Fold = Callable[[str], str]
"""Makes names equal that are the same to a reader."""


def nested_conversion(held: pa.DataType, declared: DataType, fold: Fold) -> Conversion | None:
    """How a column of type `held` becomes one that is `declared`; None: not at all."""
    held = held_type(held)
    if pa.types.is_null(held):
        return lambda column: pa.nulls(len(column), arrow_type(declared))
    match declared:
        case ArrayType(element) if _is_list(held):
            return _of_list(nested_conversion(held.value_type, element, fold), declared)
        case MapType(key, value) if pa.types.is_map(held):
            keys = nested_conversion(held.key_type, key, fold)
            return _of_map(keys, nested_conversion(held.item_type, value, fold), declared)
        case StructType() if pa.types.is_struct(held):
            return _of_struct(held, declared, fold)
        case ArrayType() | MapType() | StructType():
            return None
    return None if pa.types.is_nested(held) or _goes_by_value(held, declared) else conversion("INT96", held, declared)


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
        values = element(column.flatten())
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        return pa.ListArray.from_arrays(_offsets(lengths), values, type=arrow_type(declared), mask=column.is_null())

    return convert


def _of_map(keys: Conversion | None, items: Conversion | None, declared: MapType) -> Conversion | None:
    if keys is None or items is None:
        return None

    def convert(column: pa.Array) -> pa.Array:
        entries = column.cast(pa.list_(pa.struct([("k", column.type.key_type), ("v", column.type.item_type)])))
        inner = entries.flatten()
        lengths = pc.fill_null(pc.list_value_length(entries), 0)
        return pa.MapArray.from_arrays(
            _offsets(lengths), keys(inner.field(0)), items(inner.field(1)), type=arrow_type(declared),
            mask=entries.is_null(),
        )  # fmt: skip

    return convert


def _of_struct(held: pa.DataType, declared: StructType, fold: Fold) -> Conversion | None:
    there = {fold(held.field(i).name): i for i in range(held.num_fields)}
    parts: list[tuple[int, Conversion] | None] = []
    for field in declared.fields:
        place = there.get(fold(field.name))
        if place is None:
            parts.append(None)
            continue
        found = nested_conversion(held.field(place).type, field.type, fold)
        if found is None:
            return None
        parts.append((place, found))

    def convert(column: pa.Array) -> pa.Array:
        children = column.flatten()
        arrays = [
            pa.nulls(len(column), arrow_type(field.type)) if part is None else part[1](children[part[0]])
            for field, part in zip(declared.fields, parts, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(arrow_type(declared)), mask=column.is_null())

    return convert


def _offsets(lengths: pa.Array) -> pa.Array:
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
