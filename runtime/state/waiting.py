"""Records that wait for other inputs, in an ordered map: packed, in the order in which they may go on.

Layout, format version 2 (root: the store root of a prefix of its own)::

    root "m"                    "VSWT", u16 format version, u16 zero, i64 next sequence, i64 records (little endian)
    root "w" place sequence     u16 length of the port, the port in UTF-8, i64 records (little endian), the batch
    root "s"                    "VSWS", u16 format version 1, u16 zero, i64 how many of the records are steps of the
                                input's clock (`STEPS`); missing where none have waited

``place`` is that of the batch's first record in D12's order: a key (`vsc.runtime.state.keys`) of time, rank, part and
offset. So what may go on is found from the front. ``sequence`` has eight bytes, big endian. A batch is a blob of many
records (Arrow IPC): waiting costs one row for some thousand records, and nothing when nothing waits.

Guarantees: a batch comes out as it went in, batches of one place in the order in which they went in. Not for deciding
what has to wait, nor for what is inside a batch: that is `vsc.runtime.operators.in_step`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vsc.plan.types import ScalarType
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow

__all__ = [
    "FORMAT_VERSION",
    "STEPS",
    "Place",
    "Waiting",
    "WaitingBatches",
    "meta_row",
    "next_sequence",
    "row",
    "steps_row",
]

FORMAT_VERSION: Final = 2

STEPS: Final = "#steps"
"""The port of steps of the input's clock: batches of records without columns."""

_PREFIX: Final = b"#waiting"
"""Not the prefix of a node: those are numbers."""
_META_KEY: Final = store_root(_PREFIX) + b"m"
_ROWS: Final = store_root(_PREFIX) + b"w"
_META: Final = MetaRow(b"VSWT", FORMAT_VERSION, "the store of waiting records", (0, 0))
_STEPS_KEY: Final = store_root(_PREFIX) + b"s"
_STEPS: Final = MetaRow(b"VSWS", 1, "the number of waiting steps", (0,))
_SEQUENCE: Final = struct.Struct(">Q")
_PORT: Final = struct.Struct("<H")
_COUNT: Final = struct.Struct("<q")


class Place(NamedTuple):
    """A record's place in D12's order, from the parts that its source determines."""

    time: int
    rank: int
    part: str
    offset: int

    @property
    def encoded(self) -> bytes:
        """The place as bytes that compare like places."""
        return _PLACES.encode(self)


_PLACES: Final = KeyCodec([ScalarType(name) for name in ("bigint", "int", "string", "bigint")])


class Waiting(NamedTuple):
    """A waiting batch: its input, the place of its first record, the number of records, and the batch."""

    port: str
    place: Place
    records: int
    data: bytes


class WaitingBatches:
    """The waiting batches of one stage and partition."""

    __slots__ = ("_count", "_kv", "_rows", "_sequence", "steps")

    def __init__(self, kv: OrderedKV) -> None:
        """Open the waiting batches of `kv`. Raises `StateError` if something else is stored there."""
        self._kv, self._rows = kv, _ROWS
        self._sequence, self._count = _META.read(kv.get(_META_KEY))
        self.steps = _STEPS.read(kv.get(_STEPS_KEY))[0] if self._count else 0

    def __len__(self) -> int:
        """How many records wait, the steps among them, which are `steps`."""
        return self._count

    def before(self, end: Place | None, after: bytes | None = None) -> Iterator[tuple[bytes, Waiting]]:
        """What waits from a place before `end` on (None: everything), by place, each with its row key.

        Nothing is taken out. `after`: go on behind that row key. As with a map's scan, no spill while it is under way.
        """
        if self._count:
            start = self._rows if after is None else after + b"\0"
            stop = prefix_end(self._rows) if end is None else self._rows + end.encoded
            for row_key, value in self._kv.scan(start, stop):
                yield row_key, self._decode(row_key, value)

    def numbered(self) -> Iterator[tuple[int, Waiting]]:
        """All waiting batches, by place, each with its sequence."""
        for row_key, one in self.before(None):
            yield _SEQUENCE.unpack(row_key[-_SEQUENCE.size :])[0], one

    def replace(self, taken: Sequence[tuple[bytes, Waiting]], added: Sequence[Waiting]) -> None:
        """Remove `taken` (as `before` gave them; their data may be left out) and add `added`, in one atomic write."""
        if not taken and not added:
            return
        puts = [row(one, sequence) for sequence, one in enumerate(added, self._sequence)]
        self._sequence += len(added)
        gone = [one for _, one in taken]
        self._count += sum(one.records for one in added) - sum(one.records for one in gone)
        puts.append(meta_row(self._sequence, self._count))
        steps = self.steps + _steps(added) - _steps(gone)
        if steps != self.steps:
            self.steps = steps
            puts.append(steps_row(steps))
        self._kv.write(puts, [row_key for row_key, _ in taken])

    def _decode(self, row_key: bytes, value: bytes) -> Waiting:
        place = Place(*_PLACES.decode(row_key[len(self._rows) : -_SEQUENCE.size]))  # type: ignore[arg-type]
        (length,) = _PORT.unpack_from(value)
        start = _PORT.size + length
        (records,) = _COUNT.unpack_from(value, start)
        return Waiting(value[_PORT.size : start].decode(), place, records, value[start + _COUNT.size :])


def row(one: Waiting, sequence: int) -> tuple[bytes, bytes]:
    """The row of a waiting batch."""
    port = one.port.encode()
    value = _PORT.pack(len(port)) + port + _COUNT.pack(one.records) + one.data
    return _ROWS + one.place.encoded + _SEQUENCE.pack(sequence), value


def _steps(batches: Sequence[Waiting]) -> int:
    return sum(one.records for one in batches if one.port == STEPS)


def steps_row(steps: int) -> tuple[bytes, bytes]:
    """The row that says how many steps are among the waiting records."""
    return _STEPS_KEY, _STEPS.row(steps)


def meta_row(sequence: int, records: int) -> tuple[bytes, bytes]:
    """The meta row: the next sequence, and how many records wait, steps included."""
    return _META_KEY, _META.row(sequence, records)


def next_sequence(kv: OrderedKV) -> int:
    """The sequence of the next batch to wait; 0 if none has waited yet."""
    return _META.read(kv.get(_META_KEY))[0]
