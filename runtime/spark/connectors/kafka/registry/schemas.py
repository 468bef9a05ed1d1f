"""The schemas of a source's records, by their ids: as the driver has fetched them, the checkpoint keeps them and the
tasks of an epoch get them.

Guarantees: an id always means the same schema. One that the registry does not have stays unknown for the whole run, and
for an epoch that is repeated; the next run asks for it again. Bytes that only look like ids cost a bounded number of
questions and repeated epochs. Not for asking the registry: that is `client`. Not for what a schema says: that is the
format's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from vsc.plan.connectors.debezium import DEBEZIUM
from vsc.runtime.errors import NewSchemaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FOLDER", "MOST_UNKNOWN", "Kind", "Known", "WriterSchema", "here", "kinds", "tell"]

FOLDER = "vsc/schemas"
"""Where a checkpoint keeps them."""
_PROPERTY = "vsc.schemas."
"""What the name of the local property begins with that holds a source's schemas for the running epoch, as JSON; its
rank follows."""
Kind = Literal["avro", "json", "protobuf", "unreadable"]
"""An ``unreadable`` schema has the reason as its text: its records are bad rows."""
MOST_UNKNOWN = 100
"""So many ids may be unknown before a run asks for no more but those of the subject."""
_MOST_FORMER = 1000


def kinds(form: str) -> tuple[str, ...]:
    """The kinds of schemas that records of a format are written with."""
    return ("avro", "json") if form == DEBEZIUM else (form,)


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A schema that records were written with. `text`: JSON, of Protobuf a FileDescriptorSet in Base64; whole, with
    whatever it refers to."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the schemas of one part of a source's records.

    `reader` has the defaults of fields that a writer's schema lacks. `ids`: the schemas by their ids, numbers or GUIDs
    as text. `unknown`: those that the registry does not have, each with the epoch that met it; `former`: those of
    former runs, which are asked for again. `closed`: too many are unknown, so ids are no longer asked for one by one;
    the newest epoch before which the subject's were looked at instead.
    """

    reader: WriterSchema | None = None
    ids: Mapping[str, WriterSchema] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    former: frozenset[str] = frozenset()
    closed: int | None = None

    def has(self, id: str) -> bool:
        """Whether it has been asked for, or is not going to be."""
        return self.closed is not None or id in self.ids or id in self.unknown

    def after(self, epoch: int) -> Known:
        """What a run knows that begins after `epoch`."""
        left = {id: met for id, met in self.unknown.items() if met > epoch}
        gone = [*(id for id in self.unknown if id not in left), *sorted(self.former)]
        closed = self.closed if self.closed is not None and self.closed > epoch else None
        return replace(self, unknown=left, former=frozenset(gone[:_MOST_FORMER]), closed=closed)

    def dump(self) -> dict[str, Any]:
        """As JSON's values."""
        return {
            "reader": None if self.reader is None else [self.reader.kind, self.reader.text],
            "ids": {id: [schema.kind, schema.text] for id, schema in self.ids.items()},
            "unknown": dict(self.unknown), "former": sorted(self.former), "closed": self.closed,
        }  # fmt: skip

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Known:
        """What `dump` gave."""
        reader = data["reader"]
        return cls(
            None if reader is None else WriterSchema(*reader),
            {id: WriterSchema(*schema) for id, schema in data["ids"].items()},
            dict(data["unknown"]),
            frozenset(data["former"]),
            data.get("closed"),  # 1.0.0rc1 did not write it
        )


def tell(spark: SparkSession, rank: int, schemas: str) -> None:
    """Tells the tasks of the epoch that this thread computes what is known of the source of `rank`."""
    spark.sparkContext.setLocalProperty(f"{_PROPERTY}{rank}", schemas)


def here(rank: int, part: str, ids: Iterable[str]) -> Known:
    """What the running task's epoch knows of the source of `rank`. NewSchemaError if one of the `ids` is not among it:
    the driver asks for it, and the epoch begins again."""
    from pyspark import TaskContext  # `vsc inspect` does not need it

    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(f"{_PROPERTY}{rank}")
    if found is None:
        raise RuntimeError("the task did not receive its epoch's schemas (is PYSPARK_PIN_THREAD switched off?)")
    known = _loaded(found)[part]
    new = sorted(id for id in ids if not known.has(id))
    if new:
        raise NewSchemaError.of(rank, part, new)
    return known


@lru_cache(maxsize=8)
def _loaded(text: str) -> dict[str, Known]:
    return {part: Known.load(known) for part, known in json.loads(text).items()}
