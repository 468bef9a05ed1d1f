"""Keys that hold a window, byte for byte as the serializers of Kafka Streams and ksqlDB write them.

Of a time window (`TimeWindowedSerializer`): the key, and the window's start, eight bytes, in ms. Of a session
(`SessionWindowedSerializer`): the key, the window's end, and its start. The key itself is written by Kafka's own
serializer for its type, or in another format.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.spark.formats.text_rows import TextReader, TextRows
from vsc.runtime.values import to_array

__all__ = ["KAFKA", "KafkaKeys", "WindowBounds", "WindowedReader", "is_kafkas", "kafka_keys", "with_bounds"]

KAFKA = "kafka"
"""The format of Kafka's own serializers, for one column."""
_FORMATS = {"int": ">i", "bigint": ">q", "smallint": ">h"}
_TYPES = frozenset((*_FORMATS, "string", "binary"))
_MOST = 253_402_300_799_999
"""The last millisecond of the year 9999."""


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """The columns of a window's bounds. `size`: of time windows, in ms; None for sessions. `end`: None if no column
    has it."""

    start: Column
    end: Column | None
    size: int | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return (self.start,) if self.end is None else (self.start, self.end)

    @property
    def length(self) -> int:
        """How many bytes they take."""
        return 16 if self.size is None else 8


def is_kafkas(columns: tuple[Column, ...]) -> bool:
    """Whether Kafka has a serializer for the columns of a key."""
    return len(columns) == 1 and str(columns[0].type) in _TYPES


@dataclass(frozen=True)
class KafkaKeys:
    """Reads the bytes of Kafka's own serializers."""

    columns: tuple[Column, ...]

    def read(self, texts: pa.Array) -> TextRows:
        """The rows, one of each text."""
        [column] = self.columns
        values, problems = [], []
        read = _reader(str(column.type))
        for text in texts.to_pylist():
            value, problem = read(text)
            values.append(value)
            problems.append(problem)
        nothing = pa.nulls(len(values), pa.string())
        return TextRows(
            [to_array(values, column.type)], np.arange(len(values)), pa.array(problems, pa.string()), nothing
        )


def _reader(type: str) -> Callable[[bytes], tuple[object, str | None]]:
    form = _FORMATS.get(type)

    def of_number(text: bytes) -> tuple[object, str | None]:
        size = struct.calcsize(str(form))
        if len(text) != size:
            return None, f"{len(text)} bytes are not the {size} of {type}"
        return struct.unpack(str(form), text)[0], None

    def of_text(text: bytes) -> tuple[object, str | None]:
        try:
            return text.decode(), None
        except UnicodeDecodeError:
            return None, "it is not UTF-8 text"

    return of_number if form is not None else of_text if type == "string" else lambda text: (text, None)


def kafka_keys(column: Column, values: pa.Array) -> pa.Array:
    """The bytes that Kafka's own serializer writes."""
    form = _FORMATS.get(str(column.type))
    if form is None:
        return values.cast(pa.binary())
    return pa.array([None if one is None else struct.pack(form, one) for one in values.to_pylist()], pa.binary())


@dataclass(frozen=True)
class WindowedReader:
    """Reads keys with a window: `inner` reads what stands in front of its bounds."""

    inner: TextReader
    bounds: WindowBounds

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the key, and of the bounds."""
        return (*self.inner.columns, *self.bounds.columns)

    def read(self, texts: pa.Array) -> TextRows:
        """The rows, one of each text."""
        length = self.bounds.length
        found = [text if len(text) >= length else None for text in texts.to_pylist()]
        rows = self.inner.read(pa.array([b"" if text is None else text[:-length] for text in found], pa.binary()))
        ends = [(0, 0) if text is None else self._bounds(text[-length:]) for text in found]
        problems = [
            f"it has no bounds of a window: it has {len(text)} bytes" if whole is None
            else "the bounds of its window are out of range" if end is None else problem
            for text, whole, end, problem in zip(
                texts.to_pylist(), found, ends, rows.problems.to_pylist(), strict=True
            )
        ]  # fmt: skip
        bad = [problem is not None for problem in problems]
        columns = [_times([None if no or end is None else end[i] for no, end in zip(bad, ends, strict=True)])
                   for i in range(len(self.bounds.columns))]  # fmt: skip
        return TextRows([*rows.columns, *columns], rows.places, pa.array(problems, pa.string()), rows.texts)

    def _bounds(self, text: bytes) -> tuple[int, int] | None:
        """The start and the end of a window; None if they are not times."""
        size = self.bounds.size
        if size is None:
            end, start = struct.unpack(">qq", text)
        else:
            [start] = struct.unpack(">q", text)
            end = min(start + size, _MOST)
        return (start, end) if abs(start) <= _MOST and abs(end) <= _MOST else None


def _times(found: list[int | None]) -> pa.Array:
    return pa.array([None if one is None else one * 1000 for one in found], pa.int64()).cast(pa.timestamp("us", "UTC"))


def with_bounds(keys: pa.Array, bounds: WindowBounds, start: pa.Array, end: pa.Array | None) -> pa.Array:
    """Keys with the bounds of their windows behind them; null where one of these is. ValueError for a window of
    another size."""
    starts = _ms(start)
    ends = None if end is None else _ms(end)
    size = bounds.size
    if size is not None and ends is not None:
        for one, other in zip(starts, ends, strict=True):
            if one is not None and other is not None and other - one != size:
                raise ValueError(f"a window from {one} to {other} (ms) has not the size of {size} ms")
    tails = [
        None if one is None or other is None else struct.pack(">q", one) if size is not None
        else struct.pack(">qq", other, one)
        for one, other in zip(starts, starts if ends is None else ends, strict=True)
    ]  # fmt: skip
    return pc.binary_join_element_wise(keys.cast(pa.binary()), pa.array(tails, pa.binary()), pa.scalar(b""))


def _ms(times: pa.Array) -> list[int | None]:
    found: list[int | None] = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    if any(one is not None and one % 1000 for one in found):
        raise ValueError("the bounds of a window are not whole milliseconds")
    return [None if one is None else one // 1000 for one in found]
