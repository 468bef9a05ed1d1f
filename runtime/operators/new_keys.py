"""The keys under which a table's rows leave it: for a group (`group_changes`), for another table (`subscribe`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import chosen, stacked
from vsc.runtime.records import Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["NewKeys"]


@dataclass(frozen=True, slots=True)
class NewKeys:
    """The key of each row. Where `there` is False no row exists, or it goes nowhere."""

    there: Mask
    columns: tuple[pa.Array, ...]

    def nowhere(self) -> NewKeys:
        """As many keys, none of them there."""
        return NewKeys(np.zeros(len(self.there), dtype=np.bool_), self.columns)

    def same(self, other: NewKeys, codec: KeyCodec) -> Mask:
        """Where both are there and equal."""
        both = self.there & other.there
        same = np.zeros(len(both), dtype=np.bool_)
        if both.any():
            columns = stacked(chosen(self.columns, both), chosen(other.columns, both))
            _, numbers = codec.encode_columns(columns, keyless=True)
            half = len(numbers) // 2
            same[both] = numbers[:half] == numbers[half:]
        return same
