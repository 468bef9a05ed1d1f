"""Answers of ``vsc store`` as a table, as JSON (an array, an object a line) or as CSV."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.spark.table_text import aligned, cell_text, is_number
from vsc.runtime.times import time_text
from vsc.runtime.values import displayed

if TYPE_CHECKING:
    from vsc.runtime.spark.epoch_state import StoreSize

__all__ = ["rows_text", "sizes_text"]

_TIMES = ("valid_from", "valid_to", "timestamp", "due")


def rows_text(store: StoreInfo, found: Sequence[Sequence[Any]], style: str) -> str:
    """The rows of a store, as `State.columns` gives them."""
    columns = (*store.key, *store.value)
    cells = [[displayed(v, c.type) for v in values] for c, values in zip(columns, found, strict=False)]
    status, extra = found[len(columns)], found[len(columns) + 1 :]
    if style == "json":
        return _json(
            [_object(store, *row) for row in zip(_rows(cells, status), status, _rows(extra, status), strict=True)]
        )
    names = store.names
    if style == "csv":
        return _csv(names, list(zip(*cells, status, *extra, strict=True)))
    shown = [[cell_text(v) if v is not None else "" for v in column] for column in (*cells, status)]
    shown += [[_extra_text(n, v) for v in column] for n, column in zip(store.extra, extra, strict=True)]
    right = [*(is_number(c.type) for c in columns), False, *(n not in _TIMES for n in store.extra)]
    return aligned(names, shown, right) + "\n"


def sizes_text(sizes: Sequence[StoreSize], style: str) -> str:
    """The stores with their sizes."""
    if style == "json":
        return _json([
            {
                "store": s.store.name, "node": s.store.owner, "stage": s.store.stage, "kind": s.store.kind,
                "key": {c.name: str(c.type) for c in s.store.key}, "rows": s.rows, "bytes": s.bytes,
                "stream_time": s.stream_time, "stream_times": list(s.stream_times), "copy": not s.store.canonical,
            }
            for s in sizes
        ])  # fmt: skip
    names = ["store", "node", "stage", "kind", "key", "rows", "bytes", "stream_time"]
    rows = [
        (s.store.name, s.store.owner, s.store.stage, s.store.kind, ", ".join(c.name for c in s.store.key),
         s.rows, s.bytes, s.stream_time)
        for s in sizes
    ]  # fmt: skip
    if style == "csv":
        return _csv(names, rows)
    shown = [
        [str(row[i]) if i < 5 else f"{row[i]:,}" if i < 7 else _extra_text("timestamp", s.stream_time)
         for row, s in zip(rows, sizes, strict=True)]
        for i in range(len(names))
    ]  # fmt: skip
    return aligned(names, shown, [False, False, True, False, False, True, True, False]) + "\n"


def _rows(columns: Sequence[Sequence[Any]], like: Sequence[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * len(like)


def _object(store: StoreInfo, row: tuple[Any, ...], status: str, extra: tuple[int | None, ...]) -> dict[str, Any]:
    width = len(store.key)
    value: dict[str, Any] | None = {c.name: v for c, v in zip(store.value, row[width:], strict=True)}
    if status in ("tombstone", "no_record", "older_than_retention", "expression_failed"):
        value = None
    key = {c.name: v for c, v in zip(store.key, row[:width], strict=True)}
    return {"key": key, "value": value, "status": status, **dict(zip(store.extra, extra, strict=True))}


def _json(objects: Sequence[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join("  " + _json_text(o) for o in objects) + ("\n]\n" if objects else "]\n")


def _json_text(value: Any) -> str:
    """JSON in which a decimal keeps its digits; what JSON has no number for is text."""
    match value:
        case dict():
            members = (f"{json.dumps(_name(k), ensure_ascii=False)}: {_json_text(v)}" for k, v in value.items())
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(map(_json_text, value)) + "]"
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return json.dumps(str(value))
        case datetime() | date() | bytes():
            return json.dumps(_plain(value))
        case _:
            return json.dumps(value, ensure_ascii=False)


def _name(value: Any) -> str:
    """The key of a map as JSON has it."""
    return value if isinstance(value, str) else _json_text(value).strip('"')


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            return format(value, "f")
        case bool():
            return str(value).lower()
        case dict() | list():
            return _json_text(value)
        case _:
            return value


def _csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """CSV with a header; null is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(v) for v in row] for row in rows)
    return out.getvalue()


def _extra_text(name: str, value: int | None) -> str:
    if value is None:
        return ""
    return time_text(value) if name in _TIMES else f"{value:,}"
