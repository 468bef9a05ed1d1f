"""Look-ups into a table by key, also into one without a store: through its filters and maps to the store behind them.

A predicate is applied to the version that the store finds; if it fails there is no row, and no older version is tried
(Kafka's value getters do the same). Such a row counts as a tombstone: that is what the filter made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.oracle.records.expressions import Row, Values
from tests.oracle.records.suppress import Held
from tests.oracle.records.tables import Found
from vsc.runtime.metrics import Missed

__all__ = ["Getter", "filtered", "mapped", "suppressed_getter"]

Getter = Callable[[Row, "int | None"], "Found | Missed"]
"""Looks up (key columns, as of or None for the newest); raises NodeFailure if an expression fails."""


def filtered(parent: Getter, holds: Callable[..., bool]) -> Getter:
    """The getter of a filter without a store."""

    def get(key: Row, as_of: int | None) -> Found | Missed:
        found = parent(key, as_of)
        if isinstance(found, Missed) or holds(key + found[0], None, found[1], None):
            return found
        return Missed.TOMBSTONE

    return get


def mapped(parent: Getter, values: Values) -> Getter:
    """The getter of a map without a store."""

    def get(key: Row, as_of: int | None) -> Found | Missed:
        found = parent(key, as_of)
        if isinstance(found, Missed):
            return found
        row, valid_from, valid_to = found
        return values(key + row, None, valid_from, None), valid_from, valid_to

    return get


_UNKNOWN = -1


def suppressed_getter(held: Mapping[Row, Held], parent: Getter) -> Getter:
    """The look-up into a table without store that a `suppress` makes: as if what is held back had not happened yet.

    Since when the row before has been valid is not known then: -1, as in Kafka Streams.
    """

    def get(key: Row, as_of: int | None) -> Found | Missed:
        waiting = held.get(key)
        if waiting is None:
            return parent(key, as_of)
        return Missed.NO_RECORD if waiting.before is None else (waiting.before, _UNKNOWN, None)

    return get
