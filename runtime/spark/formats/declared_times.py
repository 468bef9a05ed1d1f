"""Times in a format that a source declares (`timestampFormat`, `dateFormat`), read without Spark.

Guarantees: what Spark reads of the same text. It knows the letters of `parse_pattern`; Java knows more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.functions import parse_pattern
from vsc.plan.nodes import Column
from vsc.runtime.errors import SourceError
from vsc.runtime.expressions.calendar import DAY, pattern_reader
from vsc.runtime.expressions.zones import zone_named
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.misfits import misfit
from vsc.runtime.spark.formats.source_columns import BAD
from vsc.runtime.spark.formats.text_files import declared_formats
from vsc.runtime.texts import micros_of
from vsc.runtime.values import to_array

__all__ = ["with_times"]

_OPTIONS = {"timestamp": "timestampFormat", "date": "dateFormat"}


def with_times(rows: pa.RecordBatch, columns: Mapping[int, Column], options: Options) -> pa.RecordBatch:
    """Rows in which these `columns`, by their places, are texts, with those read. SourceError for a pattern that only
    Spark can read."""
    arrays = dict(zip(rows.schema.names, rows.columns, strict=True))
    names, problems = list(arrays), arrays[BAD]
    for place, column in columns.items():
        texts = arrays[names[place]]
        read = _reader(str(column.type), options)
        values = [None if text is None else read(text) for text in texts.to_pylist()]
        arrays[names[place]] = to_array(values, column.type)
        told = [
            misfit(column, text) if value is None and text is not None else None
            for value, text in zip(values, texts.to_pylist(), strict=True)
        ]
        problems = pc.coalesce(problems, pa.array(told, pa.string()))
    return pa.RecordBatch.from_arrays(list((arrays | {BAD: problems}).values()), names=names)


def _reader(type: str, options: Options) -> Callable[[str], int | None]:
    """What reads a text as an internal value of the type; None for a text that is not one."""
    pattern = declared_formats(options)[_OPTIONS[type].lower()]
    try:
        parts, read = parse_pattern(pattern), pattern_reader(pattern)
    except ValueError as error:
        raise SourceError(
            f"{options.place}: only Spark can read times by '{_OPTIONS[type]}' = '{pattern}': {error}",
            "write the rows into the test, or read the column as string and convert it in an expression",
        ) from None
    zone = options.get("time_zone")
    local = type == "timestamp" and zone is not None and all(part.letter != "X" for part in parts)

    def value(text: str) -> int | None:
        micros = read(text)
        if micros is not None and local:
            micros -= zone_named(str(zone)).ahead_at(micros)
        try:
            return None if micros is None else micros_of(micros) // (DAY if type == "date" else 1)
        except ValueError:
            return None

    return value
