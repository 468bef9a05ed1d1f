"""Whether declared columns can be read from a schema of a registry, or written as it, and what both look like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from vsc.plan.nodes import Column
from vsc.runtime.spark.connectors.kafka.registry.schemas import WriterSchema

__all__ = ["declared", "listed", "misfit", "record_of"]

_LISTED = 600
Use = Literal["read", "write"]


def misfit(schema: WriterSchema, columns: Sequence[Column], use: Use, record: str | None = None) -> str | None:
    """Why the columns do not fit a schema, of Protobuf its message `record` or the first; None if they do."""
    if schema.kind == "avro":
        from vsc.runtime.spark.connectors.kafka import avro_schema  # needs fastavro

        return avro_schema.misfit(schema.text, columns, use)
    if schema.kind == "protobuf":
        from vsc.runtime.spark.connectors.kafka.registry import protobuf_reading, protobuf_writing

        if use == "read":
            return protobuf_reading.read_misfit(schema.text, columns, record)
        return protobuf_writing.write_misfit(schema.text, columns, record)
    return _json_misfit(json.loads(schema.text), columns, use)


def listed(schema: WriterSchema, record: str | None = None) -> str:
    """The fields of a schema, for a message."""
    if schema.kind == "protobuf":
        from vsc.runtime.spark.connectors.kafka.registry import protobuf_reading

        return _cut(protobuf_reading.listed(schema.text, record))
    if schema.kind == "avro":
        from vsc.runtime.spark.connectors.kafka.registry import avro_resolution

        return _cut(avro_resolution.listed(schema.text))
    return _cut(json.dumps(json.loads(schema.text)))


def record_of(schema: WriterSchema) -> str | None:
    """What a schema calls its records; of Protobuf, the first of its messages."""
    if schema.kind == "protobuf":
        from vsc.runtime.spark.connectors.kafka.registry import protobuf_reading

        message = protobuf_reading.message_named(schema.text, None)
        return None if message is None else str(message.full_name)
    if schema.kind == "json":
        title = json.loads(schema.text).get("title")
        return title if isinstance(title, str) else None
    found = json.loads(schema.text)
    if not isinstance(found, dict) or "name" not in found:
        return None
    name, space = found["name"], found.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"


def declared(columns: Sequence[Column]) -> str:
    """The columns as they are declared."""
    return "(" + ", ".join(f"{column.name} {column.type}" for column in columns) + ")"


def _cut(text: str) -> str:
    return text if len(text) <= _LISTED else text[: _LISTED - 3] + "..."


def _json_misfit(schema: Any, columns: Sequence[Column], use: Use) -> str | None:
    """JSON Schema says little of types; a member that an object cannot have is a column too many."""
    found = list(_objects(schema, schema, 0))
    if not found:
        return None
    members = {name for one in found for name in one["properties"]}
    missing = next((column.name for column in columns if column.name not in members), None)
    if missing is not None:
        return f"it has no property '{missing}'"
    given = {column.name for column in columns}
    needed = next((name for one in found for name in one.get("required", ()) if name not in given), None)
    return f"it requires a property '{needed}', and there is no column for it" if use == "write" and needed else None


def _objects(schema: Any, root: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The objects that a value may be, with their properties, as far as they stand in the schema itself."""
    if not isinstance(schema, dict) or depth > 20:
        return
    if isinstance(schema.get("properties"), dict):
        yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found = root
        for name in reference[2:].split("/"):
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        yield from _objects(found, root, depth + 1)
    for word in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(word, ()):
            yield from _objects(one, root, depth + 1)
