"""What stands in front of a payload: which schema it was written with, in Confluent's wire format.

A zero and four bytes with the schema's id, or a one and its GUID. The GUID, or the id, may stand in a header of the
record instead (`HEADERS`); a source puts it in front of the payload, so that only this module knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.records import Int64s

__all__ = ["HEADERS", "NO_ID", "Frame", "frames", "header"]

HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The headers of a record that may say the schema of its parts."""
NO_ID = "it does not begin with a schema id"
_SHORT, _LONG = 5, 17


@dataclass(frozen=True, slots=True)
class Frame:
    """Payloads of one schema: its id (None: they do not say one), where they are, and what stands behind the id."""

    id: str | None
    places: Int64s
    bodies: pa.BinaryArray


def header(id: int) -> bytes:
    """What a payload of that schema begins with."""
    return b"\0" + id.to_bytes(4, "big")


def frames(payloads: pa.Array) -> Iterator[Frame]:
    """Payloads, which are bytes, none of them null, by their schemas."""
    if not len(payloads):
        return
    values = payloads.cast(pa.binary())
    heads = pc.binary_slice(values, 0, _LONG)
    short = pc.equal(pc.binary_slice(values, 0, 1), b"\0")
    heads = pc.if_else(short, pc.binary_slice(values, 0, _SHORT), heads).dictionary_encode()
    numbers = heads.indices.to_numpy(zero_copy_only=False)
    known: dict[str | None, list[int]] = {}
    lengths: dict[str | None, int] = {}
    for number, head in enumerate(heads.dictionary.to_pylist()):
        id = _id(head)
        known.setdefault(id, []).append(number)
        lengths[id] = 0 if id is None else len(head)
    for id, of in known.items():
        places = np.flatnonzero(np.isin(numbers, of)).astype(np.int64)
        bodies = [value[lengths[id] :] for value in values.take(pa.array(places)).to_pylist()]
        yield Frame(id, places, pa.array(bodies, pa.binary()))


def _id(head: bytes) -> str | None:
    if len(head) == _SHORT and head[0] == 0:
        return str(int.from_bytes(head[1:], "big"))
    return str(UUID(bytes=head[1:])) if len(head) == _LONG and head[0] == 1 else None
