"""Value columns as bytes, and back: one row at a time, or whole columns.

Guarantees: a row has one form, whichever way it was encoded; every value of every column type is restored exactly
(nulls, NaN, decimals with their scale). Rows can only be read with the same column types in the same order; the
checkpoint ensures that they are the same. The bytes have no useful order.

Layout, format version 1, all numbers little-endian:

===========  ====================================================================================================
version      1 byte
nulls        a bit a column, least significant bit first, 1 is null; padded to whole bytes
fixed        a slot a column: boolean 1 byte, integers and floats their width, date 4, timestamp 8, decimal 8
             (precision up to 18) or 16 bytes of the unscaled number; string, binary and nested columns 4 bytes:
             where the column's bytes end, counted from the start of the variable section
variable     the bytes of string (UTF-8), binary and nested columns, one after the other
===========  ====================================================================================================

The slot of a null column is zero; that of a null variable column is the end of the one before. Nested values: see
`slots`. An empty tuple of types is allowed (a table with key columns only): its row is the version byte.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.state.row_columns import FORMAT_VERSION, RowColumns
from vsc.runtime.state.slots import Slot, slot_of

__all__ = ["FORMAT_VERSION", "RowCodec"]


class RowCodec:
    """Encodes rows of the given column types. Immutable."""

    __slots__ = ("_bitmap", "_columns", "_first", "_header", "_slots", "types")

    def __init__(self, types: Sequence[DataType]) -> None:
        self.types = tuple(types)
        self._slots: tuple[Slot, ...] = tuple(slot_of(t) for t in self.types)
        self._bitmap = (len(self.types) + 7) // 8
        self._header = struct.Struct(f"<B{self._bitmap}s" + "".join(slot.code for slot in self._slots))
        self._first = struct.Struct(f"<B{self._bitmap}sq")
        self._columns = RowColumns(self.types, self._slots)

    def encode(self, values: Sequence[object]) -> bytes:
        """The bytes of one row, given as internal values in column order.

        Raises ValueError if the number of values is not that of the columns, struct.error if a number does not fit its
        type.
        """
        nulls, end, bit = 0, 0, 1
        fixed: list[object] = []
        variable: list[bytes] = []
        for slot, value in zip(self._slots, values, strict=True):
            if value is None:
                nulls |= bit
                fixed.append(end if slot.variable else slot.zero)
            elif slot.variable:
                data = slot.pack(value)
                assert isinstance(data, bytes)
                variable.append(data)
                end += len(data)
                fixed.append(end)
            else:
                fixed.append(value if slot.plain else slot.pack(value))
            bit <<= 1
        header = self._header.pack(FORMAT_VERSION, nulls.to_bytes(self._bitmap, "little"), *fixed)
        return header + b"".join(variable) if variable else header

    def decode(self, data: bytes) -> tuple[object, ...]:
        """The internal values of one row. Raises ValueError for another format version or a truncated row."""
        if not data or data[0] != FORMAT_VERSION:
            raise ValueError(f"row of an unknown format version: {data[:1]!r}; this release reads {FORMAT_VERSION}")
        if len(data) < self._header.size:
            raise ValueError(f"row cut short: {len(data)} bytes, the fixed section alone has {self._header.size}")
        _, bitmap, *fixed = self._header.unpack_from(data)
        nulls, start, base = int.from_bytes(bitmap, "little"), 0, self._header.size
        values: list[object] = []
        for slot, raw in zip(self._slots, fixed, strict=True):
            value: object = None
            if not nulls & 1:
                value = slot.unpack(data[base + start : base + raw]) if slot.variable else raw
                if not (slot.variable or slot.plain):
                    value = slot.unpack(raw)
            if slot.variable:
                start = raw
            values.append(value)
            nulls >>= 1
        if len(data) != base + start:
            raise ValueError(f"row has {len(data)} bytes where {base + start} were expected")
        return tuple(values)

    def first(self, data: bytes) -> int:
        """The first column of a row, a bigint that is not null. Raises ValueError as `decode` does."""
        if len(data) < self._header.size or data[0] != FORMAT_VERSION:
            self.decode(data)
        first: int = self._first.unpack_from(data)[2]
        return first

    def encode_columns(self, arrays: Sequence[pa.Array], count: int | None = None) -> pa.BinaryArray:
        """The bytes of every row of whole columns; `count` is the number of rows, needed without columns.

        Raises ValueError if the number of columns is not the codec's.
        """
        return self._columns.encode(arrays, len(arrays[0]) if count is None else count)

    def decode_columns(self, rows: pa.BinaryArray, wanted: Sequence[int] | None = None) -> tuple[pa.Array, ...]:
        """The columns of encoded rows, or those that are `wanted`, with the Arrow types of the codec's types.

        Where `rows` is null (a tombstone) every column is null. Raises ValueError for another format version, and for
        rows of other columns.
        """
        return self._columns.decode(rows, range(len(self.types)) if wanted is None else wanted)
