"""Answers of ``vsc store`` as a table, as JSON (an array with one object a line) or as CSV."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from vsc.plan.words import rounded_duration
from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.spark.base.table_text import aligned, cell_text, is_number
from vsc.runtime.spark.state.store_sizes import SKEW, StoreSize
from vsc.runtime.times import time_text
from vsc.runtime.values import displayed

__all__ = ["rows_text", "sizes_text", "skew_hint"]

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


def sizes_text(sizes: Sequence[StoreSize], style: str, by_partition: bool) -> str:
    """The stores with their sizes. As a table or CSV: one line for each store, or for each partition of a store."""
    if style == "json":
        return _json([
            {
                "store": s.store.name, "node": s.store.owner, "stage": s.store.stage, "kind": s.store.kind,
                "key": {c.name: str(c.type) for c in s.store.key}, "rows": s.rows, "bytes": s.bytes,
                "stream_time": s.clock.time, "behind": s.clock.behind, "copy": not s.store.canonical,
                "partitions": [part._asdict() for part in s.parts],
            }
            for s in sizes
        ])  # fmt: skip
    about = ["store", "node", "stage", "kind", "key"]
    stores = [(s.store.name, s.store.owner, s.store.stage, s.store.kind, _key(s.store)) for s in sizes]
    sized: list[tuple[Any, ...]]
    if by_partition:
        about.append("partition")
        sized = [(*row, i, *part) for row, s in zip(stores, sizes, strict=True) for i, part in enumerate(s.parts)]
    else:
        sized = [(*row, s.rows, s.bytes, *s.clock) for row, s in zip(stores, sizes, strict=True)]
    names = [*about, "rows", "bytes", "stream_time", *(() if by_partition else ("behind",))]
    if style == "csv":
        return _csv(names, sized)
    at = len(about)
    texts = [
        (*map(str, row[:at]), f"{row[at]:,}", f"{row[at + 1]:,}", _extra_text("timestamp", row[at + 2]),
         *("" if behind is None else rounded_duration(behind) for behind in row[at + 3 :]))
        for row in sized
    ]  # fmt: skip
    right = [name in ("stage", "partition", "rows", "bytes") for name in names]
    return aligned(names, [[text[i] for text in texts] for i in range(len(names))], right) + "\n"


def skew_hint(sizes: Sequence[StoreSize]) -> str | None:
    """A hint that names skewed stores: one partition is far larger than the median. None if no store is skewed."""
    found = [f"{s.store.name} (partition {s.skewed})" for s in sizes if s.skewed is not None]
    if not found:
        return None
    return (
        f"skewed, one partition has more than {SKEW} times the bytes of the median one: {', '.join(found)}. "
        "If it holds many keys, `vsc upgrade --partitions N` spreads them; if it holds one, choose another key"
    )


def _key(store: StoreInfo) -> str:
    return ", ".join(column.name for column in store.key)


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
    """JSON in which a decimal keeps its digits. NaN, infinities and other values that JSON lacks become text."""
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
    """The key of a map as a name in JSON."""
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
