"""Reads payloads whose schemas are in a registry: bytes in, columns out, and why a payload cannot be read.

It runs in the workers, and asks nobody: the driver has told the schemas of the epoch (`schemas`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.connectors.debezium import DEBEZIUM
from vsc.plan.nodes import Column
from vsc.runtime.spark.connectors.kafka.registry.framing import NO_ID, Frame, frames
from vsc.runtime.spark.connectors.kafka.registry.schemas import MOST_UNKNOWN, Known, WriterSchema, here, kinds
from vsc.runtime.spark.formats.debezium import DebeziumReader
from vsc.runtime.spark.formats.text_rows import TextReader, TextRows
from vsc.runtime.values import to_array

__all__ = ["RegistryReader"]


@dataclass(frozen=True)
class RegistryReader:
    """Reads the `part` of the records of the source of `rank`, written in the format `form`, as `columns`.

    `texts` reads what stands behind the id, where that is text. `known`: for tests, the schemas.
    """

    rank: int
    part: str
    form: str
    columns: tuple[Column, ...]
    texts: TextReader | None = None
    known: Known | None = None

    def read(self, payloads: pa.Array) -> TextRows:
        """The rows of payloads, which are bytes, none of them null: one of each, of change events any number."""
        found = list(frames(payloads))
        ids = [frame.id for frame in found if frame.id is not None]
        known = here(self.rank, self.part, ids) if self.known is None else self.known
        read = [self._rows(frame, known) for frame in found] or [self._none(0, None)]
        of = [frame.places[one.places] for frame, one in zip(found, read, strict=True)] if found else []
        places = np.concatenate([np.empty(0, np.int64), *of])
        order = np.argsort(places, kind="stable")
        back = pa.array(order, pa.int64())

        def whole(name: str) -> pa.Array:
            return pa.concat_arrays([getattr(one, name) for one in read]).take(back)

        columns = [pa.concat_arrays(parts).take(back) for parts in zip(*(one.columns for one in read), strict=True)]
        own = (whole("times"), whole("deleted")) if self.form == DEBEZIUM else ()
        return TextRows(columns, places[order], whole("problems"), whole("texts"), *own)

    def _rows(self, frame: Frame, known: Known) -> TextRows:
        count = len(frame.places)
        if frame.id is None:
            return self._none(count, NO_ID)
        schema = known.ids.get(frame.id)
        if schema is None and (known.closed is None or frame.id in known.unknown):
            return self._none(count, f"its schema id is {frame.id}, which the registry does not have")
        if schema is None:
            return self._none(
                count,
                f"its schema id is {frame.id}, which the subject does not have; after {MOST_UNKNOWN} unknown ids, the "
                "run asks for no others",
            )
        if schema.kind == "unreadable":
            return self._none(count, f"its schema (id {frame.id}) cannot be read: {schema.text}")
        if schema.kind not in kinds(self.form):
            wanted = " or ".join(kinds(self.form))
            return self._none(count, f"its schema (id {frame.id}) is one of {schema.kind}, not of {wanted}")
        if self.form == DEBEZIUM and schema.kind == "avro":
            return self._events(frame, schema, known)
        if self.texts is not None:
            return self.texts.read(frame.bodies)
        reader = None if known.reader is None else known.reader.text
        columns, problems = _DECODERS[self.form](schema.text, reader, self.columns, frame.bodies)
        of_schema = [None if one is None else f"schema id {frame.id}: {one}" for one in problems]
        return TextRows(columns, np.arange(count), pa.array(of_schema, pa.string()), pa.nulls(count, pa.string()))

    def _events(self, frame: Frame, schema: WriterSchema, known: Known) -> TextRows:
        """The rows of change events in Avro."""
        from vsc.runtime.spark.connectors.kafka.registry.debezium_avro import events  # needs fastavro

        assert isinstance(self.texts, DebeziumReader)
        reader = None if known.reader is None or known.reader.kind != "avro" else known.reader.text
        form = events(schema.text, reader, self.columns)
        texts, problems = form.texts(frame.bodies)
        rows = replace(self.texts, schema=form.schema).read(texts)
        wrong = {place for place, problem in enumerate(problems) if problem is not None}
        if not wrong:
            return rows
        bad = self._none(len(wrong), None)
        of_schema = [f"schema id {frame.id}: {problems[place]}" for place in sorted(wrong)]
        return TextRows(
            [pa.concat_arrays(pair) for pair in zip(rows.columns, bad.columns, strict=True)],
            np.concatenate([rows.places, sorted(wrong)]).astype(np.int64),
            pa.concat_arrays([rows.problems, pa.array(of_schema, pa.string())]),
            *(
                pa.concat_arrays([getattr(rows, name), getattr(bad, name)])
                for name in ("texts", "times", "deleted")
            ),
        )  # fmt: skip

    def _none(self, count: int, problem: str | None) -> TextRows:
        """Rows that cannot be read."""
        columns = [to_array([None] * count, column.type) for column in self.columns]
        problems = pa.array([problem] * count, pa.string())
        own = (pa.nulls(count, pa.int64()), pa.array([False] * count, pa.bool_())) if self.form == DEBEZIUM else ()
        return TextRows(columns, np.arange(count), problems, pa.nulls(count, pa.string()), *own)


Decoder = Callable[[str, str | None, tuple[Column, ...], pa.Array], tuple[list[pa.Array], list[str | None]]]
"""The columns of payloads of a writer's schema, given the reader's, and why one cannot be read."""


def _avro(
    writer: str, reader: str | None, columns: tuple[Column, ...], bodies: pa.Array
) -> tuple[list[pa.Array], list[str | None]]:
    from vsc.runtime.spark.connectors.kafka.registry.avro_resolution import resolution  # needs fastavro

    return resolution(writer, reader, columns).decoded(bodies)


def _protobuf(
    writer: str, reader: str | None, columns: tuple[Column, ...], bodies: pa.Array
) -> tuple[list[pa.Array], list[str | None]]:
    from vsc.runtime.spark.connectors.kafka.registry.protobuf_reading import decoded  # needs protobuf

    return decoded(writer, reader, columns, bodies)


_DECODERS: dict[str, Decoder] = {"avro": _avro, "protobuf": _protobuf}
