"""The schemas that a sink writes with: registered by it if it may (`register`), else the newest of their subjects.

Guarantees: nothing is registered before a run has claimed its checkpoint; a schema that the columns do not fit, or that
the registry does not take, is refused before anything is written. What a checkpoint has begun to write with stays, as
long as the columns fit it: an epoch that comes again writes the same bytes, and no restart needs the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vsc.runtime.errors import AvroSchemaError, SinkError
from vsc.runtime.spark.base.checksummed import damaged, read_checksummed, with_checksum
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part
from vsc.runtime.spark.connectors.kafka.registry.client import Registered, Registry
from vsc.runtime.spark.connectors.kafka.registry.derived import default_name, derived, given, kind_of
from vsc.runtime.spark.connectors.kafka.registry.fits import declared, listed, misfit, record_of
from vsc.runtime.spark.connectors.kafka.registry.schemas import FOLDER, WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.subjects import record_name, subject
from vsc.runtime.spark.connectors.kafka.registry.writers import writer

__all__ = ["check_sink", "settled"]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The schema of a part, and the id that it has in a registry."""

    subject: str
    id: int
    schema: WriterSchema


def check_sink(options: Options, node: str, record: Layout) -> None:
    """Refuses what the registry has, or does not take; registers nothing. VscRuntimeError."""
    for part in record.parts:
        if part.registered:
            _chosen(options, node, part, None, registers=False)


def settled(options: Options, node: str, record: Layout, files: Files, name: str) -> Layout:
    """The record with what writes it, as the checkpoint knows; the caller has claimed it. `name` is the sink's."""
    parts = [part for part in record.parts if part.registered]
    if not parts:
        return record
    path = f"{FOLDER}/{name}.json"
    kept = _loaded(files, path)
    chosen = {part.name: _chosen(options, node, part, kept.get(part.name)) for part in parts}
    if chosen != kept:
        data: dict[str, Any] = {
            part: [one.subject, one.id, one.schema.kind, one.schema.text] for part, one in chosen.items()
        }
        files.write(path, with_checksum(data))

    def with_writer(part: Part) -> Part:
        if not part.registered:
            return part
        one = chosen[part.name]
        return replace(part, writer=writer(one.id, one.schema, record_name(options, part), part.columns))

    key = None if record.key is None else with_writer(record.key)
    return replace(record, key=key, value=with_writer(record.value))


def _loaded(files: Files, path: str) -> Mapping[str, _Chosen]:
    if not files.exists(path):
        return {}
    data: dict[str, Any] = read_checksummed(files, path)
    try:
        return {part: _Chosen(of, id, WriterSchema(kind, text)) for part, (of, id, kind, text) in data.items()}
    except (TypeError, ValueError) as error:
        raise damaged(files, path, "it has no schemas") from error


def _chosen(options: Options, node: str, part: Part, kept: _Chosen | None, registers: bool = True) -> _Chosen:
    """The schema of a part: that which is `kept`, if it still fits. Unless it `registers`, one that it would register
    has the id 0."""
    record = record_name(options, part)
    pinned = given(options, part)
    name = record if record is not None or pinned is None else record_of(pinned)
    of = subject(options, part.name, name or default_name(part, node))
    stays = kept is not None and (kept.subject, kept.schema.kind) == (of, part.form) and pinned in (None, kept.schema)
    if kept is not None and stays and misfit(kept.schema, part.columns, "write", record) is None:
        return kept
    if pinned is not None and (problem := misfit(pinned, part.columns, "write")) is not None:
        raise AvroSchemaError(
            f"{options.place}: the schema of its {part.name} does not fit: {problem}",
            "correct the columns, or the schema",
        )
    registry = Registry(options, SinkError)
    newest = registry.newest(of)
    if not options.flag("register"):
        return _there(registry, options, part, pinned, of, newest)
    text = derived(part, record, node, None if newest is None else newest.schema) if pinned is None else pinned.text
    schema = registry.compiled(text, {}) if part.form == "protobuf" else WriterSchema(kind_of(part), text)
    if registry.refuses(of, schema.kind, text):
        there = "nothing" if newest is None else listed(newest.schema, record)
        raise SinkError(
            f"{options.place}: the schema registry refuses the schema of {of!r}, which is not compatible: it has "
            f"{there}, and the columns make {listed(schema, record)}",
            "correct the columns, or the compatibility of the subject",
        )
    return _Chosen(of, registry.register(of, schema.kind, text) if registers else 0, schema)


def _there(
    registry: Registry, options: Options, part: Part, pinned: WriterSchema | None, of: str, newest: Registered | None
) -> _Chosen:
    """The newest schema of a subject, which the columns fit; or that of a file, if the subject has it."""
    if newest is None:
        raise SinkError(
            f"{options.place}: the schema registry at {registry.url} has no subject {of!r}",
            "write `register = true`, or register a schema",
        )
    if pinned is not None:
        id = registry.registered(of, pinned.kind, pinned.text)
        if id is None:
            raise SinkError(
                f"{options.place}: the schema of its {part.name} is not among those of {of!r}",
                "write `register = true`, or register it",
            )
        return _Chosen(of, id, pinned)
    what = f"{options.place}: the newest schema of {of!r} (version {newest.version}, id {newest.id})"
    if newest.schema.kind != part.form:
        raise AvroSchemaError(f"{what} is one of {newest.schema.kind}, not of {part.form}", "correct the format")
    record = record_name(options, part)
    problem = misfit(newest.schema, part.columns, "write", record)
    if problem is not None:
        raise AvroSchemaError(
            f"{what} does not fit the columns: {problem}; the schema has {listed(newest.schema, record)}, "
            f"the columns are {declared(part.columns)}",
            "correct the columns, or write `register = true`",
        )
    return _Chosen(of, newest.id, newest.schema)
