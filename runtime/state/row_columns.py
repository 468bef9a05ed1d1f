"""Encoded rows from and to whole columns: the layout of `rows`, without looking at single rows.

Guarantees: the bytes are those of `RowCodec.encode` row by row. Columns of fixed width, strings and binaries are moved
by numpy and Arrow kernels; nested columns are packed value by value. A row's version, length and ends are checked, so
nothing outside of a row is ever read; wrong values are not detected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType
from vsc.runtime.state.slots import NARROW_DECIMAL, Slot, slot_of
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["FORMAT_VERSION", "RowColumns", "fixed_width_binary"]

FORMAT_VERSION = 1
"""First byte of every row."""

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_NUMPY = {"b": "i1", "h": "<i2", "i": "<i4", "q": "<i8", "f": "<f4", "d": "<f8", "?": "u1", "I": "<u4", "16s": "V16"}
_MAX_BYTES = 2**31 - 1
_LENGTH = np.dtype("<u4")


class RowColumns:
    """Encodes and decodes whole columns of the given types, whose slots are `slots`."""

    __slots__ = ("_header", "_slots", "_types")

    def __init__(self, types: Sequence[DataType], slots: Sequence[Slot]) -> None:
        self._types, self._slots = types, slots
        # The fixed part of a row, as a packed numpy record.
        fields = [("version", "u1", ()), ("nulls", "u1", ((len(types) + 7) // 8,))]
        fields += [(f"c{i}", _NUMPY[slot.code], ()) for i, slot in enumerate(slots)]
        self._header: np.dtype[np.void] = np.dtype(fields)

    def encode(self, arrays: Sequence[pa.Array], count: int) -> pa.BinaryArray:
        """One encoded row for each of the `count` rows of `arrays`."""
        rows = np.zeros(count, dtype=self._header)
        rows["version"] = FORMAT_VERSION
        nulls = _null_bits(arrays, count)
        if nulls is not None:
            rows["nulls"] = nulls
        # Of a variable column, the fixed part holds where it ends, counted from the fixed part's end: a running sum.
        variable: list[pa.Array] = []
        end = np.zeros(count, dtype=np.int64)
        for i, (array, data_type, slot) in enumerate(zip(arrays, self._types, self._slots, strict=True)):
            if slot.variable:
                data = _variable_bytes(array, data_type, slot)
                variable.append(data)
                end = end + pc.binary_length(data).fill_null(0).to_numpy(zero_copy_only=False)
                rows[f"c{i}"] = end
            else:
                rows[f"c{i}"] = _fixed_values(array, data_type)
        fixed = fixed_width_binary(rows.view(np.uint8).reshape(count, self._header.itemsize))
        if not variable:
            return fixed
        return pc.binary_join_element_wise(fixed, *variable, b"", null_handling="replace", null_replacement=b"")

    def decode(self, rows: pa.BinaryArray, wanted: Sequence[int]) -> tuple[pa.Array, ...]:
        """The `wanted` columns of encoded rows; where `rows` is null, every column is null.

        Raises ValueError for a row of another format version, or of other columns.
        """
        if rows.null_count:
            valid = rows.is_valid().to_numpy(zero_copy_only=False)
            place = pa.array(np.cumsum(valid) - 1, mask=~valid)
            dense = self.decode(rows.drop_null(), wanted)
            return tuple(column.take(place) for column in dense)
        count, header = len(rows), self._header
        if count == 0:
            return tuple(pa.array([], arrow_type(self._types[i])) for i in wanted)
        starts = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset : rows.offset + count + 1]
        data = rows.buffers()[2] or pa.py_buffer(b"")
        if (np.diff(starts) < header.itemsize).any():
            raise ValueError(f"a row is cut short: the fixed section alone has {header.itemsize} bytes")
        variable = [i for i, slot in enumerate(self._slots) if slot.variable]
        fixed = _fixed_part(data, starts, header, whole=not variable)
        if (fixed["version"] != FORMAT_VERSION).any():
            raise ValueError(f"a row is of an unknown format version; this release reads {FORMAT_VERSION}")
        pieces, width = _pieces(fixed, starts, data, variable), len(variable) + 1
        columns = []
        has_nulls = bool(fixed["nulls"].any())
        for i in wanted:
            data_type, slot = self._types[i], self._slots[i]
            nulls = ((fixed["nulls"][:, i >> 3] >> (i & 7)) & 1).astype(np.bool_) if has_nulls else None
            if slot.variable:
                # A null among the indices gives a null, whatever lies there.
                places = np.arange(count, dtype=np.int64) * width + variable.index(i) + 1
                columns.append(_variable_column(pieces.take(pa.array(places, mask=nulls)), data_type, slot))
            else:
                columns.append(_fixed_column(fixed[f"c{i}"], nulls, data_type))
        return tuple(columns)


def fixed_width_binary(matrix: Bytes) -> pa.BinaryArray:
    """The rows of a matrix of bytes, as a binary array."""
    count, width = matrix.shape
    if count * width > _MAX_BYTES:
        raise ValueError(f"{count} rows of {width} bytes do not fit into one column")
    offsets = pa.py_buffer((np.arange(count + 1, dtype=np.int64) * width).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(np.ascontiguousarray(matrix))])


def _null_bits(arrays: Sequence[pa.Array], count: int) -> Bytes | None:
    if not any(array.null_count for array in arrays):
        return None
    nulls = np.zeros((count, len(arrays)), dtype=np.bool_)
    for i, array in enumerate(arrays):
        if array.null_count:
            nulls[:, i] = array.is_null().to_numpy(zero_copy_only=False)
    return np.packbits(nulls, axis=1, bitorder="little")


def _fixed_values(array: pa.Array, data_type: DataType) -> npt.NDArray[np.generic]:
    if isinstance(data_type, DecimalType):
        return _decimal_values(array, data_type)
    assert isinstance(data_type, ScalarType)
    if data_type.name == "boolean":
        array = array.cast(pa.uint8())
    elif data_type.name in ("date", "timestamp"):
        array = array.view(pa.int32() if data_type.name == "date" else pa.int64())
    if array.null_count:
        array = array.fill_null(pa.scalar(0, array.type))
    values: npt.NDArray[np.generic] = array.to_numpy(zero_copy_only=False)
    return values


def _decimal_values(array: pa.Array, data_type: DecimalType) -> npt.NDArray[np.generic]:
    halves = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)
    if array.null_count:
        halves = halves * array.is_valid().to_numpy(zero_copy_only=False)[:, None]
    if data_type.precision <= NARROW_DECIMAL:
        return halves[:, 0]  # it fits in 64 bits, so the high half only repeats the sign
    return np.ascontiguousarray(halves).view("V16").reshape(-1)


def _variable_bytes(array: pa.Array, data_type: DataType, slot: Slot) -> pa.Array:
    if isinstance(data_type, ScalarType):
        return array.cast(pa.binary())
    if isinstance(data_type, ArrayType) and isinstance(data_type.element, ScalarType | DecimalType):
        element = slot_of(data_type.element)
        if not element.variable and not array.flatten().null_count:
            return _array_bytes(array, data_type.element, element)
    packed = [None if value is None else slot.pack(value) for value in to_values(array, data_type)]
    return pa.array(packed, pa.binary())


def _array_bytes(array: pa.ListArray, of: ScalarType | DecimalType, element: Slot) -> pa.BinaryArray:
    """Arrays of elements of fixed width, none of which is null: see `slots`."""
    elements = array.flatten()
    members = np.ones(len(elements), dtype=[("there", "u1"), ("value", _NUMPY[element.code])])
    members["value"] = _fixed_values(elements, of)
    there, length = array.is_valid().to_numpy(zero_copy_only=False), pc.list_value_length(array).fill_null(0).to_numpy()
    ends = np.cumsum(np.where(there, _LENGTH.itemsize + length.astype(np.int64) * members.itemsize, 0))
    offsets = np.append(0, ends)
    if offsets[-1] > _MAX_BYTES:
        raise ValueError(f"arrays of {offsets[-1]} bytes do not fit into one column")
    heads = (offsets[:-1][there, None] + np.arange(_LENGTH.itemsize)).reshape(-1)
    data, behind = np.empty(offsets[-1], dtype=np.uint8), np.ones(offsets[-1], dtype=np.bool_)
    data[heads] = length[there].astype(_LENGTH).view(np.uint8)
    behind[heads] = False
    data[behind] = members.view(np.uint8)
    validity = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def _fixed_part(
    data: pa.Buffer, starts: npt.NDArray[np.int32], header: np.dtype[np.void], whole: bool
) -> npt.NDArray[np.void]:
    """The fixed parts of all rows, adjacent; `whole`: the rows have no other part."""
    count = len(starts) - 1
    if whole:
        if int(starts[-1]) - int(starts[0]) != count * header.itemsize:
            raise ValueError(f"a row is longer than its {header.itemsize} bytes")
        return np.frombuffer(data, dtype=header, count=count, offset=int(starts[0]))
    # Two slices a row, the fixed part and the rest; taking every other one brings the fixed parts together.
    bounds = np.empty((count, 2), dtype=np.int32)
    bounds[:, 0] = starts[:-1]
    bounds[:, 1] = starts[:-1] + header.itemsize
    parts = _slices(np.append(bounds.reshape(-1), starts[-1]), data)
    heads = parts.take(pa.array(np.arange(count, dtype=np.int64) * 2))
    return np.frombuffer(heads.buffers()[2], dtype=header, count=count)


def _pieces(
    fixed: npt.NDArray[np.void], starts: npt.NDArray[np.int32], data: pa.Buffer, variable: Sequence[int]
) -> pa.BinaryArray:
    """Every row cut into its fixed part and its variable columns, one after the other, without copying."""
    count, size = len(fixed), fixed.dtype.itemsize
    bounds = np.empty((count, len(variable) + 1), dtype=np.int64)
    bounds[:, 0] = starts[:-1]
    for j, i in enumerate(variable[:-1]):
        bounds[:, j + 2] = starts[:-1] + size + fixed[f"c{i}"].astype(np.int64)
    if variable:
        bounds[:, 1] = starts[:-1] + size
        # Checked before anything is cut: if the bounds ascend and the last one is where the next row begins, no slice
        # reaches out of its row, whatever the bytes say.
        last = starts[:-1] + size + fixed[f"c{variable[-1]}"].astype(np.int64)
        if (last != starts[1:]).any() or (np.diff(np.append(bounds.reshape(-1), starts[-1])) < 0).any():
            raise ValueError("a row does not end where its columns end")
    return _slices(np.append(bounds.reshape(-1), starts[-1]).astype(np.int32), data)


def _slices(offsets: npt.NDArray[np.int32], data: pa.Buffer) -> pa.BinaryArray:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data])


def _variable_column(data: pa.BinaryArray, data_type: DataType, slot: Slot) -> pa.Array:
    if isinstance(data_type, ScalarType):
        return data if data_type.name == "binary" else data.view(pa.string())
    return to_array([None if raw is None else slot.unpack(raw) for raw in data.to_pylist()], data_type)


def _fixed_column(values: npt.NDArray[np.generic], nulls: Mask | None, data_type: DataType) -> pa.Array:
    if isinstance(data_type, DecimalType):
        return _decimal_column(values, nulls, data_type)
    assert isinstance(data_type, ScalarType)
    contiguous = np.ascontiguousarray(values)
    if data_type.name == "boolean":
        return pa.array(contiguous.astype(np.bool_), mask=nulls)
    array = pa.array(contiguous, mask=nulls)
    return array.view(arrow_type(data_type)) if data_type.name in ("date", "timestamp") else array


def _decimal_column(values: npt.NDArray[np.generic], nulls: Mask | None, data_type: DecimalType) -> pa.Array:
    count = len(values)
    if data_type.precision <= NARROW_DECIMAL:
        halves = np.empty((count, 2), dtype="<i8")
        halves[:, 0] = values
        halves[:, 1] = values.astype(np.int64) >> 63  # the sign, in all bits
    else:
        halves = np.ascontiguousarray(values).view("<i8").reshape(count, 2)
    validity = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(arrow_type(data_type), count, [validity, pa.py_buffer(np.ascontiguousarray(halves))])
