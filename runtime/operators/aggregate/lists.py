"""Changing lists with all of their states, as a column of arrays.

A state of a list is a stretch of one long array of numbers, `(begin, length)`. Appending to the list at the array's end
copies nothing; any other change copies the list. What the numbers mean is up to the caller.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from vsc.runtime.records import Int64s
from vsc.runtime.state.versioned_columns import spread

__all__ = ["Lists", "Stretch"]

Stretch = tuple[int, int]


class Lists:
    """Lists of numbers."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = array("q")

    def of(self, numbers: Iterable[int]) -> Stretch:
        """A list of these numbers."""
        begin = len(self._numbers)
        self._numbers.extend(numbers)
        return begin, len(self._numbers) - begin

    def appended(self, state: Stretch, number: int) -> Stretch:
        """The list with `number` at its end."""
        begin, length = state
        if begin + length != len(self._numbers):
            begin, length = self.of(self._numbers[begin : begin + length])
        self._numbers.append(number)
        return begin, length + 1

    def inserted(self, state: Stretch, at: int, number: int) -> Stretch:
        """The list with `number` before the element `at`."""
        begin, length = state
        if at == length:
            return self.appended(state, number)
        numbers = self._numbers[begin : begin + length]
        numbers.insert(at, number)
        return self.of(numbers)

    def without(self, state: Stretch, at: int) -> Stretch:
        """The list without the element `at`."""
        begin, length = state
        if at == length - 1:
            return begin, at
        numbers = self._numbers[begin : begin + length]
        del numbers[at]
        return self.of(numbers)

    def column(self, begin: Int64s, length: Int64s, values: pa.Array) -> pa.ListArray:
        """States as a column of arrays, with the `values` at the numbers."""
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
        numbers = np.frombuffer(self._numbers, np.int64)[spread(begin, length)]
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(numbers)))
