"""Parquet and ORC files that Spark reads: a look at the types that each has, before its rows are taken.

Spark has some columns converted to what is declared, which cuts, rounds, wraps around or leaves out what does not fit,
without a word. Guarantees: a file of this machine whose types the declared ones do not hold is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from vsc.plan.nodes import Column
from vsc.plan.types import DataType
from vsc.runtime.spark.base.paths import local_path, logged_url
from vsc.runtime.spark.formats.file_errors import mismatch, orc_schema, type_text
from vsc.runtime.spark.formats.parquet_nested import nested_conversion
from vsc.runtime.spark.formats.source_columns import PART

__all__ = ["HeldTypes"]

_SCHEMAS: Mapping[str, Callable[[str], pa.Schema]] = {"orc": orc_schema, "parquet": pq.read_schema}
"""By format, what reads the schema of a file."""
_UNNAMED = "_col"
"""What begins the names in ORC files of old versions of Hive: their columns go by their places."""


@dataclass(frozen=True)
class HeldTypes:
    """For batches of rows with their files, of that `format`, in `PART`: the same batches. `columns`: those declared
    that are read."""

    format: str
    columns: tuple[Column, ...]
    by_case: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, of files that hold what is declared."""
        seen: set[str] = set()
        for batch in batches:
            for path in batch.column(PART).drop_null().unique().to_pylist():
                if path not in seen:
                    seen.add(path)
                    self._check(path)
            yield batch

    def _check(self, path: str) -> None:
        fold = str if self.by_case else str.lower
        schema = _SCHEMAS[self.format](unquote(local_path(path)))
        if self.format == "orc" and all(name.startswith(_UNNAMED) for name in schema.names):
            return
        there = {fold(field.name): field.type for field in schema}
        for column in self.columns:
            held = there.get(fold(column.name))
            if held is not None and not self._holds(held, column.type, fold):
                where = f"the file {logged_url(path)}"
                raise mismatch(where, column.name, str(column.type), type_text(held))

    def _holds(self, held: pa.DataType, declared: DataType, fold: Callable[[str], str]) -> bool:
        """Whether a column of this type comes from the file as it is. (Of bytes that are to be a text, ORC makes
        digits.)"""
        texts = {"string": pa.types.is_binary(held), "binary": pa.types.is_string(held)}
        if self.format == "orc" and texts.get(str(declared), False):
            return False
        if isinstance(held, pa.UuidType) and str(declared) == "string":  # Spark would take the bytes for text
            return False
        return nested_conversion(held, declared, fold, by_value=False) is not None
