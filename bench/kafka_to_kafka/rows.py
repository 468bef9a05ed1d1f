"""The rows: a table's versions, a stream with event times spread over that history, and the expected results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["RETENTION_MS", "Amount", "Digest", "Payments", "Rates", "digest_of"]

Array = np.ndarray[Any, Any]

START = 1_700_000_000_000
_SPAN_MS = 100_000_000
"""The span of the table's history, a little more than a day."""
RETENTION_MS = 28 * 3_600_000
"""The retention of the table's history."""
GATE = 1_000


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of data: the table's keys and versions of each, the stream's warm-up rows and measured rows."""

    keys: int = 10_000
    versions: int = 20
    warm_up: int = 2_000_000
    measured: int = 1_000_000

    @property
    def rows(self) -> int:
        """All rows of the stream. The first `GATE` are later than all versions: their results show that the table is
        loaded."""
        return GATE + self.warm_up + self.measured

    def of_stream(self, warm_up: int, measured: int) -> Amount:
        """The same table with another amount of the stream."""
        return replace(self, warm_up=warm_up, measured=measured)


@dataclass(frozen=True, slots=True)
class Digest:
    """Identifies a set of results in any order: their number, and the sum of their hashes."""

    count: int
    total: int


@dataclass(frozen=True, slots=True)
class Rates:
    """The versions, in order of event time."""

    key: Array
    rate: Array
    at: Array

    @classmethod
    def of(cls, amount: Amount) -> Rates:
        """Spreads each key's versions over the whole history. No two versions have the same time."""
        rng = np.random.default_rng(1)
        count = amount.keys * amount.versions
        key = np.concatenate([rng.permutation(amount.keys) for _ in range(amount.versions)])
        return cls(key, rng.integers(1, 1_000_000, count), START + np.arange(count) * (_SPAN_MS // count))

    def values(self) -> list[str]:
        """The rows but for the key, as JSON."""
        return [f'{{"rate":{rate}}}' for rate in self.rate.tolist()]


@dataclass(frozen=True, slots=True)
class Payments:
    """The stream's rows."""

    key: Array
    id: Array
    amount: Array
    at: Array

    @classmethod
    def of(cls, amount: Amount) -> Payments:
        """The gate's rows, then those of the warm-up, then those that are measured."""
        rng = np.random.default_rng(2)
        at = START + rng.integers(0, _SPAN_MS, amount.rows)
        at[:GATE] = START + _SPAN_MS
        key, paid = rng.integers(0, amount.keys, amount.rows), rng.integers(1, 100_000, amount.rows)
        return cls(key, np.arange(amount.rows), paid, at)

    def part(self, begin: int, end: int) -> Payments:
        """The rows from `begin` to before `end`."""
        return Payments(self.key[begin:end], self.id[begin:end], self.amount[begin:end], self.at[begin:end])

    def values(self) -> list[str]:
        """The rows but for the key, as JSON."""
        return [f'{{"id":{i},"amount":{a}}}' for i, a in zip(self.id.tolist(), self.amount.tolist(), strict=True)]

    def expected(self, rates: Rates) -> Digest:
        """The digest of the results: each row with the newest version of its key at or before its time."""
        order = np.lexsort((rates.at, rates.key))
        span = _SPAN_MS + 1
        versions = rates.key[order] * span + (rates.at[order] - START)
        place = np.searchsorted(versions, self.key * span + (self.at - START), side="right") - 1
        found = (place >= 0) & (rates.key[order][place] == self.key)
        return _digest(self.id, self.amount, np.where(found, rates.rate[order][place], -1))


def digest_of(values: Iterable[bytes]) -> Digest:
    """The digest of results given as JSON. Members other than ``id``, ``amount`` and ``rate`` are ignored."""
    rows = [json.loads(value) for value in values]
    if not rows:
        return Digest(0, 0)
    rates = [-1 if row.get("rate") is None else row["rate"] for row in rows]
    return _digest(*(np.array(column) for column in ([r["id"] for r in rows], [r["amount"] for r in rows], rates)))


def _digest(ids: Array, amounts: Array, rates: Array) -> Digest:
    with np.errstate(over="ignore"):
        mixed = ids.astype(np.uint64)
        for column in (amounts, rates):
            mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return Digest(len(mixed), int(mixed.sum(dtype=np.uint64)))
