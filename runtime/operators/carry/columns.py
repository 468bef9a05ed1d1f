"""Converts rows of old columns to new ones, by name: new columns are null, removed columns are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from vsc.changes.values import wider
from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType
from vsc.runtime.state.moving import Recode
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["Columns", "Unfitting"]

_EXACT = Context(prec=60)


class Unfitting(Exception):
    """The new columns cannot hold values of the old ones; the text says why."""


class Columns:
    """Converts `old` columns to `new` ones. Raises Unfitting if that is impossible."""

    def __init__(self, old: Sequence[Column], new: Sequence[Column]) -> None:
        self._old, self._new = [c.type for c in old], [c.type for c in new]
        places = {column.name: place for place, column in enumerate(old)}
        self._from = [places.get(column.name) for column in new]
        self._converted = [
            None if place is None else _conversion(column, old[place].type)
            for column, place in zip(new, self._from, strict=True)
        ]
        self.same = tuple(old) == tuple(new)

    @property
    def recode(self) -> Recode:
        """The function from an encoded row of the old columns to one of the new columns."""
        before, after = RowCodec(self._old), RowCodec(self._new)
        return lambda row: after.encode(self._row(before.decode(row)))

    def arrays(self, columns: Sequence[pa.Array], count: int) -> tuple[pa.Array, ...]:
        """The new columns of `count` rows, from their old ones."""
        return tuple(
            pa.nulls(count, arrow_type(type_)) if place is None
            else columns[place] if convert is None
            else to_array([_or_null(convert, v) for v in to_values(columns[place], self._old[place])], type_)
            for place, convert, type_ in zip(self._from, self._converted, self._new, strict=True)
        )  # fmt: skip

    def _row(self, row: Sequence[Any]) -> list[Any]:
        return [
            None if place is None else row[place] if convert is None else _or_null(convert, row[place])
            for place, convert in zip(self._from, self._converted, strict=True)
        ]


_Convert = Callable[[Any], Any]


def _or_null(convert: _Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _conversion(column: Column, was: DataType) -> _Convert | None:
    if was == column.type:
        return None
    if not wider(was, column.type):
        raise Unfitting(f"its column `{column.name}` was {was}, is {column.type}")
    return _converted(was, column.type)


def _converted(was: DataType, now: DataType) -> _Convert:
    """The conversion of internal values to a wider type."""
    if isinstance(was, ArrayType) and isinstance(now, ArrayType):
        element = _converted(was.element, now.element)
        return lambda values: [_or_null(element, value) for value in values]
    if isinstance(now, DecimalType):
        unit = Decimal(1).scaleb(-now.scale)
        return lambda value: Decimal(value).quantize(unit, context=_EXACT)
    if now == ScalarType("double"):
        return float
    return lambda value: value
