"""Change events of Debezium as the rows of a table: `format = 'debezium'`.

Guarantees: a row is of the time of its change in the database (`source.ts_ms`); a deletion, and an update that changes
the declared key, delete the row of the old key; a tombstone, which follows a deletion for Kafka's compaction alone,
gives no row. What cannot be read exactly is a bad row with the reason: never another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.runtime.expressions.json_data import Inexact, json_values
from vsc.runtime.expressions.json_text import compact
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.debezium.events import BadEvent, event_of, fields_of, rows_in
from vsc.runtime.spark.formats.debezium.values import Form, Unknown, form_of, value_reader
from vsc.runtime.spark.formats.json_rows import NOT_TEXT
from vsc.runtime.spark.formats.misfits import misfit, shown
from vsc.runtime.spark.formats.text_rows import TextRows, Wanted
from vsc.runtime.values import to_array

__all__ = ["DebeziumReader", "column_names", "debezium_reader"]

_Values = tuple[Any, ...]
_Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row: its values, its time in ms, and whether it is deleted; or why it cannot be read, and its text."""

    values: _Values
    time: int | None = None
    deleted: bool = False
    problem: str | None = None
    text: str | None = None


@dataclass
class DebeziumReader:
    """Reads events as rows of `wanted`. `form`: how columns are written of which no schema tells; `schema`: that of
    events which do not bear it."""

    wanted: Wanted
    form: Form
    schema: Any = field(default=None, repr=False)
    _schema: Any = field(default=None, repr=False)
    _readers: Sequence[_Reader] | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return self.wanted.columns

    def read(self, texts: pa.Array) -> TextRows:
        """See `TextReader`."""
        rows: list[_Row] = []
        places: list[int] = []
        for place, data in enumerate(texts.to_pylist()):
            found = self._rows(data)
            rows += found
            places += [place] * len(found)
        columns = [to_array([row.values[i] for row in rows], c.type) for i, c in enumerate(self.columns)]
        return TextRows(
            columns,
            np.array(places, np.int64),
            pa.array([row.problem for row in rows], pa.string()),
            pa.array([row.text for row in rows], pa.string()),
            pa.array([row.time for row in rows], pa.int64()),
            pa.array([row.deleted for row in rows], pa.bool_()),
        )

    def _rows(self, data: bytes) -> list[_Row]:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return [self._bad(NOT_TEXT, data.decode(errors="backslashreplace"))]
        try:
            try:
                return self._found(text, json_values(text))
            except Inexact:
                return self._found(text, json_values(text, exact=True))
        except ValueError:
            return [self._bad(f"{shown(text)} is not JSON", text)]

    def _found(self, text: str, values: list[Any]) -> list[_Row]:
        if self.wanted.whole and len(values) != 1:
            return [self._bad(f"{shown(text)} is not one JSON object", text)]
        events = [event for value in values for event in (value if isinstance(value, list) else [value])]
        rows = []
        for event in events:
            try:
                rows += self._changed(event)
            except BadEvent as error:
                told = text if len(events) == 1 else compact(event, str).encode(errors="backslashreplace").decode()
                rows.append(self._bad(str(error), told))
        return rows

    def _bad(self, problem: str, text: str) -> _Row:
        return _Row((None,) * len(self.columns), problem=problem, text=text)

    def _changed(self, value: Any) -> list[_Row]:
        """The rows of an event: the deletion of an old key first."""
        event, schema = event_of(value)
        if event is None:
            return []
        readers = self._readers_of(self.schema if schema is None else schema)
        gone = None if event.before is None else self._values(event.before.get, readers, self.wanted.key)
        if event.after is None:
            return [_Row(gone or (), event.time, True)]
        values = self._values(event.value, readers)
        moved = gone is not None and None not in self._key(gone) and self._key(gone) != self._key(values)
        deleted = [_Row(gone or (), event.time, True)] if moved else []
        return [*deleted, _Row(values, event.time)]

    def _key(self, values: _Values) -> _Values:
        return tuple(v for c, v in zip(self.columns, values, strict=True) if c.name in self.wanted.key)

    def _values(
        self, get: Callable[[str], Any], readers: Sequence[_Reader], wanted: frozenset[str] | None = None
    ) -> _Values:
        """The values of a row's columns, or of the `wanted` ones."""
        values = []
        for column, read in zip(self.columns, readers, strict=True):
            value = get(column.name) if wanted is None or column.name in wanted else None
            try:
                values.append(None if value is None else read(value))
            except (ValueError, KeyError, TypeError) as error:
                if isinstance(error, Inexact):
                    raise
                told = misfit(column, value if isinstance(value, str) else compact(value, str))
                raise BadEvent(f"{told}: {error}" if isinstance(error, Unknown) else told) from error
        return tuple(values)

    def _readers_of(self, schema: Any) -> Sequence[_Reader]:
        """What reads the columns of events with this schema: mostly that of the event before."""
        if self._readers is None or schema != self._schema:
            fields = fields_of(schema)
            forms = [form_of(fields.get(column.name), self.form) for column in self.columns]
            self._readers = [value_reader(c.type, form) for c, form in zip(self.columns, forms, strict=True)]
            self._schema = schema
        return self._readers


def debezium_reader(wanted: Wanted, options: Options) -> DebeziumReader:
    """The reader for the options of a source."""
    decimals, times = (None if (given := options.get(name)) is None else str(given) for name in ("decimals", "times"))
    return DebeziumReader(wanted, Form(decimals, times=times))


def column_names(value: Mapping[str, Any]) -> Iterator[str]:
    """The names of the columns in the rows of an event."""
    return (name for row in rows_in(value) for name in row)
