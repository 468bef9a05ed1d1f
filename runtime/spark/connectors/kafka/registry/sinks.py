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
from vsc.runtime.spark.connectors.kafka.registry.client import Registry
from vsc.runtime.spark.connectors.kafka.registry.derived import derived, given
from vsc.runtime.spark.connectors.kafka.registry.fits import declared, listed, misfit, record_of
from vsc.runtime.spark.connectors.kafka.registry.schemas import WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.subjects import subject
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
        if not part.registered:
            continue
        registry = Registry(options, SinkError)
        own, of = _wanted(options, node, part)
        if not options.flag("register"):
            _there(registry, options, part, own, of)
        elif registry.refuses(of, own.kind, own.text):
            raise _refused(options, registry, of, own)


def settled(options: Options, node: str, record: Layout, files: Files, name: str) -> Layout:
    """The record with what writes it, as the checkpoint knows; the caller has claimed it. `name` is the sink's."""
    parts = [part for part in record.parts if part.registered]
    if not parts:
        return record
    path = f"vsc/schemas/{name}.json"
    kept = _loaded(files, path)
    chosen = {part.name: _chosen(options, node, part, kept.get(part.name)) for part in parts}
    if chosen != kept:
        data: dict[str, Any] = {
            part: [one.subject, one.id, one.schema.kind, one.schema.text] for part, one in chosen.items()
        }
        files.write(path, with_checksum(data))

    def with_writer(part: Part | None) -> Part | None:
        if part is None or not part.registered:
            return part
        return replace(part, writer=writer(chosen[part.name].id, chosen[part.name].schema, part.columns))

    value = with_writer(record.value)
    assert value is not None
    return replace(record, key=with_writer(record.key), value=value)


def _loaded(files: Files, path: str) -> Mapping[str, _Chosen]:
    if not files.exists(path):
        return {}
    data: dict[str, Any] = read_checksummed(files, path)
    try:
        return {part: _Chosen(of, id, WriterSchema(kind, text)) for part, (of, id, kind, text) in data.items()}
    except (TypeError, ValueError) as error:
        raise damaged(files, path, "it has no schemas") from error


def _chosen(options: Options, node: str, part: Part, kept: _Chosen | None) -> _Chosen:
    own, of = _wanted(options, node, part)
    if kept is not None and kept.subject == of and kept.schema.kind == part.form:
        pinned = given(options, part) is not None and kept.schema != own
        if not pinned and misfit(kept.schema, part.columns, "write") is None:
            return kept
    registry = Registry(options, SinkError)
    if not options.flag("register"):
        return _there(registry, options, part, own, of)
    if registry.refuses(of, own.kind, own.text):
        raise _refused(options, registry, of, own)
    return _Chosen(of, registry.register(of, own.kind, own.text), own)


def _wanted(options: Options, node: str, part: Part) -> tuple[WriterSchema, str]:
    """The schema that a part would be registered with, and its subject."""
    record = options.get("record_name") if part.name == "value" else None
    own = given(options, part)
    if own is not None:
        problem = misfit(own, part.columns, "write")
        if problem is not None:
            raise AvroSchemaError(
                f"{options.place}: the schema of its {part.name} does not fit: {problem}",
                "correct the columns, or the schema",
            )
    else:
        own = derived(part, None if record is None else str(record), node)
    of = subject(options, part.name, str(record) if record is not None else record_of(own))
    if of is None:
        raise SinkError(
            f"{options.place}: `subject_name_strategy` asks for the name of a record, and there is none",
            "write `record_name = '...'`",
        )
    return own, of


def _there(registry: Registry, options: Options, part: Part, own: WriterSchema, of: str) -> _Chosen:
    """The newest schema of a subject, which the columns fit; or that of a file, if the subject has it."""
    newest = registry.newest(of)
    if newest is None:
        raise SinkError(
            f"{options.place}: the schema registry at {registry.url} has no subject {of!r}",
            "write `register = true`, or register a schema",
        )
    if given(options, part) is not None:
        id = registry.registered(of, own.kind, own.text)
        if id is None:
            raise SinkError(
                f"{options.place}: the schema of its {part.name} is not among those of {of!r}",
                "write `register = true`, or register it",
            )
        return _Chosen(of, id, own)
    what = f"{options.place}: the newest schema of {of!r} (version {newest.version}, id {newest.id})"
    if newest.schema.kind != part.form:
        raise AvroSchemaError(f"{what} is one of {newest.schema.kind}, not of {part.form}", "correct the format")
    problem = misfit(newest.schema, part.columns, "write")
    if problem is not None:
        raise AvroSchemaError(
            f"{what} does not fit the columns: {problem}; the schema has {listed(newest.schema)}, "
            f"the columns are {declared(part.columns)}",
            "correct the columns, or write `register = true`",
        )
    return _Chosen(of, newest.id, newest.schema)


def _refused(options: Options, registry: Registry, of: str, own: WriterSchema) -> SinkError:
    newest = registry.newest(of)
    there = "nothing" if newest is None else listed(newest.schema)
    return SinkError(
        f"{options.place}: the schema registry refuses the schema of {of!r}, which is not compatible: it has {there}, "
        f"and the columns make {listed(own)}",
        "correct the columns, or the compatibility of the subject",
    )
