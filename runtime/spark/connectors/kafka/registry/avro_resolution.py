"""Avro's schema resolution towards declared columns: what records of a writer's schema are read with.

A column stands in the writer's field of its name, or of an alias that the reader's schema gives it; a field that the
writer lacks has the reader's default, at any depth. Types are read as `avro_schema` says; so a field may be wider in
another version, or a union with null.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import expand_schema

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, Field, MapType, StructType
from vsc.runtime.spark.connectors.kafka.avro import AvroForm, decoded
from vsc.runtime.spark.connectors.kafka.avro_schema import branches, is_record, misfit_of

__all__ = ["Resolution", "inlined", "listed", "resolution"]

Fill = Callable[[Any], Any]
"""Puts what the writer's schema lacks into a value that was read with it."""


@dataclass(frozen=True)
class Resolution:
    """How records of one writer's schema become columns; `problem`: why they cannot."""

    form: AvroForm
    fill: Fill | None
    problem: str | None

    def decoded(self, bodies: pa.Array) -> tuple[list[pa.Array], list[str | None]]:
        """The columns of payloads without their ids, and why one cannot be read."""
        if self.problem is not None:
            empty = decoded(self.form, pa.nulls(len(bodies), pa.binary()))[0]
            return empty, [self.problem] * len(bodies)
        return decoded(self.form, bodies, self.fill)


@lru_cache(maxsize=256)
def resolution(writer: str, reader: str | None, columns: tuple[Column, ...]) -> Resolution:
    """For records of the schema `writer`."""
    wanted = StructType(tuple(Field(column.name, column.type) for column in columns))
    schema, bare = _expanded(writer), len(columns) == 1 and not is_record(writer)
    effective, fill = schema, None
    if reader is not None and not bare and is_record(reader):
        effective, fill = _resolved(schema, _expanded(reader), wanted)
    return Resolution(AvroForm(writer, columns, bare, None), fill, misfit_of(effective, columns, "read"))


def _resolved(writer: Any, reader: Any, type: DataType) -> tuple[Any, Fill | None]:
    """The writer's schema with what it takes from the reader's, and what does so with values."""
    match type:
        case StructType(fields):
            ours, theirs = _one_record(writer), _one_record(reader)
            if ours is not None and theirs is not None:
                return _with_branch(writer, ours, *_record(ours, theirs, fields))
        case ArrayType(element):
            return _inside(writer, reader, "array", "items", element, lambda fill: lambda found: list(map(fill, found)))
        case MapType(_, value):
            return _inside(
                writer, reader, "map", "values", value,
                lambda fill: lambda found: {key: fill(one) for key, one in found.items()},
            )  # fmt: skip
    return writer, None


def _record(ours: Any, theirs: Any, fields: Sequence[Field]) -> tuple[Any, Fill | None]:
    has, given = {one["name"]: one for one in ours["fields"]}, {one["name"]: one for one in theirs["fields"]}
    changed, aliases, defaults = dict(has), dict[str, str](), dict[str, Any]()
    fills: dict[str, Fill] = {}
    for field in fields:
        reads = given.get(field.name)
        if reads is None:
            continue
        name = next((one for one in (field.name, *reads.get("aliases", ())) if one in has), None)
        if name is not None:
            resolved, fill = _resolved(has[name]["type"], reads["type"], field.type)
            changed[field.name] = {**has[name], "name": field.name, "type": resolved}
            aliases |= {field.name: name} if name != field.name else {}
            fills |= {field.name: fill} if fill is not None else {}
        elif "default" in reads:
            changed[field.name], defaults[field.name] = reads, _default(reads)
    if not aliases and not defaults and not fills:
        return ours, None

    def fill_record(found: Mapping[str, Any]) -> dict[str, Any]:
        row = {**defaults, **found, **{name: found[alias] for name, alias in aliases.items()}}
        return row | {name: None if row[name] is None else fill(row[name]) for name, fill in fills.items()}

    return {**ours, "fields": list(changed.values())}, fill_record


def _inside(
    writer: Any, reader: Any, kind: str, member: str, type: DataType, over: Callable[[Fill], Fill]
) -> tuple[Any, Fill | None]:
    """As `_resolved`, for what is inside of an array or a map."""
    ours, theirs = _only(writer, kind), _only(reader, kind)
    if ours is None or theirs is None:
        return writer, None
    resolved, fill = _resolved(ours[member], theirs[member], type)
    return _with_branch(
        writer, ours, {**ours, member: resolved},
        None if fill is None else over(lambda found: None if found is None else fill(found)),
    )  # fmt: skip


def _with_branch(writer: Any, old: Any, new: Any, fill: Fill | None) -> tuple[Any, Fill | None]:
    """The writer's schema with another branch. A union may also be null."""
    if fill is None:
        return writer, None
    if isinstance(writer, list):
        return [new if one is old else one for one in writer], lambda found: None if found is None else fill(found)
    return new, fill


def _one_record(schema: Any) -> Any | None:
    return _only(schema, "record")


def _only(schema: Any, kind: str) -> Any | None:
    """The only thing that a value may be, but null, if that is of a kind."""
    found = branches(schema)
    return found[0] if len(found) == 1 and isinstance(found[0], dict) and found[0]["type"] == kind else None


def _default(field: Any) -> Any:
    """The default of a field as a value that is read: by way of the bytes, which know logical types."""
    default = field["default"]
    plain = default.encode("latin-1") if isinstance(default, str) and _is_bytes(field["type"]) else default
    schema, out = parse_schema({"type": "record", "name": "defaults", "fields": [field]}), io.BytesIO()
    schemaless_writer(out, schema, {field["name"]: plain})
    out.seek(0)
    found: Any = schemaless_reader(out, schema, None)
    return found[field["name"]]


def _is_bytes(schema: Any) -> bool:
    first = schema[0] if isinstance(schema, list) else schema
    kind = first["type"] if isinstance(first, dict) else first
    return kind in ("bytes", "fixed")


def _expanded(schema: str) -> Any:
    return expand_schema(json.loads(schema))


def inlined(schema: str, definitions: Sequence[str]) -> str:
    """A schema that writes out the named types in `definitions` where it first uses them; each definition may use the
    ones before it."""
    named: dict[str, Any] = {}
    for text in definitions:
        found = _with_types(json.loads(text), named, set())
        named |= {_full_name(found): found} if isinstance(found, dict) and "name" in found else {}
    return json.dumps(_with_types(json.loads(schema), named, set()))


def _with_types(schema: Any, named: Mapping[str, Any], seen: set[str]) -> Any:
    if isinstance(schema, str):
        if schema not in named or schema in seen:
            return schema
        return _with_types(named[schema], named, seen)
    if isinstance(schema, list):
        return [_with_types(one, named, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("record", "enum", "fixed", "error"):
        name = _full_name(schema)
        if name in seen and name in named:
            return name
        seen.add(name)
    found = dict(schema)
    if "fields" in found:
        found["fields"] = [{**one, "type": _with_types(one["type"], named, seen)} for one in found["fields"]]
    for member in ("items", "values", "type"):
        if member in found:
            found[member] = _with_types(found[member], named, seen)
    return found


def _full_name(schema: Any) -> str:
    name, space = schema["name"], schema.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"


def listed(schema: str) -> str:
    """The fields of a schema, for a message."""
    found = json.loads(schema)
    fields = found.get("fields") if isinstance(found, dict) else None
    if fields is None:
        return json.dumps(found)
    return "{" + ", ".join(f"{one['name']}: {json.dumps(one['type'])}" for one in fields) + "}"
