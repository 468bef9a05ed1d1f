"""Records as a table of text, for the console."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from vsc.plan.nodes import Node
from vsc.plan.types import DataType
from vsc.runtime.records import Batch
from vsc.runtime.times import time_text
from vsc.runtime.values import displayed, to_values

__all__ = ["aligned", "cell_text", "is_number", "table_text"]

MAX_WIDTH = 40


def table_text(node: Node, records: Batch, timestamp: bool) -> str:
    """One line a record under a header: the node's columns, for a table the kind of change and the event time.

    `timestamp` asks for the event time of a stream's records as well.
    """
    columns = (*node.schema.key, *node.schema.value)
    header: list[str] = []
    cells: list[list[str]] = []
    if timestamp or node.kind == "table":
        header.append("_timestamp")
        cells.append([time_text(int(t)) for t in records.timestamps])
    if node.kind == "table":
        header.append("_change")
        cells.append(["upsert" if p else "delete" for p in records.present])
    header.extend(c.name for c in columns)
    right = [False] * len(cells)
    for column, array in zip(columns, records.columns, strict=True):
        values = to_values(array, column.type)
        cells.append([cell_text(displayed(v, column.type)) for v in values])
        right.append(is_number(column.type))
    return aligned(header, cells, right)


def aligned(header: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Columns of text under their header; `right`: which ones are set to the right."""
    widths = [max(map(len, (name, *column))) for name, column in zip(header, cells, strict=True)]
    lines = [header, ["-" * w for w in widths], *zip(*cells, strict=True)]
    return "\n".join(_line(line, widths, right) for line in lines)


def is_number(type: DataType) -> bool:
    """Whether a column of that type is set to the right."""
    return str(type).partition("(")[0] in _NUMBERS


_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
    return "  ".join(padded).rstrip()


def cell_text(value: object) -> str:
    """A user's value, on one line and not too long."""
    if value is None:
        return "null"
    if isinstance(value, datetime):
        text = value.astimezone(UTC).isoformat(sep=" ").removesuffix("+00:00")
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, bytes | bytearray):
        text = value.hex()
    else:
        text = str(value)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
