"""The lines of JSON files, which Spark hands to a worker, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.spark.formats.json_rows import JsonReader
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT

__all__ = ["JsonLines"]


@dataclass(frozen=True)
class JsonLines:
    """For batches of (line, *others): the declared columns, others, `BAD`, and `CORRUPT`.

    `texts`: each row has its text, as it is not yet known which can be read.
    """

    reader: JsonReader
    others: tuple[str, ...]
    texts: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the lines."""
        names = [*(f"_vsc_column_{i}" for i in range(len(self.reader.columns))), *self.others, BAD, CORRUPT]
        for batch in batches:
            rows = self.reader.read(batch.column(0))
            places, texts = pa.array(rows.places), rows.texts
            if self.texts:
                lines = pc.if_else(rows.problems.is_null(), batch.column(0).take(places), None)
                texts = pc.coalesce(texts, lines.cast(pa.string()))
            others = [batch.column(i).take(places) for i in range(1, batch.num_columns)]
            yield pa.RecordBatch.from_arrays([*rows.columns, *others, rows.problems, texts], names=names)
