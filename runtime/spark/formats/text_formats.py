"""The formats in which texts are rows, by name. Not CSV: its texts need the header of their file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.debezium import column_names, debezium_reader
from vsc.runtime.spark.formats.json_rows import JsonReader
from vsc.runtime.spark.formats.text_rows import TextReader, Wanted

__all__ = ["TEXT_FORMATS"]


@dataclass(frozen=True)
class TextFormat:
    """How a source reads one. `names`: the columns in a JSON object of a text."""

    reader: Callable[[Wanted, Options], TextReader]
    names: Callable[[dict[str, Any]], Iterable[str]]


def _json(wanted: Wanted, options: Options) -> TextReader:
    return JsonReader(wanted.columns, wanted.zone, wanted.whole, wanted.bare)


TEXT_FORMATS: Mapping[str, TextFormat] = {
    "json": TextFormat(_json, lambda value: value),
    "debezium": TextFormat(debezium_reader, column_names),
}
