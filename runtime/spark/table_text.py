"""Records as a table of text, for the console."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vsc.plan.nodes import Node
from vsc.runtime.records import Batch
from vsc.runtime.values import to_python, to_values

__all__ = ["table_text"]

MAX_WIDTH = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table_text(node: Node, records: Batch, timestamp: bool) -> str:
    """One line a record under a header: the node's columns, for a table the kind of change and the event time.

    `timestamp` asks for the event time of a stream's records as well.
    """
    columns = (*node.schema.key, *node.schema.value)
    header: list[str] = []
    cells: list[list[str]] = []
    if timestamp or node.kind == "table":
        header.append("_timestamp")
        cells.append([_time(int(t)) for t in records.timestamps])
    if node.kind == "table":
        header.append("_change")
        cells.append(["upsert" if p else "delete" for p in records.present])
    header.extend(c.name for c in columns)
    right = [False] * len(cells)
    for column, array in zip(columns, records.columns, strict=True):
        values = to_values(array, column.type)
        cells.append([_text(None if v is None else to_python(v, column.type)) for v in values])
        right.append(str(column.type).partition("(")[0] in _NUMBERS)
    widths = [max(len(name), *map(len, column)) for name, column in zip(header, cells, strict=True)]
    lines = [header, ["-" * w for w in widths], *map(list, zip(*cells, strict=True))]
    return "\n".join(_line(line, widths, right) for line in lines)


_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
    return "  ".join(padded).rstrip()


def _time(ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    except OverflowError:
        return str(ms)


def _text(value: object) -> str:
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
