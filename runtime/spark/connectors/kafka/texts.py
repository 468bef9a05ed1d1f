"""Keys and values of Kafka's records: a worker gets their bytes from Spark, and makes rows of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Column
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part
from vsc.runtime.spark.connectors.kafka.registry.reader import RegistryReader
from vsc.runtime.spark.connectors.kafka.windowed import KAFKA, KafkaKeys, WindowedReader
from vsc.runtime.spark.formats.json_rows import NOT_TEXT
from vsc.runtime.spark.formats.misfits import shown
from vsc.runtime.spark.formats.source_columns import (
    BAD,
    CORRUPT,
    DELETED,
    KEY,
    PART,
    PARTITION,
    VALUE,
    kafka_part,
)
from vsc.runtime.spark.formats.text_formats import TEXT_FORMATS
from vsc.runtime.spark.formats.text_rows import TextReader, TextRows, Wanted, with_own

__all__ = ["KafkaTexts", "texts_reader"]

_TEXTS = {"key": KEY, "value": VALUE}


@dataclass(frozen=True)
class _Texts:
    """The texts of one part, and the places of its columns among all that are declared; `avro`: without a registry."""

    part: str
    reader: TextReader
    places: tuple[int, ...]
    avro: bool = False

    def problems(self, texts: pa.Array, rows: TextRows) -> pa.Array:
        """Why records cannot be read."""
        of_text = rows.problems
        if of_text.null_count == len(of_text):
            return of_text
        return pa.array([self._problem(*pair) for pair in zip(of_text.to_pylist(), texts.to_pylist(), strict=True)])

    def _problem(self, problem: str | None, text: bytes) -> str | None:
        if problem == NOT_TEXT:
            return f"its {self.part} is not UTF-8 text"
        if problem is None:
            return problem
        if isinstance(self.reader, RegistryReader | WindowedReader):
            return f"its {self.part} cannot be read: {problem}"
        if self.avro:
            return f"its {self.part} is not of its Avro schema: {problem}"
        if self.part == "value":
            return problem
        wanted = ", ".join(f"{column.name} {column.type}" for column in self.reader.columns)
        return f"its key {shown(text.decode())} is not JSON for ({wanted})"


@dataclass(frozen=True)
class KafkaTexts:
    """For batches of records: `KEY` and `VALUE` as they apply, `PARTITION`, other `source_columns`, and the declared
    columns that are in neither text, called by their place (`_vsc_column_0`). Gives the `count` declared columns, then
    `PART` (of `topic`), `DELETED`, `BAD`, `CORRUPT` with the text of a value that cannot be read, and the others.

    A record is a row, also without a value; only if the format tells which rows are `deleted`, it may be any number of
    rows, and is none without a value. Such a format has the key in the value.
    """

    texts: tuple[_Texts, ...]
    topic: str
    count: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the records."""
        names = [f"_vsc_column_{i}" for i in range(self.count)]
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns[DELETED], columns[BAD] = columns[VALUE].is_null(), pa.nulls(batch.num_rows, pa.string())
            if PARTITION in columns:
                columns[PART] = _parts(self.topic, columns.pop(PARTITION))
            for texts in self.texts:
                given = columns.pop(_TEXTS[texts.part])
                there = given.drop_null() if given.null_count else given
                rows = texts.reader.read(there)
                back = None if there is given else _places(given)
                if rows.deleted is not None:
                    of_rows = pa.array(np.flatnonzero(given.is_valid())[rows.places])
                    columns = with_own({name: column.take(of_rows) for name, column in columns.items()}, rows)
                    there, back = given.take(of_rows), None
                for place, column in zip(texts.places, rows.columns, strict=True):
                    columns[names[place]] = _back(column, back)
                problems = _back(texts.problems(there, rows).cast(pa.string()), back)
                columns[BAD] = pc.coalesce(columns[BAD], problems)
                if texts.part == "value":
                    columns[CORRUPT] = _back(rows.texts, back)
            declared = [columns.pop(name) for name in names]
            yield pa.RecordBatch.from_arrays([*declared, *columns.values()], names=[*names, *columns])


@dataclass(frozen=True)
class _Strings:
    """Reads texts as they are, as the only one of the `columns`."""

    columns: tuple[Column, ...]

    def read(self, texts: pa.Array) -> TextRows:
        """The rows of texts, which are bytes, none of them null."""
        nothing = pa.nulls(len(texts), pa.string())
        try:
            found, problems = texts.cast(pa.string()), nothing
        except pa.ArrowInvalid:
            decoded = [_decoded(text) for text in texts.to_pylist()]
            found = pa.array(decoded, pa.string())
            problems = pc.if_else(found.is_null(), NOT_TEXT, nothing)
        return TextRows([found], np.arange(len(texts)), problems, nothing)


def texts_reader(
    record: Layout, columns: Sequence[Column], key: frozenset[str], options: Options, rank: int = 0
) -> KafkaTexts:
    """What reads the parts of a record. `key` are the names of key columns, `rank` is that of the source."""
    texts = tuple(_texts(part, columns, key, options, rank) for part in record.parts)
    return KafkaTexts(texts, str(options.get("topic")), len(columns))


def _texts(part: Part, columns: Sequence[Column], key: frozenset[str], options: Options, rank: int) -> _Texts:
    wanted = Wanted(part.columns, key, whole=True, bare=part.name == "key")
    places = tuple(columns.index(column) for column in part.all_columns)
    reader: TextReader | None = None
    if part.form in TEXT_FORMATS:
        reader = TEXT_FORMATS[part.form].reader(wanted, options)
    elif part.form == KAFKA:
        reader = KafkaKeys(part.columns)
    elif part.form == "string":
        reader = _Strings(part.columns)
    elif part.avro is not None:
        from vsc.runtime.spark.connectors.kafka.avro import AvroReader  # needs fastavro

        reader = AvroReader(part.avro)
    if part.registered:
        reader = RegistryReader(rank, part.name, part.form, part.columns, reader)
    assert reader is not None, part.form
    reader = reader if part.bounds is None else WindowedReader(reader, part.bounds)
    return _Texts(part.name, reader, places, part.avro is not None)


def _places(given: pa.Array) -> pa.Array:
    """Where each row is among those that are not null; null for a null."""
    present = given.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.cumsum(present) - 1, pa.int64(), mask=~present)


def _back(column: pa.Array, places: pa.Array | None) -> pa.Array:
    """A column of texts at the places of their records; None for the same places."""
    return column if places is None else column.take(places)


def _parts(topic: str, partitions: pa.Array) -> pa.Array:
    """The source partitions of records."""
    numbers = partitions.dictionary_encode()
    names = [kafka_part(topic, number) for number in numbers.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(numbers.indices)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
