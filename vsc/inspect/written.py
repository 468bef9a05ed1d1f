"""Times and dates that are not in ISO form: the option of the source that has them read as what they are.

A source has one format of times and one of dates. Where some of its columns are in ISO form, those are read, and the
others stay text, for `to_timestamp`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from vsc.inspect.model import DataColumn, Headers
from vsc.plan.types import DATE, STRING, TIMESTAMP, DataType, types_in

__all__ = ["with_formats"]

_OPTIONS = (("timestampFormat", TIMESTAMP), ("dateFormat", DATE))


def with_formats(headers: Headers) -> Headers:
    """The columns with those types that an option can give them, and these options."""
    for option, type in _OPTIONS:
        own = [c for c in headers.columns if c.type == STRING and c.patterns and _type(c) == type and not c.from_path]
        if own and not any(type in types_in(c.type) for c in headers.columns if not c.from_path):
            pattern = _commonest(own)
            columns = tuple(_typed(c, type, pattern) if c in own else c for c in headers.columns)
            headers = replace(headers, columns=columns, options=(*headers.options, (option, pattern)))
    return headers


def _type(column: DataColumn) -> DataType:
    """What its texts are; all patterns of a column have a time of day, or none has."""
    return TIMESTAMP if "mm" in column.patterns[0] else DATE


def _commonest(columns: list[DataColumn]) -> str:
    """The pattern that fits the most columns, the first of several."""
    counts = Counter(pattern for column in columns for pattern in column.patterns)
    return max(counts, key=lambda pattern: counts[pattern])


def _typed(column: DataColumn, type: DataType, pattern: str) -> DataColumn:
    if pattern not in column.patterns:
        return column
    others = tuple(other for other in column.patterns if other != pattern)
    notes = (f"could also be {' or '.join(others)}",) if others else ()
    return replace(column, type=type, notes=notes, patterns=(pattern, *others), local=type == TIMESTAMP)
