"""What the values of a JSON column have in common: a type that reads all of them without loss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from vsc.inspect.model import DataColumn
from vsc.inspect.texts import Numbers, Texts
from vsc.plan.types import BIGINT, BOOLEAN, DOUBLE, STRING, ArrayType, DataType, DecimalType, Field, MapType, StructType

__all__ = ["Fraction", "Shape"]

_EXACT = 2**53
_MAP_FIELDS = 20
"""Objects with more names than this are a map, if most objects lack most of the names."""


class Fraction(str):
    """A JSON number with a point or an exponent, as it was written."""

    __slots__ = ()


class Shape:
    """The values of one place in a document, over all documents seen."""

    def __init__(self) -> None:
        self.nulls = self.bools = self.objects = self.lists = 0
        self.integers = self.fractions = self.strings = 0
        self.low = self.high = 0
        self.numbers, self.texts = Numbers(), Texts()
        self.fields: dict[str, Shape] = {}
        self.elements: Shape | None = None

    @property
    def values(self) -> int:
        """How many non-null values it has seen."""
        return self.bools + self.integers + self.fractions + self.strings + self.objects + self.lists

    def see(self, values: Sequence[Any]) -> None:
        """Takes in values from `json.loads`, with `Fraction` for numbers with a point or an exponent."""
        kinds: dict[type, list[Any]] = defaultdict(list)
        for value in values:
            kinds[type(value)].append(value)
        self.nulls += len(kinds.get(type(None), ()))
        self.bools += len(kinds.get(bool, ()))
        if integers := kinds.get(int):
            self.integers += len(integers)
            self.low, self.high = min(self.low, *integers), max(self.high, *integers)
        if fractions := kinds.get(Fraction):
            self.fractions += len(fractions)
            self.numbers.see(pa.array([str(f) for f in fractions], pa.string()))
        if texts := kinds.get(str):
            self.strings += len(texts)
            self.texts.see(pa.array(texts, pa.string()))
        if lists := kinds.get(list):
            self.lists += len(lists)
            self.elements = self.elements or Shape()
            self.elements.see([item for one in lists for item in one])
        if objects := kinds.get(dict):
            self._see_objects(objects)

    def _see_objects(self, objects: Sequence[dict[str, Any]]) -> None:
        self.objects += len(objects)
        found: dict[str, list[Any]] = defaultdict(list)
        for one in objects:
            for name, value in one.items():
                found[name].append(value)
        for name, values in found.items():
            self.fields.setdefault(name, Shape()).see(values)

    def column(self, name: str) -> DataColumn:
        """The column that holds these values."""
        kinds = [self.bools, self.integers + self.fractions, self.strings, self.lists, self.objects]
        if sum(count > 0 for count in kinds) > 1:
            words = ("truth values", "numbers", "texts", "arrays", "objects")
            mixed = " and ".join(word for word, count in zip(words, kinds, strict=True) if count)
            return DataColumn(name, STRING, (f"{mixed} are mixed: all are read as text",))
        if self.strings:
            return self.texts.column(name, cells=False)
        if self.bools:
            return DataColumn(name, BOOLEAN)
        if self.integers or self.fractions:
            return DataColumn(name, *self._number())
        if self.lists:
            return DataColumn(name, ArrayType((self.elements or Shape()).column("element").type))
        if self.objects:
            return DataColumn(name, *self._object())
        return DataColumn(name, STRING, ("without a value",))

    def _number(self) -> tuple[DataType, tuple[str, ...]]:
        if not self.fractions:
            if self.low >= -(2**63) and self.high < 2**63:
                return BIGINT, ()
            digits = len(str(max(-self.low, self.high)))
            if digits <= 38:
                return DecimalType(digits, 0), ()
            return STRING, ("numbers with too many digits for a number type",)
        type, notes = self.numbers.type()
        largest = max(-self.low, self.high)
        if type == DOUBLE and largest > _EXACT:
            return STRING, ("integers too large for a double beside fractions: read as text",)
        if isinstance(type, DecimalType):
            whole = max(type.precision - type.scale, len(str(largest)))
            type = DecimalType(min(38, whole + type.scale), type.scale)
        return type, () if self.integers else notes

    def _object(self) -> tuple[DataType, tuple[str, ...]]:
        if not self.fields:
            return STRING, ("empty objects, read as text",)
        members = [(name, field.column(name).type) for name, field in self.fields.items()]
        types = {type for _, type in members}
        seen = sum(field.nulls + field.values for field in self.fields.values())
        if len(members) > _MAP_FIELDS and len(types) == 1 and seen * 2 < len(members) * self.objects:
            return MapType(STRING, members[0][1]), ()
        folded: dict[str, tuple[str, DataType]] = {}
        for name, type in members:
            folded.setdefault(name.lower(), (name, type))
        return StructType(tuple(Field(name, type) for name, type in folded.values())), ()
