"""What is kept of a record that may be corrected, as columns of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Column, Correct, Schema
from vsc.plan.types import BOOLEAN, INT
from vsc.runtime.expressions import columns_of
from vsc.runtime.records import Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type

__all__ = ["Kept", "Layout", "kept_columns"]


def kept_columns(operation: Correct, left: Schema) -> tuple[Column, ...]:
    """Whether a row is out, how many results went out, the key of the results, what the items read, the last result."""
    read = {column.name for item in operation.items for column in columns_of(item.expr) if not column.input}
    return (
        Column("sent", BOOLEAN),
        Column("revision", INT),
        *(Column(f"by.{item.name}", item.expr.type) for item in operation.by),
        *(Column(f"left.{column.name}", column.type) for column in left.value if column.name in read),
        *(Column(item.name, item.expr.type) for item in operation.items),
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of some records. `results` are null where no row is out (`sent`)."""

    sent: Mask
    revision: npt.NDArray[np.int32]
    by: tuple[pa.Array, ...]
    left: tuple[pa.Array, ...]
    results: tuple[pa.Array, ...]


class Layout:
    """The rows of kept records. `places`: of the kept columns among the value columns of the left input; `names`: the
    keys of results."""

    def __init__(self, operation: Correct, left: Schema) -> None:
        columns = kept_columns(operation, left)
        names = {column.name for column in columns[2 + len(operation.by) : len(columns) - len(operation.items)]}
        self.places = [place for place, column in enumerate(left.value) if f"left.{column.name}" in names]
        self._ends = 2, 2 + len(operation.by), 2 + len(operation.by) + len(self.places)
        self._rows = RowCodec([column.type for column in columns])
        self._results = RowCodec([item.expr.type for item in operation.items])
        self._value = left.value
        self.names = KeyCodec([item.expr.type for item in operation.by])

    def kept_of(self, values: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
        """The columns that are kept, of the left input's value columns."""
        return tuple(values[place] for place in self.places)

    def no_results(self, count: int) -> tuple[pa.Array, ...]:
        """The columns of results that there are not."""
        return tuple(pa.nulls(count, arrow_type(one)) for one in self._results.types)

    def whole(self, left: Sequence[pa.Array], count: int) -> list[pa.Array]:
        """The left input's value columns, null where they are not kept."""
        found = [pa.nulls(count, arrow_type(column.type)) for column in self._value]
        for place, column in zip(self.places, left, strict=True):
            found[place] = column
        return found

    def encoded(self, kept: Kept) -> pa.BinaryArray:
        """The rows."""
        columns = (pa.array(kept.sent), pa.array(kept.revision), *kept.by, *kept.left, *kept.results)
        return self._rows.encode_columns(columns, len(kept.sent))

    def decoded(self, rows: pa.BinaryArray) -> Kept:
        """What these rows hold."""
        columns = self._rows.decode_columns(rows)
        one, two, three = self._ends
        sent, revision = (column.to_numpy(zero_copy_only=False) for column in columns[:one])
        return Kept(
            sent.astype(np.bool_), revision.astype(np.int32), columns[one:two], columns[two:three], columns[three:]
        )

    def results(self, columns: Sequence[pa.Array], count: int) -> pa.BinaryArray:
        """Results as bytes, which are equal if and only if the results are."""
        return self._results.encode_columns(columns, count)
