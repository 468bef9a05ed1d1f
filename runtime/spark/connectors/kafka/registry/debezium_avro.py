"""Change events of Debezium in Avro, as the JSON that Debezium writes elsewhere: what reads that, reads them.

Kafka Connect's converter says in Avro what it says in the schema of a JSON event: `connect.name`, or a logical type.
Not for what becomes of an event: that is `vsc.runtime.spark.formats.debezium`.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import expand_schema

from vsc.plan.nodes import Column
from vsc.runtime.spark.connectors.kafka.avro_schema import branches

__all__ = ["Events", "envelope_misfit", "events", "row_fields"]

_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data", "io.debezium.time"
_NAMES = {
    "decimal": f"{_CONNECT}.Decimal", "date": f"{_CONNECT}.Date", "time-millis": f"{_CONNECT}.Time",
    "time-micros": f"{_DEBEZIUM}.MicroTime", "timestamp-millis": f"{_CONNECT}.Timestamp",
    "timestamp-micros": f"{_DEBEZIUM}.MicroTimestamp", "timestamp-nanos": f"{_DEBEZIUM}.NanoTimestamp",
    "local-timestamp-millis": f"{_CONNECT}.Timestamp", "local-timestamp-micros": f"{_DEBEZIUM}.MicroTimestamp",
}  # fmt: skip
"""What Connect calls Avro's logical types, for a schema that does not say so itself."""
_ROWS = ("before", "after")


@dataclass(frozen=True)
class Events:
    """How events of one writer's schema become JSON. `schema`: what Connect would write of it; `added`: what columns
    hold that it lacks; `problem`: why its events cannot be read."""

    parsed: Any
    schema: Any
    added: Mapping[str, Any]
    problem: str | None

    def texts(self, bodies: pa.Array) -> tuple[pa.Array, list[str | None]]:
        """The payloads of events as JSON, and why one cannot be read."""
        found = [self._text(body) for body in bodies.to_pylist()]
        return pa.array([text for text, _ in found], pa.binary()), [problem for _, problem in found]

    def _text(self, body: bytes) -> tuple[bytes, str | None]:
        if self.problem is not None:
            return b"null", self.problem
        stream = io.BytesIO(body)
        try:
            event: Any = schemaless_reader(stream, self.parsed, None)
            if stream.tell() != len(body):
                raise ValueError
        except Exception:  # fastavro raises anything on bytes that are not Avro
            return b"null", "it ends too early, or was written with another schema"
        for name in _ROWS:
            if isinstance(row := event.get(name), dict):
                event[name] = {**self.added, **row}
        return json.dumps(_plain(event)).encode(), None


@lru_cache(maxsize=256)
def events(writer: str, reader: str | None, columns: tuple[Column, ...]) -> Events:
    """For events of the schema `writer`. A column that it lacks holds the default that the schema `reader` gives it."""
    schema: Any = expand_schema(json.loads(writer))
    problem = envelope_misfit(writer)
    fields = dict[str, Any]() if problem is not None else _columns(schema)
    known = {} if reader is None or envelope_misfit(reader) is not None else _columns(expand_schema(json.loads(reader)))
    added = dict[str, Any]()
    for column in columns:
        field = known.get(column.name, {})
        if column.name not in fields and "default" in field:
            added[column.name] = _default(field)
            fields[column.name] = field
    problem = problem or _missing(fields, columns)
    listed = [{"field": name, **_connect(field["type"])} for name, field in fields.items()]
    of_event = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": listed}]}
    return Events(parse_schema(_bare(json.loads(writer))), of_event, added, problem)


def envelope_misfit(schema: str, columns: Sequence[Column] = ()) -> str | None:
    """Why a schema of Avro is not one of change events with these columns; None if it is."""
    found: Any = expand_schema(json.loads(schema))
    names = {field["name"] for field in found["fields"]} if _is_record(found) else set()
    if not names >= {"before", "after", "source", "op"}:
        return "it is none of change events of Debezium (before, after, source and op)"
    return _missing(_columns(found), columns)


def row_fields(schema: str) -> Mapping[str, Any]:
    """The fields of the rows in events of a schema, by their names."""
    return _columns(expand_schema(json.loads(schema)))


def _missing(fields: Mapping[str, Any], columns: Sequence[Column]) -> str | None:
    return next((f"its rows have no field '{column.name}'" for column in columns if column.name not in fields), None)


def _columns(envelope: Any) -> dict[str, Any]:
    """The fields of the rows in events, by their names."""
    after = next(field["type"] for field in envelope["fields"] if field["name"] == "after")
    records = [one for one in branches(after) if _is_record(one)]
    return {field["name"]: field for field in records[0]["fields"]} if len(records) == 1 else {}


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema["type"] == "record"


def _connect(schema: Any) -> dict[str, Any]:
    """What Connect says of values of a schema, as far as reading JSON depends on it."""
    found = branches(schema)
    if len(found) != 1:
        return {"type": "union"}
    one = found[0]
    if not isinstance(one, dict):
        return {"type": one}
    logical = one.get("logicalType")
    name = one.get("connect.name", _NAMES.get(str(logical)))
    about = {"type": "string" if one["type"] == "enum" else one["type"], **({} if name is None else {"name": name})}
    if name == _NAMES["decimal"]:
        about["parameters"] = {"scale": one.get("scale", 0)}
    if one["type"] == "array":
        about["items"] = _connect(one["items"])
    return about


def _bare(schema: Any) -> Any:
    """A schema without logical types: values are what is written."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: value for name, value in schema.items() if name != "logicalType"}
    for member in ("type", "items", "values"):
        if member in found:
            found[member] = _bare(found[member])
    if "fields" in found:
        found["fields"] = [{**field, "type": _bare(field["type"])} for field in found["fields"]]
    return found


def _plain(value: Any) -> Any:
    """A value as Connect writes it in JSON."""
    match value:
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _default(field: Any) -> Any:
    default, found = field["default"], branches(field["type"])
    kind = found[0]["type"] if found and isinstance(found[0], dict) else found[0] if found else None
    return default.encode("latin-1") if isinstance(default, str) and kind in ("bytes", "fixed") else default
