"""Records of a topic in a file, as ``kcat -J`` prints them, read as a query reads the topic: for tests of topologies.

Each line is a JSON object: the texts `key` and `payload` (null or missing: none), `ts`, the record's time in ms,
`headers`, names and values in turns, and, for columns that are declared for them, `partition` and `offset`. A key or a
payload that is not a text is taken as it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.connectors.debezium import DEBEZIUM_OPTIONS
from vsc.plan.connectors.kafka import WINDOWED
from vsc.plan.nodes import Node
from vsc.plan.types import MapType
from vsc.runtime.errors import SourceError
from vsc.runtime.expressions.json_data import json_values
from vsc.runtime.expressions.json_text import compact
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Origin
from vsc.runtime.spark.base.options import resolved_where
from vsc.runtime.spark.connectors.kafka.layout import layout
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import KEY, OFFSET, TIME, VALUE
from vsc.runtime.spark.formats.source_rows import source_rows
from vsc.runtime.values import to_array

__all__ = ["read"]

_READ = frozenset(("format", "key_format", "headers", "partition", "offset", *DEBEZIUM_OPTIONS))
_TEXTS = {"key": KEY, "value": VALUE}
_LATEST = 2**62
_INSTEAD = "write the rows into the test"


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: its texts, its time in ms, its headers, and where it stands."""

    key: str | None
    value: str | None
    time: int
    headers: list[tuple[str | None, bytes | None]] | None
    partition: int | None
    offset: int | None


def read(node: Node, variables: Mapping[str, str], path: str, time: int | None) -> SourceRows:
    """The rows of the records in the file at `path`. `time` is not for them: each has its own.

    Raises SourceError, ConfigurationError or OSError.
    """
    options = resolved_where(_READ.__contains__, node, variables)
    columns, key = node.source.columns, frozenset(column.name for column in node.schema.key)
    if "avro" in (options.get("format"), options.get("key_format")):
        raise SourceError(f"{options.place}: records in Avro are not text, as a file of `kcat -J` has them", _INSTEAD)
    if time is not None:
        raise SourceError(f"{options.place} reads the times of its records from the file (`ts`)", "remove `timestamp`")
    if options.get("key_format") == WINDOWED:
        raise SourceError(f"{options.place}: windowed keys are not text, as a file of `kcat -J` has it", _INSTEAD)
    if options.get("registry") is not None:
        raise SourceError(
            f"{options.place}: records with schema ids are not text, as a file of `kcat -J` has them", _INSTEAD
        )
    record = layout(options, node, columns, "read")
    records = _records(path, node.source.timestamp is None)
    found: dict[str, pa.Array] = {
        _TEXTS[part.name]: pa.array([getattr(one, part.name) for one in records], pa.string()).cast(pa.binary())
        for part in record.parts
    }
    if (headers := record.headers) is not None:
        values: list[Any] = [one.headers for one in records]
        if isinstance(headers.type, MapType):
            values = [None if pairs is None else dict(pairs) for pairs in values]
        found[f"_vsc_column_{columns.index(headers)}"] = to_array(values, headers.type)
    for name, column in (("partition", record.partition), ("offset", record.offset)):
        if column is not None:
            found[f"_vsc_column_{columns.index(column)}"] = to_array(
                [getattr(one, name) for one in records], column.type
            )
    found |= {
        OFFSET: pa.array(np.arange(len(records))),
        TIME: pa.array([one.time for one in records], pa.int64()),
    }
    rows = pa.RecordBatch.from_arrays(list(found.values()), names=list(found))
    (rows,) = texts_reader(record, columns, key, options, node.source.rank)([rows])
    return source_rows(node.source, Origin(node.name, node.source.rank, ""), rows, 0, {})


def _records(path: str, timed: bool) -> list[_Record]:
    found = []
    for place, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        try:
            found += [_record(value, timed) for value in json_values(line.decode(), exact=True)]
        except ValueError as error:
            raise SourceError(
                f"line {place} of {path} is not a record as `kcat -J` prints it: {error}",
                'write one on each line, such as {"key": "EUR", "payload": {"rate": 1.1}, "ts": 1772445600000}',
            ) from None
    return found


def _record(given: Any, timed: bool) -> _Record:
    """A record of what stands on a line; one with a value needs its own time if it is to be `timed`. Raises
    ValueError."""
    if not isinstance(given, dict):
        raise ValueError("it is not a JSON object")
    value = _text(given.get("payload"))
    time = given.get("ts", None if timed or value is None else 0)
    if not isinstance(time, int) or isinstance(time, bool) or abs(time) > _LATEST:
        raise ValueError("it has no `ts`, its time in milliseconds")
    headers = given.get("headers")
    if headers is not None:
        if not isinstance(headers, list) or len(headers) % 2:
            raise ValueError("`headers` is not a list of names and values in turns")
        texts = [_text(one) for one in headers]
        headers = [
            (name, None if value is None else value.encode())
            for name, value in zip(texts[::2], texts[1::2], strict=True)
        ]
    place = [_whole(given, name) for name in ("partition", "offset")]
    return _Record(_text(given.get("key")), value, time, headers, *place)


def _whole(given: Mapping[str, Any], name: str) -> int | None:
    """A number that a record may have. Raises ValueError for something else."""
    number = given.get(name)
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63):
        return number
    raise ValueError(f"`{name}` is not a whole number")


def _text(given: Any) -> str | None:
    """A text, or another value as it is written. Raises ValueError for half of a surrogate pair."""
    if given is None:
        return None
    if isinstance(given, dict | list):
        text = str(given.written)  # type: ignore[union-attr]
    else:
        text = given if isinstance(given, str) else compact(given, str)
    text.encode()
    return text
