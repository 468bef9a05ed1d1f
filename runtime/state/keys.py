"""Key columns as bytes, and back.

Guarantees:

* Order: the bytes of two keys compare as the keys do, column by column: strings and binaries by their bytes (for
  strings that is UTF-8 order), numbers, dates and timestamps by value, false before true, structs field by field, a
  null field first. So the order of keys of one string column is the order of their UTF-8 bytes.
* Length safety: no key's bytes are a prefix of another's (of the same types), so keys can be followed by anything.
* One key has one form: the scalar and the whole-column way give the same bytes.

Layout, format version 1: the format version (1 byte), then the columns in turn.

========================  =====================================================================================
boolean                   1 byte, 0 or 1
integers, date, timestamp big-endian two's complement of the type's width (1, 2, 4, 8 bytes), sign bit flipped
decimal                   the unscaled number like an integer of 8 bytes (precision up to 18) or 16
string, binary            the bytes, each ``00`` written as ``00 FF``, then ``00 01``
struct                    its fields in turn, each after ``00`` (null, nothing follows) or ``01``
========================  =====================================================================================

Floats, arrays and maps cannot be keys (the compiler refuses them): `KeyCodec` raises TypeError for them. A key
column is never null: ValueError.

A stream's record with a null among its key columns has no key (D26). It still goes to a partition, by bytes that are
never a key's: a ``00`` in place of the format version, then the columns, each like a field of a struct. Nothing stores
or decodes them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import DataType, DecimalType, ScalarType, StructType
from vsc.runtime.state.row_columns import fixed_width_binary
from vsc.runtime.state.slots import NARROW_DECIMAL
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["FORMAT_VERSION", "KeyCodec"]

FORMAT_VERSION = 1
"""First byte of every key."""

_NO_KEY = b"\x00"
_WIDTHS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "date": 4, "timestamp": 8}
_ESCAPED_ZERO = b"\x00\xff"
_END = b"\x00\x01"
_EXACT = decimal.Context(prec=60)

Encode = Callable[[object], bytes]
Decode = Callable[[bytes, int], tuple[object, int]]


class KeyCodec:
    """Encodes keys of the given column types. Immutable; cheap to build.

    Raises TypeError when a type cannot be a key.
    """

    __slots__ = ("_decoders", "_encoders", "types")

    def __init__(self, types: Sequence[DataType]) -> None:
        self.types = tuple(types)
        pairs = [_scalar_codec(t) for t in self.types]
        self._encoders = tuple(encode for encode, _ in pairs)
        self._decoders = tuple(decode for _, decode in pairs)

    def encode(self, values: Sequence[object]) -> bytes:
        """The bytes of one key, given as internal values in column order.

        Raises ValueError for a null column, or if the number of values is not that of the columns.
        """
        parts = [b"\x01"]
        for encode, value in zip(self._encoders, values, strict=True):
            if value is None:
                raise ValueError("a key column is null")
            parts.append(encode(value))
        return b"".join(parts)

    def decode(self, data: bytes) -> tuple[object, ...]:
        """The internal values of a key. Raises ValueError if `data` is not exactly one key of these types."""
        values, end = self.decode_first(data)
        if end != len(data):
            raise ValueError(f"key has {len(data)} bytes where {end} were expected")
        return values

    def decode_first(self, data: bytes) -> tuple[tuple[object, ...], int]:
        """The internal values of the key at the start of `data`, and where it ends. Raises ValueError without one."""
        if not data or data[0] != FORMAT_VERSION:
            raise ValueError(f"key of an unknown format version: {data[:1]!r}; this release reads {FORMAT_VERSION}")
        values, position = [], 1
        try:
            for decode in self._decoders:
                value, position = decode(data, position)
                values.append(value)
        except IndexError as error:
            raise ValueError(f"key cut short: {data!r}") from error
        return tuple(values), position

    def encode_columns(
        self, arrays: Sequence[pa.Array], keyless: bool = False
    ) -> tuple[list[bytes], npt.NDArray[np.int64]]:
        """The distinct keys of whole columns (of equal length), and for each row the index of its key among them.

        Distinct keys come in the order of their first row. Each is encoded once. Raises ValueError for a null, unless
        rows may be `keyless`.
        """
        columns = [_one_chunk(array) for array in arrays]
        if not keyless and any(column.null_count for column in columns):
            raise ValueError("a key column is null")
        if not columns:
            raise ValueError("a key needs at least one column")
        index, count = _distinct(columns)
        first = np.zeros(count, dtype=np.int64)
        rows = np.arange(len(index), dtype=np.int64)
        first[index[::-1]] = rows[::-1]
        chosen = [column.take(pa.array(first)) for column in columns]
        return self._encode_distinct(chosen, count), index

    def first(self, data: bytes) -> bytes:
        """The bytes of the key at the start of `data`; all of them if that is a key with a null, as a stream has it.

        Raises ValueError if there is none.
        """
        return data if data[:1] == _NO_KEY else data[: self.decode_first(data)[1]]

    def decode_columns(self, keys: Sequence[bytes]) -> tuple[pa.Array, ...]:
        """The key columns of encoded keys. Raises ValueError for data that is not exactly one key of these types."""
        if len(self.types) == 1:
            column = _decode_column(keys, self.types[0])
            if column is not None:
                return (column,)
        rows = [self.decode(key) for key in keys]
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.types)
        return tuple(to_array(list(column), t) for column, t in zip(columns, self.types, strict=True))

    def _encode_distinct(self, columns: Sequence[pa.Array], count: int) -> list[bytes]:
        null = [column.is_null() for column in columns if column.null_count]
        if null:
            return self._encode_some_keyless(columns, reduce(pc.or_, null))
        version = pa.repeat(pa.scalar(b"\x01", pa.binary()), count)
        pieces = [_encode_column(column, t) for column, t in zip(columns, self.types, strict=True)]
        keys: list[bytes] = pc.binary_join_element_wise(version, *pieces, b"").to_pylist()
        return keys

    def _encode_some_keyless(self, columns: Sequence[pa.Array], keyless: pa.BooleanArray) -> list[bytes]:
        parts = zip(columns, self.types, strict=True)
        rows = zip(*(to_values(column.filter(keyless), t) for column, t in parts), strict=True)
        without = (_NO_KEY + _encode_members(self._encoders, row) for row in rows)
        there = pc.invert(keyless)
        keys = iter(self._encode_distinct([column.filter(there) for column in columns], there.true_count))
        return [next(without if null else keys) for null in keyless.to_pylist()]


def _scalar_codec(data_type: DataType) -> tuple[Encode, Decode]:
    if isinstance(data_type, DecimalType):
        return _decimal_codec(data_type)
    if isinstance(data_type, StructType):
        return _struct_codec(data_type)
    if isinstance(data_type, ScalarType):
        if data_type.name in _WIDTHS:
            return _integer_codec(_WIDTHS[data_type.name])
        if data_type.name == "boolean":
            return (lambda value: b"\x01" if value else b"\x00"), (lambda data, at: (data[at] == 1, at + 1))
        if data_type.name == "string":
            return _encode_string, _decode_string
        if data_type.name == "binary":
            return _encode_binary, _decode_binary
    raise TypeError(f"{data_type} cannot be the type of a key column")


def _integer_codec(width: int) -> tuple[Encode, Decode]:
    half = 1 << (8 * width - 1)

    def encode(value: object) -> bytes:
        return (value + half).to_bytes(width, "big")  # type: ignore[operator]

    def decode(data: bytes, at: int) -> tuple[object, int]:
        if at + width > len(data):
            raise IndexError
        return int.from_bytes(data[at : at + width], "big") - half, at + width

    return encode, decode


def _decimal_codec(data_type: DecimalType) -> tuple[Encode, Decode]:
    scale = data_type.scale
    encode_integer, decode_integer = _integer_codec(8 if data_type.precision <= NARROW_DECIMAL else 16)

    def encode(value: object) -> bytes:
        assert isinstance(value, decimal.Decimal)
        return encode_integer(int(value.scaleb(scale, _EXACT)))

    def decode(data: bytes, at: int) -> tuple[object, int]:
        unscaled, end = decode_integer(data, at)
        assert isinstance(unscaled, int)
        return decimal.Decimal(unscaled).scaleb(-scale, _EXACT), end

    return encode, decode


def _struct_codec(data_type: StructType) -> tuple[Encode, Decode]:
    fields = [_scalar_codec(field.type) for field in data_type.fields]

    def encode(value: object) -> bytes:
        assert isinstance(value, tuple)
        return _encode_members([encode_field for encode_field, _ in fields], value)

    def decode(data: bytes, at: int) -> tuple[object, int]:
        members: list[object] = []
        for _, decode_field in fields:
            present, at = data[at], at + 1
            member: object = None
            if present:
                member, at = decode_field(data, at)
            members.append(member)
        return tuple(members), at

    return encode, decode


def _encode_members(encoders: Sequence[Encode], values: Sequence[object]) -> bytes:
    """Values that may be null."""
    pairs = zip(encoders, values, strict=True)
    return b"".join(b"\x00" if value is None else b"\x01" + encode(value) for encode, value in pairs)


def _encode_binary(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value.replace(b"\x00", _ESCAPED_ZERO) + _END


def _encode_string(value: object) -> bytes:
    assert isinstance(value, str)
    return value.encode().replace(b"\x00", _ESCAPED_ZERO) + _END


def _decode_binary(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.find(_END, at)
    if end < 0:
        raise IndexError
    return data[at:end].replace(_ESCAPED_ZERO, b"\x00"), end + len(_END)


def _decode_string(data: bytes, at: int) -> tuple[object, int]:
    raw, end = _decode_binary(data, at)
    return raw.decode(), end


def _one_chunk(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _distinct(columns: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], int]:
    """For each row the number of its combination of values, by first appearance; and the number of combinations."""
    index: npt.NDArray[np.int64] | None = None
    count = 0
    for leaf in _leaves(columns):
        codes, found = _codes(leaf)
        if index is None:
            index, count = codes, found
        else:  # both factors are at most the number of rows: no overflow below 3 * 10^9 rows
            index, count = _codes(pa.array(index * max(found, 1) + codes))
    assert index is not None
    return index, count


def _codes(array: pa.Array) -> tuple[npt.NDArray[np.int64], int]:
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _leaves(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns with every struct replaced by its validity and its fields."""
    leaves: list[pa.Array] = []
    for column in columns:
        if pa.types.is_struct(column.type):
            leaves.append(column.is_valid())
            leaves.extend(_leaves(column.flatten()))
        else:
            leaves.append(column)
    return leaves


def _encode_column(column: pa.Array, data_type: DataType) -> pa.Array:
    """The bytes of each row, for a column without nulls."""
    name = data_type.name if isinstance(data_type, ScalarType) else ""
    if name in ("string", "binary"):
        raw = column.cast(pa.binary())
        escaped = pc.replace_substring(raw, b"\x00", _ESCAPED_ZERO)
        return pc.binary_join_element_wise(escaped, _END, b"")
    if name in _WIDTHS:
        width = _WIDTHS[name]
        numbers = column.view(f"int{8 * width}") if name in ("date", "timestamp") else column
        return _big_endian(numbers.to_numpy(zero_copy_only=False), width)
    if name == "boolean":
        return fixed_width_binary(column.cast(pa.uint8()).to_numpy(zero_copy_only=False).reshape(-1, 1))
    if isinstance(data_type, DecimalType):
        return _encode_decimals(column, data_type)
    encode, _ = _scalar_codec(data_type)
    return pa.array([encode(value) for value in to_values(column, data_type)], pa.binary())


def _decode_column(keys: Sequence[bytes], data_type: DataType) -> pa.Array | None:
    """The column of keys with one column; None if they must be decoded one by one."""
    name = data_type.name if isinstance(data_type, ScalarType) else ""
    whole = b"".join(keys)
    version = bytes([FORMAT_VERSION])
    if name in _WIDTHS:
        width = _WIDTHS[name] + 1
        if set(map(len, keys)) != {width} or set(whole[::width]) != {FORMAT_VERSION}:
            return None
        parts = np.frombuffer(whole, dtype=np.dtype([("version", "u1"), ("number", f">u{width - 1}")]))["number"]
        unsigned = parts.astype(f"<u{width - 1}") ^ np.array(1 << (8 * (width - 1) - 1), dtype=f"<u{width - 1}")
        return pa.array(unsigned.view(f"<i{width - 1}")).view(arrow_type(data_type))
    plain = name in ("string", "binary") and whole.count(b"\x00") == len(keys)
    if plain and all(key[:1] == version and key[-2:] == _END for key in keys):
        return pa.array([key[1:-2] for key in keys], pa.binary()).view(arrow_type(data_type))
    return None


def _encode_decimals(column: pa.Array, data_type: DecimalType) -> pa.Array:
    halves = np.frombuffer(column.buffers()[1], dtype="<u8")[2 * column.offset :][: 2 * len(column)].reshape(-1, 2)
    high, low = halves[:, 1] ^ np.uint64(1 << 63), halves[:, 0]
    if data_type.precision <= NARROW_DECIMAL:
        return fixed_width_binary((low ^ np.uint64(1 << 63)).astype(">u8").view(np.uint8).reshape(-1, 8))
    return fixed_width_binary(np.stack([high, low], axis=1).astype(">u8").view(np.uint8).reshape(-1, 16))


def _big_endian(numbers: npt.NDArray[np.signedinteger], width: int) -> pa.Array:
    unsigned = numbers.astype(f"<i{width}").view(f"<u{width}") ^ np.array(1 << (8 * width - 1), dtype=f"<u{width}")
    return fixed_width_binary(unsigned.astype(f">u{width}").view(np.uint8).reshape(-1, width))
