"""What writes a part of a record with a schema of a registry: each payload begins with the schema's id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.spark.connectors.kafka.registry.framing import header
from vsc.runtime.spark.connectors.kafka.registry.schemas import WriterSchema

__all__ = ["Writer", "writer"]


class Writer(Protocol):
    """Writes rows of the columns of a part. It goes to the executors."""

    def encoded(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The payloads of rows, of which there is at least one column. ValueError shows the row that does not fit."""

    def framed(self, payloads: pa.Array) -> pa.Array:
        """Payloads that were written elsewhere, with the id."""


@dataclass(frozen=True)
class _Framing:
    id: int

    def framed(self, payloads: pa.Array) -> pa.Array:
        """See `Writer`."""
        return pc.binary_join_element_wise(pa.scalar(header(self.id), pa.binary()), payloads, pa.scalar(b""))


@dataclass(frozen=True)
class _Avro(_Framing):
    schema: str
    columns: tuple[Column, ...]

    def encoded(self, columns: Sequence[pa.Array]) -> pa.Array:
        """See `Writer`."""
        from vsc.runtime.spark.connectors.kafka.avro import AvroForm, encoded  # needs fastavro
        from vsc.runtime.spark.connectors.kafka.avro_schema import is_record

        bare = len(self.columns) == 1 and not is_record(self.schema)
        return encoded(AvroForm(self.schema, self.columns, bare, self.id), columns)


@dataclass(frozen=True)
class _Json(_Framing):
    columns: tuple[Column, ...]

    def encoded(self, columns: Sequence[pa.Array]) -> pa.Array:
        """See `Writer`."""
        from vsc.runtime.spark.formats.json_written import written

        return self.framed(written(self.columns, columns).cast(pa.binary()))


@dataclass(frozen=True)
class _Protobuf(_Framing):
    schema: str
    record: str | None
    columns: tuple[Column, ...]

    def encoded(self, columns: Sequence[pa.Array]) -> pa.Array:
        """See `Writer`."""
        from vsc.runtime.spark.connectors.kafka.registry.protobuf_writing import encoded  # needs protobuf

        return self.framed(pa.array(encoded(self.schema, self.record, self.columns, columns), pa.binary()))


def writer(id: int, schema: WriterSchema, record: str | None, columns: tuple[Column, ...]) -> Writer:
    """What writes rows of columns with the schema of that id, of Protobuf as its message `record` or the first."""
    if schema.kind == "protobuf":
        return _Protobuf(id, schema.text, record, columns)
    return _Avro(id, schema.text, columns) if schema.kind == "avro" else _Json(id, columns)
