"""Which columns could be the key: those that no two rows share, and those that say what a row is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.inspect.clock import words_of
from vsc.inspect.model import DataColumn
from vsc.plan.types import BIGINT, DATE, INT, SMALLINT, STRING, TINYINT, DataType

__all__ = ["Entity", "KeySearch", "Keys", "Repeats", "can_be_key", "liking"]

Hashes = npt.NDArray[np.uint64]

MOST_ROWS = 500_000
_MOST_COLUMNS = 12
_TRIED = 6
"""How many columns to try in combinations."""
_LARGEST = 3
_SHOWN = 3
_FEW_NULLS = 0.05
"""The share of rows without a value up to which a column may be a key: some rows of data are dirty."""
_NO_TIME = np.iinfo(np.int64).min
"""The time of a row that has none."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_TYPES = (STRING, TINYINT, SMALLINT, INT, BIGINT, DATE)
_NEARLY = 0.9
"""The share of different values from which a column is taken for a key with repeats (`KeySearch._nearly_unique`)."""
_SHARED = (0.01, 0.25)
"""The shares of rows with the key and the time of another that are few: the lower one comes first."""
_CHANGES = {"op", "operation", "change", "action"}
_NO_THING = _CHANGES | {"type", "kind", "event"}
"""Words of columns that say what has happened, not to what (`_is_no_thing`)."""
_NAMES = {"id", "uuid", "guid", "key", "code", "sku", "number", "no", "nr", "ref", "symbol", "isin"}


@dataclass(frozen=True, slots=True)
class Entity:
    """Columns that say what a row is about. `values`: their distinct values; `shared`: rows that share key and time."""

    columns: tuple[str, ...]
    values: int
    shared: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """A column that nearly is unique: in `rows` rows it has a value that came before. `span`: how far apart in ms the
    first and the last row of one value are at most; None without event times."""

    column: str
    rows: int
    span: int | None


@dataclass(frozen=True, slots=True)
class Keys:
    """Candidates for the key, likeliest first, found in `rows` rows, and the likeliest column that nearly is one."""

    rows: int
    unique: tuple[tuple[str, ...], ...]
    entities: tuple[Entity, ...]
    repeats: Repeats | None = None


def can_be_key(type: DataType) -> bool:
    """Whether columns of this type are considered."""
    return type in _TYPES


class KeySearch:
    """Takes in rows; keeps a hash of each cell, up to a number of rows."""

    def __init__(self, columns: Sequence[DataColumn]) -> None:
        chosen = sorted((c for c in columns if can_be_key(c.type)), key=liking)[:_MOST_COLUMNS]
        self.names = [column.name for column in chosen]
        self.likings = {column.name: liking(column) for column in chosen}
        self.hashes: dict[str, list[Hashes]] = {name: [] for name in self.names}
        self.nulls: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in self.names}
        self.times: list[Hashes] = []
        self.rows = 0

    def see(self, rows: Mapping[str, pa.Array], count: int, times: npt.NDArray[np.int64] | None) -> None:
        """Takes in the next `count` rows; a column that is not in `rows` is null."""
        if self.rows >= MOST_ROWS:
            return
        self.rows += count
        for name in self.names:
            column = rows.get(name)
            null = np.ones(count, np.bool_) if column is None else column.is_null().to_numpy(zero_copy_only=False)
            self.nulls[name].append(null)
            self.hashes[name].append(np.zeros(count, np.uint64) if column is None else _hashes(column))
        if times is not None:
            self.times.append(times.view(np.uint64))

    def found(self, event_time: str | None) -> Keys:
        """The candidates. None of them contains the column `event_time`, or one of which many rows have no value: a run
        drops rows without a key. Each null counts as a value of its own."""
        nulls = {name: np.concatenate(parts) for name, parts in self.nulls.items() if parts}
        few = [name for name, null in nulls.items() if np.count_nonzero(null) <= _FEW_NULLS * self.rows]
        whole = {
            name: _with_nulls(np.concatenate(self.hashes[name]), nulls[name])
            for name in sorted(few, key=lambda name: bool(nulls[name].any()))
            if name != event_time
        }
        distinct = {name: len(np.unique(hashes)) for name, hashes in whole.items()}
        unique: list[tuple[str, ...]] = [(name,) for name in whole if distinct[name] == self.rows]
        several = {
            name: whole[name] for name in whole if 1 + np.count_nonzero(nulls[name]) < distinct[name] < self.rows
        }
        if not unique:
            unique = list(_smallest(several, self.rows))
        times = np.concatenate(self.times) if self.times else None
        nearly = self._nearly_unique(whole, distinct, times)
        repeats = None
        if nearly is not None:
            repeats = Repeats(nearly, self.rows - distinct[nearly], _span(whole[nearly], times))
        entities = tuple(_entities(several, nulls, times, self.rows))
        return Keys(self.rows, tuple(unique[:_SHOWN]), entities, repeats)

    def _nearly_unique(
        self, whole: Mapping[str, Hashes], distinct: Mapping[str, int], times: Hashes | None
    ) -> str | None:
        """The likeliest column with few repeats. One that is not named like a key is taken for one if its repeats are
        of the whole row, the event time included."""
        few = [name for name in whole if max(2, _NEARLY * self.rows) <= distinct[name] < self.rows]
        if not few:
            return None
        different = None if times is None else len(np.unique(_mixed([*whole.values(), times])))
        return next((name for name in few if self.likings[name] == 0 or distinct[name] == different), None)


def _entities(
    columns: dict[str, Hashes], nulls: Mapping[str, npt.NDArray[np.bool_]], times: Hashes | None, rows: int
) -> list[Entity]:
    """The smallest combinations that, with the time, no two rows share; else those that few rows share, as in a history
    with corrections."""
    nearly: list[Entity] = []
    for size in range(1, _LARGEST + 1):
        of_size = []
        for names in combinations(list(columns)[:_TRIED], size):
            key = _mixed([columns[name] for name in names])
            values = len(np.unique(key))
            if values == rows or all(map(_is_no_thing, names)):
                continue
            shared = rows - len(np.unique(_mixed([key, times]))) if times is not None else 0
            keyless = np.count_nonzero(np.logical_or.reduce([nulls[name] for name in names]))
            of_size.append(Entity(names, values - int(keyless), shared))
        exact = [entity for entity in of_size if not entity.shared]
        if exact:
            return exact[:_SHOWN]
        nearly += of_size
    for most in _SHARED:
        if few := [entity for entity in nearly if entity.shared <= most * rows]:
            return sorted(few, key=lambda entity: (len(entity.columns), entity.shared))[:_SHOWN]
    return []


def _span(hashes: Hashes, times: Hashes | None) -> int | None:
    """How far apart the first and the last time of equal hashes are at most; rows without a time do not count."""
    if times is None:
        return None
    millis = times.view(np.int64)
    there = millis != _NO_TIME
    millis, hashes = millis[there], hashes[there]
    if not len(millis):
        return None
    order = np.lexsort((millis, hashes))
    millis, hashes = millis[order], hashes[order]
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    ends = np.append(starts[1:], len(millis)) - 1
    return int((millis[ends] - millis[starts]).max())


def _is_no_thing(name: str) -> bool:
    """Whether a column says what has happened, not to what: the `op` of a change event, an `event_type`."""
    words = words_of(name)
    return words <= _NO_THING and (bool(words & _CHANGES) or len(words) > 1)


def _smallest(columns: dict[str, Hashes], rows: int) -> Iterator[tuple[str, ...]]:
    """The smallest combinations of columns that no two rows share."""
    for size in range(2, _LARGEST + 1):
        found = False
        for names in combinations(list(columns)[:_TRIED], size):
            if len(np.unique(_mixed([columns[name] for name in names]))) == rows:
                found = True
                yield names
        if found:
            return


def _mixed(parts: list[Hashes]) -> Hashes:
    mixed = parts[0]
    for part in parts[1:]:
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX + part
    return mixed


def _with_nulls(hashes: Hashes, null: npt.NDArray[np.bool_]) -> Hashes:
    """The hashes of a column with one of its own for each null."""
    hashes[null] = (np.flatnonzero(null).astype(np.uint64) + np.uint64(1)) * _MIX
    return hashes


def _hashes(column: pa.Array) -> Hashes:
    """A number for each cell: the same for equal cells, and in practice only for these; 0 for null."""
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()
        known = np.array([hash(text) for text in encoded.dictionary.to_pylist()] or [0], np.int64)
        places = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        known = known[places]
        return np.asarray(known.view(np.uint64))
    if pa.types.is_date(column.type):
        column = column.view(pa.int32())
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64))


def liking(column: DataColumn) -> int:
    """The rank as a key: columns named like a key first, then texts, then numbers and dates."""
    words = words_of(column.name)
    if words & _NAMES or column.name.lower().endswith("id"):
        return 0
    return 1 if column.type == STRING else 2
