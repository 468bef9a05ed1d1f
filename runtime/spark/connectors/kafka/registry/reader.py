"""Reads payloads whose schemas are in a registry: bytes in, columns out, and why a payload cannot be read.

It runs in the workers, and asks nobody: the driver has told the schemas of the epoch (`schemas`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.runtime.spark.connectors.kafka.registry.framing import NO_ID, Frame, frames
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known, here
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
        """The rows of payloads, which are bytes, none of them null: one of each."""
        found = list(frames(payloads))
        ids = [frame.id for frame in found if frame.id is not None]
        known = here(self.rank, self.part, ids) if self.known is None else self.known
        read = [self._rows(frame, known) for frame in found] or [self._none(0, None)]
        back = pa.array(np.argsort(np.concatenate([frame.places for frame in found])) if found else [], pa.int64())
        columns = [pa.concat_arrays(parts).take(back) for parts in zip(*(one.columns for one in read), strict=True)]
        problems, texts = (
            pa.concat_arrays([getattr(one, name) for one in read]).take(back) for name in ("problems", "texts")
        )
        return TextRows(columns, np.arange(len(payloads)), problems, texts)

    def _rows(self, frame: Frame, known: Known) -> TextRows:
        count = len(frame.places)
        if frame.id is None:
            return self._none(count, NO_ID)
        schema = known.ids.get(frame.id)
        if schema is None:
            return self._none(count, f"its schema id is {frame.id}, which the registry does not have")
        if schema.kind == "unreadable":
            return self._none(count, f"its schema (id {frame.id}) cannot be read: {schema.text}")
        if schema.kind != self.form:
            return self._none(count, f"its schema (id {frame.id}) is one of {schema.kind}, not of {self.form}")
        if self.texts is not None:
            return self.texts.read(frame.bodies)
        reader = None if known.reader is None else known.reader.text
        columns, problems = _DECODERS[self.form](schema.text, reader, self.columns, frame.bodies)
        of_schema = [None if one is None else f"schema id {frame.id}: {one}" for one in problems]
        return TextRows(columns, np.arange(count), pa.array(of_schema, pa.string()), pa.nulls(count, pa.string()))

    def _none(self, count: int, problem: str | None) -> TextRows:
        """Rows that cannot be read."""
        columns = [to_array([None] * count, column.type) for column in self.columns]
        problems = pa.array([problem] * count, pa.string())
        return TextRows(columns, np.arange(count), problems, pa.nulls(count, pa.string()))


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
