"""Change events in JSON, as Debezium writes them: the rows after the changes, and what a schema says of their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from vsc.inspect.documents import Documents
from vsc.inspect.model import DataColumn, DataFile, Headers, Sample
from vsc.plan.types import DATE, TIMESTAMP, DataType, DecimalType

__all__ = ["ChangeEvents", "are_changes"]

_LOOKED = 20
_MOST_DIGITS = 38
_DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_TIMES = {
    "io.debezium.time.Timestamp": "ms", "io.debezium.time.MicroTimestamp": "us", "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Timestamp": "ms",
}  # fmt: skip
"""The names in an event's schema of numbers that are times, with their units; other values are what they look like."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def are_changes(file: DataFile) -> bool:
    """Whether the first lines of a JSON file are change events with the time of their change."""
    events = [_event(row) for _, rows in Documents().documents(Sample((file,), _LOOKED, False)) for row in rows]
    return bool(events) and all(_is_change(event) for event in events)


def _event(row: dict[str, Any]) -> Any:
    return row["payload"] if {"schema", "payload"} <= row.keys() else row


def _is_change(event: Any) -> bool:
    source = event.get("source") if isinstance(event, dict) else None
    return (
        isinstance(source, dict) and isinstance(source.get("ts_ms"), int) and {"op", "before", "after"} <= event.keys()
    )


class ChangeEvents(Documents):
    """Reads change events in JSON: the rows after the changes, with types from the events' schema if they have one."""

    has_tombstones = True

    def __init__(self) -> None:
        super().__init__()
        self._types: dict[str, tuple[DataType, str]] = {}
        self._schema: Any = None

    def headers(self, sample: Sample) -> Headers:
        """The columns of the rows."""
        found = super().headers(sample)
        columns = tuple(map(self._declared, found.columns))
        notes = () if self._schema else (
            "the events have no schema: what could be decimals in base64, or times as numbers, is declared as text and "
            "numbers. As decimals and timestamps they need the options `decimals` and `times`",
        )  # fmt: skip
        return replace(found, columns=columns, notes=(*found.notes, *notes))

    def _declared(self, column: DataColumn) -> DataColumn:
        known = self._types.get(column.name)
        return column if known is None else replace(column, type=known[0], patterns=(), local=False)

    def _column(self, values: list[Any], column: DataColumn) -> pa.Array:
        known = self._types.get(column.name)
        return super()._column(values, column) if known is None else _typed(values, *known)

    def row(self, value: Any) -> dict[str, Any] | None:
        """The row after a change; none for deletions, and for tombstones, which follow them."""
        event = super().row(value)
        if event is None:
            return None
        if isinstance(schema := event.get("schema"), dict) and schema != self._schema:
            self._schema = schema
            self._types |= dict(_types_in(schema))
        payload = _event(event)
        after = payload.get("after") if isinstance(payload, dict) else None
        return after if isinstance(after, dict) else None


def _types_in(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[DataType, str]]]:
    """The columns whose types the schema says, with the unit of times."""
    rows = (part for part in schema.get("fields", ()) if part.get("field") in ("before", "after"))
    for field in (field for row in rows for field in row.get("fields", ())):
        name, meaning, given = field.get("field"), field.get("name"), field.get("parameters")
        if meaning == _DECIMAL:
            digits = int(given.get("connect.decimal.precision", _MOST_DIGITS))
            yield name, (DecimalType(digits, int(given["scale"])), "")
        elif meaning in _DAYS:
            yield name, (DATE, "")
        elif meaning in _TIMES:
            yield name, (TIMESTAMP, _TIMES[meaning])


def _typed(values: list[Any], type: DataType, unit: str) -> pa.Array:
    """Numbers as dates and times; of decimals, only which are null matters here."""
    if type == DATE:
        return pa.array(values, pa.int32()).cast(pa.date32())
    if type == TIMESTAMP:
        return pa.array(values, pa.timestamp(unit, "UTC")).cast(pa.timestamp("us", "UTC"), safe=False)
    return pa.array([None if value is None else True for value in values], pa.bool_())
