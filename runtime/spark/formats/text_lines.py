"""The lines of files, which Spark hands to a worker, as the rows that stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT
from vsc.runtime.spark.formats.text_rows import TextReader, with_own

__all__ = ["TextLines"]


@dataclass(frozen=True)
class TextLines:
    """For batches of (line, *others): the declared columns, others, `BAD`, `CORRUPT`, and what rows say of themselves.

    `texts`: each row has its text, as it is not yet known which can be read.
    """

    reader: TextReader
    others: tuple[str, ...]
    texts: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the lines."""
        names = [f"_vsc_column_{i}" for i in range(len(self.reader.columns))]
        for batch in batches:
            rows = self.reader.read(batch.column(0))
            places, texts = pa.array(rows.places), rows.texts
            if self.texts:
                lines = pc.if_else(rows.problems.is_null(), batch.column(0).take(places), None)
                texts = pc.coalesce(texts, lines.cast(pa.string()))
            columns = dict(zip(names, rows.columns, strict=True))
            columns |= {name: batch.column(i).take(places) for i, name in enumerate(self.others, 1)}
            columns |= {BAD: rows.problems, CORRUPT: texts}
            columns = with_own(columns, rows)
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
