"""How one column of each type is kept in an encoded row: its slot in the fixed section, and its bytes.

Values here are internal ones (dates as days, timestamps as microseconds, structs as tuples). Nested values are bytes
of the variable section, written value by value: an array is its length (4 bytes, little-endian) and its elements, a
map the same with a key and a value for each entry, a struct its fields. Each of these members is one byte, 0 for null
or 1, then for 1 the member's fixed bytes, or the number of its bytes (4) and the bytes.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, repeat

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType

__all__ = ["NARROW_DECIMAL", "Slot", "slot_of"]

NARROW_DECIMAL = 18
"""Decimals up to this precision are kept in 8 bytes, others in 16."""

_EXACT = decimal.Context(prec=60)
_LENGTH = struct.Struct("<I")
_PLAIN = {
    "tinyint": "b", "smallint": "h", "int": "i", "bigint": "q", "float": "f", "double": "d",
    "date": "i", "timestamp": "q", "boolean": "?",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """One column of a row.

    `code` is the slot's format in `struct`; `zero` what stands there for null. `plain` values are packed as they are;
    others go through `pack` and `unpack`: to and from the slot's value, or, for a `variable` column, to and from its
    bytes.
    """

    code: str
    zero: object
    plain: bool
    variable: bool
    pack: Callable[[object], object]
    unpack: Callable[[object], object]


def slot_of(data_type: DataType) -> Slot:
    """The slot of a column of this type; raises TypeError for types that no column may have."""
    if isinstance(data_type, DecimalType):
        return _decimal_slot(data_type)
    if isinstance(data_type, ScalarType):
        code = _PLAIN.get(data_type.name)
        if code is not None:
            return Slot(code, 0, plain=True, variable=False, pack=_same, unpack=_same)
        if data_type.name == "string":
            return _variable(lambda value: value.encode(), lambda data: data.decode())  # type: ignore[attr-defined]
        if data_type.name == "binary":
            return _variable(_same, _same)
        raise TypeError(f"{data_type} cannot be the type of a column")
    if isinstance(data_type, ArrayType):
        return _array_slot(data_type)
    if isinstance(data_type, MapType):
        return _map_slot(data_type)
    return _struct_slot(data_type)


def _same(value: object) -> object:
    return value


def _variable(pack: Callable[[object], object], unpack: Callable[[object], object]) -> Slot:
    return Slot("I", 0, plain=False, variable=True, pack=pack, unpack=unpack)


def _decimal_slot(data_type: DecimalType) -> Slot:
    scale = data_type.scale

    def unscaled(value: object) -> int:
        assert isinstance(value, decimal.Decimal)
        return int(value.scaleb(scale, _EXACT))

    def scaled(value: int) -> decimal.Decimal:
        return decimal.Decimal(value).scaleb(-scale, _EXACT)

    if data_type.precision <= NARROW_DECIMAL:
        return Slot("q", 0, plain=False, variable=False, pack=unscaled, unpack=scaled)  # type: ignore[arg-type]
    return Slot(
        "16s",
        bytes(16),
        plain=False,
        variable=False,
        pack=lambda value: unscaled(value).to_bytes(16, "little", signed=True),
        unpack=lambda raw: scaled(int.from_bytes(raw, "little", signed=True)),  # type: ignore[arg-type]
    )


class _Member:
    """Reads and writes one member of a nested value."""

    def __init__(self, data_type: DataType) -> None:
        self.slot = slot_of(data_type)
        self.fixed = None if self.slot.variable else struct.Struct("<" + self.slot.code)
        self._plain = struct.Struct("<B" + self.slot.code).pack if self.slot.plain else None

    def write_all(self, values: list[object]) -> bytes:
        """The members one after the other."""
        if self._plain is None or None in values:
            return b"".join(map(self.write, values))
        return b"".join(map(self._plain, repeat(1), values))

    def write(self, value: object) -> bytes:
        if value is None:
            return b"\x00"
        packed = self.slot.pack(value)
        if self.fixed is not None:
            return b"\x01" + self.fixed.pack(packed)
        assert isinstance(packed, bytes)
        return b"\x01" + _LENGTH.pack(len(packed)) + packed

    def read(self, data: bytes, at: int) -> tuple[object, int]:
        present, at = data[at], at + 1
        if not present:
            return None, at
        if self.fixed is not None:
            return self.slot.unpack(self.fixed.unpack_from(data, at)[0]), at + self.fixed.size
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        return self.slot.unpack(data[at : at + length]), at + length


def _array_slot(data_type: ArrayType) -> Slot:
    element = _Member(data_type.element)

    def pack(value: object) -> bytes:
        assert isinstance(value, list)
        return _LENGTH.pack(len(value)) + element.write_all(value)

    def unpack(data: object) -> list[object]:
        assert isinstance(data, bytes)
        return list(_read(data, repeat(element, _count(data)), _LENGTH.size))

    return _variable(pack, unpack)


def _map_slot(data_type: MapType) -> Slot:
    key, member = _Member(data_type.key), _Member(data_type.value)

    def pack(value: object) -> bytes:
        assert isinstance(value, dict)
        return _LENGTH.pack(len(value)) + b"".join(key.write(k) + member.write(v) for k, v in value.items())

    def unpack(data: object) -> dict[object, object]:
        assert isinstance(data, bytes)
        flat = list(_read(data, chain.from_iterable(repeat((key, member), _count(data))), _LENGTH.size))
        return dict(zip(flat[::2], flat[1::2], strict=True))

    return _variable(pack, unpack)


def _struct_slot(data_type: StructType) -> Slot:
    members = [_Member(field.type) for field in data_type.fields]

    def pack(value: object) -> bytes:
        assert isinstance(value, tuple)
        return b"".join(member.write(v) for member, v in zip(members, value, strict=True))

    def unpack(data: object) -> tuple[object, ...]:
        assert isinstance(data, bytes)
        return tuple(_read(data, members, 0))

    return _variable(pack, unpack)


def _count(data: bytes) -> int:
    """How many elements an array or a map says that it has: nothing is set aside for them before they are there."""
    if len(data) < _LENGTH.size:
        raise ValueError("a nested value is cut short")
    (count,) = _LENGTH.unpack_from(data)
    return int(count)


def _read(data: bytes, members: Iterable[_Member], at: int) -> Iterable[object]:
    for member in members:
        try:
            value, at = member.read(data, at)
        except (IndexError, struct.error) as error:
            raise ValueError("a nested value is cut short") from error
        yield value
