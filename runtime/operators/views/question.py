"""A store of a plan as its users see it, and a query of it, checked against what the store can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vsc.plan.nodes import Column
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.values import brief, from_python

__all__ = ["Question", "Status", "StoreInfo", "encoded_key", "question"]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store of a plan.

    `node` is the node in the plan that keeps it, `owner` the user's node that this belongs to. `key` and `value` are
    the columns of its rows; `extra` are further columns, each a bigint or null: times in ms, a number of rows.
    `partitioned` is the node by whose key its rows are spread. `replicated`: every partition has
    all rows (a global table). `canonical` is False for a table's further copies, in other stages that read it.
    """

    name: str
    node: str
    owner: str
    stage: int
    kind: str
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    extra: tuple[str, ...]
    prefix: bytes
    partitioned: str
    replicated: bool = False
    canonical: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The headers that users see: the columns, the status, `extra`.

        If one of the latter has the name of a column, it is called ``_vsc_...`` instead; no column may have such a
        name.
        """
        own = tuple(column.name for column in (*self.key, *self.value))
        taken = {name.lower() for name in own}
        beside = ("_status", *(f"_{name}" for name in self.extra))
        return (*own, *(f"_vsc{name}" if name in taken else name for name in beside))

    @property
    def is_table(self) -> bool:
        """Whether it is a table's own store."""
        return self.kind in ("versioned", "unversioned")

    @property
    def has_clock(self) -> bool:
        """Whether what it holds depends on stream time."""
        return self.kind not in ("unversioned", "groups", "subscriptions")


class Status(StrEnum):
    """What a row of an answer is."""

    VERSION = "version"
    """A version of a key in a versioned store."""
    TOMBSTONE = "tombstone"
    """The key was deleted at that time (in a suppress: it will be)."""
    NO_RECORD = "no_record"
    """The key has no row, or had none yet at that time."""
    OLDER_THAN_RETENTION = "older_than_retention"
    """The requested time is before stream time minus the history retention: the store does not answer for it."""
    ROW = "row"
    """The one row that an unversioned store, an aggregate or a subscription keeps."""
    OPEN = "open"
    """A window that still takes records."""
    CLOSED = "closed"
    """A window that takes no more records."""
    WAITING = "waiting"
    """A record or row that is held until stream time advances."""
    FAILED = "expression_failed"
    """A group whose result cannot be computed."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows of a store are wanted.

    `key` is an encoded key; without one all keys within ``low <= key < high`` are meant (`high` None: to the end).
    `as_of` asks for the rows valid at a time in ms; None: the newest. `history`: all versions that are valid at some
    time from `start` to `end`, both included; None: no bound.
    """

    key: bytes | None = None
    low: bytes = b""
    high: bytes | None = None
    as_of: int | None = None
    history: bool = False
    start: int | None = None
    end: int | None = None

    def wants(self, key: bytes) -> bool:
        """Whether a row with that encoded key is meant."""
        if self.key is not None:
            return key == self.key
        return self.low <= key and (self.high is None or key < self.high)


def question(
    store: StoreInfo,
    *,
    key: Mapping[str, Any] | None = None,
    from_key: Mapping[str, Any] | None = None,
    to_key: Mapping[str, Any] | None = None,
    as_of: int | None = None,
    history: bool = False,
    start: int | None = None,
    end: int | None = None,
) -> Question:
    """The question with these parts: keys by column, in users' values. Raises ConfigurationError if it has no answer.

    `from_key` and `to_key` may name leading key columns only; both are included.
    """
    for name, time in (("as_of", as_of), ("from_ts", start), ("to_ts", end)):
        if time is not None and type(time) is not int:
            raise ConfigurationError(f"`{name}` is a time in ms, not {brief(time)}", "give a whole number")
    if store.kind != "versioned" and (as_of is not None or history):
        raise ConfigurationError(
            f"'{store.name}' ({store.kind}) {'keeps no history' if history else 'cannot answer as of a time'}: "
            "it holds what is newest, without versions",
            "ask without times (get, scan), or ask a versioned store",
        )
    if start is not None and end is not None and start > end:
        raise ConfigurationError(f"there are no times from {start} to {end}", "make --from no later than --to")
    return Question(
        None if key is None else encoded_key(store, key, whole=True),
        b"" if from_key is None else encoded_key(store, from_key),
        None if to_key is None else prefix_end(encoded_key(store, to_key)),
        as_of, history, start, end,
    )  # fmt: skip


def encoded_key(store: StoreInfo, key: object, whole: bool = False) -> bytes:
    """The bytes of a key given by column; leading columns are enough unless the `whole` key is needed.

    Raises ConfigurationError if a column is missing, unknown or null, or a value is not of its type.
    """
    if not isinstance(key, Mapping):
        message = f"a key of '{store.name}' is a dict of its columns, not {brief(key)}"
        raise ConfigurationError(message, f"its key is {_signature(store)}")
    names = [c.name for c in store.key]
    unknown = next((name for name in key if name not in names), None)
    if unknown is not None:
        raise ConfigurationError(f"'{store.name}' has no key column '{unknown}'", f"its key is {_signature(store)}")
    given = [c for c in store.key if c.name in key]
    if not given or (whole and len(given) < len(names)) or given != list(store.key[: len(given)]):
        missing = next(name for name in names if name not in key)
        raise ConfigurationError(f"the key of '{store.name}' lacks '{missing}'", f"its key is {_signature(store)}")
    values = []
    for column in given:
        try:
            value = from_python(key[column.name], column.type)
        except ValueError as error:
            raise ConfigurationError(f"key column '{column.name}' of '{store.name}': {error}") from None
        if value is None:
            raise ConfigurationError(f"key column '{column.name}' of '{store.name}' is null: no row has such a key")
        values.append(value)
    return KeyCodec([c.type for c in given]).encode(values)


def _signature(store: StoreInfo) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in store.key) or "empty"
