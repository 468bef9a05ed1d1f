"""Look-ups into a table by key, also into one without a store: through its filters and maps to the store behind them.

A predicate is applied to the version that the store finds; if it fails there is no row, and no older version is tried
(Kafka's value getters do the same). Such a row counts as a tombstone: that is what the filter made of it.
"""

from __future__ import annotations

from collections.abc import Callable

from vsc.runtime.metrics import Missed
from vsc.runtime.operators.evaluate import Row, Values
from vsc.runtime.operators.stores import Found

__all__ = ["Getter", "filtered", "mapped"]

Getter = Callable[[bytes, Row, "int | None"], "Found | Missed"]
"""Looks up (encoded key, key columns, as of or None for the newest); raises NodeFailure if an expression fails."""


def filtered(parent: Getter, holds: Callable[..., bool]) -> Getter:
    """The getter of a filter without a store."""

    def get(kb: bytes, key: Row, as_of: int | None) -> Found | Missed:
        found = parent(kb, key, as_of)
        if isinstance(found, Missed) or holds(key + found[0], None, found[1], None):
            return found
        return Missed.TOMBSTONE

    return get


def mapped(parent: Getter, values: Values) -> Getter:
    """The getter of a map without a store."""

    def get(kb: bytes, key: Row, as_of: int | None) -> Found | Missed:
        found = parent(kb, key, as_of)
        if isinstance(found, Missed):
            return found
        row, valid_from, valid_to = found
        return values(key + row, None, valid_from, None), valid_from, valid_to

    return get
