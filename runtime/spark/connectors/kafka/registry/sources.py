"""What a source's schemas are before its first record is read: the reader's, and those of its subject so far."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from vsc.plan.nodes import Node
from vsc.runtime.errors import AvroSchemaError, SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Part, layout
from vsc.runtime.spark.connectors.kafka.registry.client import Registered, Registry
from vsc.runtime.spark.connectors.kafka.registry.derived import given
from vsc.runtime.spark.connectors.kafka.registry.fits import declared, listed, misfit
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known, WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.subjects import by_topic, record_name, subject

__all__ = ["check_source", "fetched", "registered_parts", "settled"]

_log = logging.getLogger(__name__)


def registered_parts(node: Node, options: Options) -> list[Part]:
    """The key and the value, as far as their schemas are in a registry."""
    if options.get("registry") is None:
        return []
    return [part for part in layout(options, node, node.source.columns, "read").parts if part.registered]


def check_source(node: Node, options: Options) -> None:
    """Refuses a source whose columns the newest schemas do not have. VscRuntimeError."""
    for part in registered_parts(node, options):
        _newest(Registry(options, SourceError), options, part)


def settled(options: Options, part: Part, known: Known) -> Known:
    """What is known when a run begins that knew `known`. The reader's schema stays as long as the columns fit it: what
    was read with it is read again as it was. AvroSchemaError if they fit none."""
    own = _given(options, part)
    if own is not None:
        return replace(known, reader=own)
    record = record_name(options, part)
    if known.reader is not None and misfit(known.reader, part.columns, "read", record) is None:
        return known
    registry = Registry(options, SourceError)
    newest = _newest(registry, options, part)
    if newest is None:
        return replace(known, reader=None)
    ids = {str(one.id): one.schema for one in registry.versions(newest.subject)}
    return replace(known, reader=newest.schema, ids={**ids, **known.ids})


def fetched(options: Options, part: Part, known: Known, ids: Sequence[str], epoch: int) -> Known:
    """What is known once an epoch has met `ids`."""
    registry = Registry(options, SourceError)
    found = {id: _asked(registry, id, known) for id in ids}
    there = {id: schema for id, schema in found.items() if schema is not None}
    return replace(
        known,
        ids={**known.ids, **there},
        unknown={**known.unknown, **{id: epoch for id, schema in found.items() if schema is None}},
    )


def _asked(registry: Registry, id: str, known: Known) -> WriterSchema | None:
    """The schema of an id, which may be asked for again: then no answer is none."""
    try:
        return registry.by_id(id)
    except SourceError as error:
        if id not in known.former:
            raise
        _log.warning("%s: the schema %s, which it did not have before, stays unknown", error.message, id)
        return None


def _newest(registry: Registry, options: Options, part: Part) -> Registered | None:
    """The newest schema of a part's subject; None if there is none yet, or nothing says which subject it is."""
    record = record_name(options, part)
    if _given(options, part) is not None or (record is None and not by_topic(options, part.name)):
        return None
    newest = registry.newest(subject(options, part.name, record or ""))
    if newest is not None:
        _check_fits(options, newest, part)
    return newest


def _check_fits(options: Options, newest: Registered, part: Part) -> None:
    form, columns, record = part.form, part.columns, record_name(options, part)
    what = f"{options.place}: the newest schema of {newest.subject!r} (version {newest.version}, id {newest.id})"
    if newest.schema.kind != form:
        raise AvroSchemaError(f"{what} is one of {newest.schema.kind}, not of {form}", "correct the format")
    problem = misfit(newest.schema, columns, "read", record)
    if problem is not None:
        raise AvroSchemaError(
            f"{what} does not fit the columns: {problem}; the schema has {listed(newest.schema, record)}, "
            f"the columns are {declared(columns)}",
            "correct the columns, or register a schema that has them",
        )


def _given(options: Options, part: Part) -> WriterSchema | None:
    """The reader's schema that a file gives."""
    found = given(options, part)
    problem = None if found is None else misfit(found, part.columns, "read")
    if problem is not None:
        raise AvroSchemaError(
            f"{options.place}: the schema of its {part.name} does not fit: {problem}",
            "correct the columns, or the schema",
        )
    return found
