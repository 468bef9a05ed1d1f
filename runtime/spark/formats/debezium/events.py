"""One change event of Debezium, with or without its schema: which rows of the table it writes or deletes."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["BadEvent", "Change", "Event", "event_of", "fields_of", "rows_in"]

_UNAVAILABLE = "__debezium_unavailable_value"
_SIGNS = (_UNAVAILABLE, base64.b64encode(_UNAVAILABLE.encode()).decode())
"""What stands for a long value that PostgreSQL has not sent, as it has not changed."""
_WRITES = ("c", "r", "u")
_OPERATIONS = {"t": "it empties the whole table (op 't')", "m": "it is a message, not a change of a row (op 'm')"}

Row = Mapping[str, Any]


class BadEvent(ValueError):
    """Why no rows can be made of an event."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row that is written, or, if `deleted`, of which only the key counts."""

    row: Row
    deleted: bool


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a row at `time`, in ms: the row `before` it, if that is known, and `after` it, if there is one."""

    time: int
    before: Row | None
    after: Row | None

    def value(self, name: str) -> Any:
        """A column of the row after the change; what was not sent, as it is, is that of the row before. BadEvent."""
        assert self.after is not None
        value = self.after.get(name)
        if not _is_unavailable(value):
            return value
        before = None if self.before is None else self.before.get(name)
        if before is None or _is_unavailable(before):
            raise BadEvent(
                f"column '{name}' has not changed, and PostgreSQL did not send it (it does with REPLICA IDENTITY FULL)"
            )
        return before


def event_of(value: Any) -> tuple[Event | None, Any]:
    """The event of a JSON value, None for a tombstone, which only tells Kafka to forget a key; and its schema, if it is
    there. BadEvent for anything else."""
    schema = None
    if isinstance(value, dict) and value.keys() >= {"schema", "payload"}:
        schema, value = value["schema"], value["payload"]
    if value is None:
        return None, schema
    if not isinstance(value, dict) or "op" not in value:
        raise BadEvent("it has no `op`: it is not a change event of Debezium")
    return Event(_time(value), *_rows(value)), schema


def _rows(event: Row) -> tuple[Row | None, Row | None]:
    op, before = event["op"], event.get("before")
    if op in _OPERATIONS:
        raise BadEvent(_OPERATIONS[op])
    if before is not None and not isinstance(before, dict):
        raise BadEvent("its `before` is not an object")
    if op == "d":
        if before is None:
            raise BadEvent("it is a deletion without `before`: which row is gone?")
        return before, None
    if op not in _WRITES:
        raise BadEvent(f"its `op` is {op!r}, none of c, r, u, d")
    if not isinstance(after := event.get("after"), dict):
        raise BadEvent("its `after` is not an object")
    return before if op == "u" else None, after


def _time(event: Row) -> int:
    source = event.get("source")
    time = source.get("ts_ms") if isinstance(source, dict) else None
    if not isinstance(time, int) or isinstance(time, bool):
        raise BadEvent("it has no `source.ts_ms`, the time of its change")
    return time


def fields_of(schema: Any) -> dict[str, Any]:
    """The schemas of a row's columns, by name; none if the schema does not have them."""
    for part in _fields(schema):
        if part.get("field") in ("before", "after"):
            return {field["field"]: field for field in _fields(part) if "field" in field}
    return {}


def _fields(schema: Any) -> Iterator[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return (field for field in fields or () if isinstance(field, dict))


def rows_in(value: Row) -> Iterator[Row]:
    """The rows, before and after, in a value that may be an event."""
    event = value.get("payload", value)
    if isinstance(event, dict):
        yield from (row for name in ("before", "after") if isinstance(row := event.get(name), dict))


def _is_unavailable(value: Any) -> bool:
    if isinstance(value, str):
        return value in _SIGNS
    return isinstance(value, list | dict) and any(sign in value for sign in _SIGNS)
