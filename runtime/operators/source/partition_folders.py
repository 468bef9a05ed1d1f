"""Columns whose values are in a file's path: the Hive partition folders ``dt=2026-05-04/country=DE/``.

Names and values are decoded as Hive and Spark write them: ``%2F`` is a slash, ``__HIVE_DEFAULT_PARTITION__`` null. A
folder counts anywhere in the path, if the source declares a column of exactly that name; the last of several counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, MapType, StructType
from vsc.runtime.expressions.cells import read_cells
from vsc.runtime.values import arrow_type

__all__ = ["NO_VALUE", "FolderValue", "folder_texts", "folder_values"]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows whose value is null; of texts, an empty one as well."""
_BYTES = "surrogateescape"
"""Bytes that are not text stay what they are."""


@dataclass(frozen=True, slots=True)
class FolderValue:
    """A column's value from a path, as an array of one element; `problem` says why the text is not a valid value."""

    value: pa.Array
    problem: str | None = None

    def repeated(self, rows: int) -> pa.Array:
        """The column for `rows` rows."""
        return pa.repeat(self.value[0], rows)


def folder_texts(path: str) -> dict[str, str | None]:
    """The names and texts of the partition folders in the path of a file."""
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if name and equals:
            found[unquote(name)] = None if text == NO_VALUE else unquote(text, errors=_BYTES)
    return found


def folder_values(path: str, columns: Sequence[Column]) -> dict[int, FolderValue]:
    """The declared columns whose values are in the path of a file, by their place."""
    if "=" not in path:
        return {}
    texts = folder_texts(path)
    return {i: _value(column, texts[column.name]) for i, column in enumerate(columns) if column.name in texts}


def _value(column: Column, text: str | None) -> FolderValue:
    null = FolderValue(pa.nulls(1, arrow_type(column.type)))
    if text is None:
        return null
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = quote(text[:80], errors=_BYTES)
        return FolderValue(null.value, f"column '{column.name}': the folder's {shown!r} is not UTF-8 text")
    problem = f"column '{column.name}' ({column.type}) cannot hold the folder's {text[:80]!r}"
    if isinstance(column.type, ArrayType | MapType | StructType):
        return FolderValue(null.value, problem)
    value = read_cells(pa.array([text]), column.type)
    return FolderValue(value, problem if value.null_count else None)
