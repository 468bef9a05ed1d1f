"""What a source's schemas are before its first record is read: the reader's, and those of its subject so far."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from vsc.plan.connectors.debezium import DEBEZIUM
from vsc.plan.nodes import Node
from vsc.runtime.errors import AvroSchemaError, SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Part, layout
from vsc.runtime.spark.connectors.kafka.registry.client import Registered, Registry
from vsc.runtime.spark.connectors.kafka.registry.derived import given
from vsc.runtime.spark.connectors.kafka.registry.fits import declared, listed, misfit
from vsc.runtime.spark.connectors.kafka.registry.schemas import MOST_UNKNOWN, Known, WriterSchema, kinds
from vsc.runtime.spark.connectors.kafka.registry.subjects import by_topic, record_name, subject

__all__ = ["check_source", "fetched", "looked_at", "registered_parts", "settled"]

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
    if known.reader is not None and _misfit(known.reader, part, record) is None:
        return known
    registry = Registry(options, SourceError)
    newest = _newest(registry, options, part)
    if newest is None:
        return replace(known, reader=None)
    ids = {str(one.id): one.schema for one in registry.versions(newest.subject)}
    return replace(known, reader=newest.schema, ids={**ids, **known.ids})


def fetched(options: Options, part: Part, known: Known, ids: Sequence[str], epoch: int) -> Known:
    """What is known once an epoch has met `ids`."""
    registry, there, unknown = Registry(options, SourceError), dict(known.ids), dict(known.unknown)
    silent: SourceError | None = None
    for id in ids:
        found = None
        if silent is None or id not in known.former:
            try:
                found = registry.by_id(id)
            except SourceError as error:
                if id not in known.former:  # which it did not have before, so no answer is none
                    raise
                silent = error
        if found is None:
            unknown[id] = epoch
        else:
            there[id] = found
    if silent is not None:
        _log.warning("%s: what it did not have before stays unknown", silent.message)
    now = replace(known, ids=there, unknown=unknown)
    if len(unknown) < MOST_UNKNOWN:
        return now
    _log.warning(
        "%s: %d schema ids of its %s are not in the registry, such as %s; from now on, the run asks for no ids but "
        "those of %s", options.place, len(unknown), part.name, next(iter(unknown)),
        _subject(options, part) or "no subject, as none is known",
    )  # fmt: skip
    return looked_at(options, part, now, epoch)


def looked_at(options: Options, part: Part, known: Known, epoch: int) -> Known:
    """What is known when an epoch begins before which ids are no longer asked for one by one: the ids of the subject.
    Whoever wrote a record of the epoch had registered its schema before."""
    of = _subject(options, part)
    found = [] if of is None else Registry(options, SourceError).versions(of, known.ids)
    return replace(known, ids={**known.ids, **{str(one.id): one.schema for one in found}}, closed=epoch)


def _subject(options: Options, part: Part) -> str | None:
    """The subject of a part; None if nothing says which it is."""
    record = record_name(options, part)
    if record is None and not by_topic(options, part.name):
        return None
    return subject(options, part.name, record or "")


def _newest(registry: Registry, options: Options, part: Part) -> Registered | None:
    """The newest schema of a part's subject; None if there is none yet, or nothing says which subject it is."""
    of = _subject(options, part)
    if of is None or _given(options, part) is not None:
        return None
    newest = registry.newest(of)
    if newest is not None:
        _check_fits(options, newest, part)
    return newest


def _check_fits(options: Options, newest: Registered, part: Part) -> None:
    columns, record = part.columns, record_name(options, part)
    what = f"{options.place}: the newest schema of {newest.subject!r} (version {newest.version}, id {newest.id})"
    if newest.schema.kind not in kinds(part.form):
        wanted = " or ".join(kinds(part.form))
        raise AvroSchemaError(f"{what} is one of {newest.schema.kind}, not of {wanted}", "correct the format")
    problem = _misfit(newest.schema, part, record)
    if problem is not None:
        raise AvroSchemaError(
            f"{what} does not fit the columns: {problem}; the schema has {listed(newest.schema, record)}, "
            f"the columns are {declared(columns)}",
            "correct the columns, or register a schema that has them",
        )


def _misfit(schema: WriterSchema, part: Part, record: str | None) -> str | None:
    """Why the columns of a part cannot be read from a schema; None if they can."""
    if schema.kind not in kinds(part.form):
        return f"it is one of {schema.kind}"
    if part.form != DEBEZIUM:
        return misfit(schema, part.columns, "read", record)
    if schema.kind != "avro":  # JSON Schema says little of what is in an event
        return None
    from vsc.runtime.spark.connectors.kafka.registry.debezium_avro import envelope_misfit  # needs fastavro

    return envelope_misfit(schema.text, part.columns)


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
