"""The keys of one batch, each encoded once and then referred to by a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Schema
from vsc.plan.types import DataType
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec

__all__ = ["KeySpace", "KeySpaces", "ranks"]


def ranks(keys: pa.Array) -> Int64s:
    """The place of each key in the order of all of them."""
    places = np.empty(len(keys), dtype=np.int64)
    places[pc.sort_indices(keys).to_numpy()] = np.arange(len(keys))
    return places


class KeySpace:
    """Keys of the same types. Numbers are never withdrawn, so `keys` only grows while a batch is processed.

    Of a stream, they may be those of records that have no key (see `KeyCodec.encode_columns`): nothing is stored under
    them.
    """

    __slots__ = ("_numbers", "codec", "keys")

    def __init__(self, codec: KeyCodec) -> None:
        self.codec = codec
        self.keys: list[bytes] = []
        self._numbers: dict[bytes, int] | None = None

    def columns(self, columns: Sequence[pa.Array], rows: int) -> Int64s:
        """The numbers of the keys in key columns of `rows` rows."""
        if not columns:
            return np.full(rows, self.encoded([b""])[0], dtype=np.int64)
        distinct, index = self.codec.encode_columns(columns, keyless=True)
        if not self.keys:
            self.keys, self._numbers = list(distinct), None
            return index
        return self.encoded(distinct)[index]

    def encoded(self, keys: Iterable[bytes]) -> Int64s:
        """The numbers of encoded keys."""
        if self._numbers is None:
            self._numbers = {key: number for number, key in enumerate(self.keys)}
        numbers = self._numbers
        found = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) > len(self.keys):
            self.keys.extend(list(numbers)[len(self.keys) :])
        return np.array(found, dtype=np.int64)


class KeySpaces:
    """The key spaces of a batch: one for each list of key types."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[DataType, ...], KeySpace] = {}

    def of(self, schema: Schema) -> KeySpace:
        """The space of the keys of records of `schema`."""
        types = tuple(c.type for c in schema.key)
        if types not in self._found:
            self._found[types] = KeySpace(KeyCodec(list(types)))
        return self._found[types]
