"""A run's progress in words: a line for each batch, a summary at the end, and what a user should know of it.

Guarantees: whatever was dropped or not found is named with its node and reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vsc.runtime.metrics import HELD_RECORDS, LONGEST_SESSION, RETENTION_NEEDED, Group, Metrics, Missed
from vsc.runtime.spark.counters import StoreState
from vsc.runtime.spark.progress import Batch, Finished
from vsc.runtime.spark.table_text import time_text

__all__ = ["batch_text", "duration_text", "finished_text", "notes", "summary"]

_SHOWN = 8
"""How many parts of a line of the summary are shown."""


def batch_text(event: Batch) -> str:
    """A batch in one line."""
    rate = event.input_rows / max(event.duration_ms, 1) * 1000
    text = (
        f"batch {event.batch}: {event.input_rows:,} rows in, {event.output_rows:,} out, {event.duration_ms:,} ms "
        f"({rate:,.0f} rows/s), state {event.state_rows:,} rows {_bytes(event.state_bytes)}{_waits(event)}"
    )
    return text + (f", {event.waiting:,} records wait for other sources" if event.waiting else "")


def _waits(event: Batch) -> str:
    """What is held, and what the sources have still to bring, where there is any."""
    behind = [f"{name} {n:,.0f} {unit}" for name, lag in event.lags.items() for unit, n in lag.items() if n]
    held = f", {event.held:,} held" if event.held else ""
    return held + (f", behind: {', '.join(behind)}" if behind else "")


def finished_text(event: Finished) -> str:
    """The end in one line."""
    batches = f"{event.batches:,} batch" + ("" if event.batches == 1 else "es")
    rows = f"{event.input_rows:,} rows in, {event.output_rows:,} out"
    text = f"finished: {batches}, {rows}, {event.duration_ms / 1000:,.1f} s"
    if event.held:
        text += f"; {event.held:,} records wait for stream time to go on (--drain lets them out)"
    if event.waiting:
        text += f"; {event.waiting:,} records wait for sources that have not been read to their end"
    return text


def summary(event: Finished) -> list[str]:
    """The run in a few lines: what went in and out, what was left out and why, what waits, what is kept."""
    found = [("read", _counts(event.read)), ("written", _counts(event.written))]
    lags = [(name, unit, amount) for name, lag in event.lags.items() for unit, amount in lag.items() if amount]
    found += [("lag", [f"{name} {amount:,.0f} {unit}" for name, unit, amount in lags])]
    data = event.metrics.as_dict()
    found += [("dropped", _reasons(data[Group.DROPPED_RECORDS.value]))]
    found += [("not found", _reasons(data[Group.MISSED_LOOKUPS.value]))]
    found += [("held", [f"{name} {s.held:,}" for name, s in event.stores.items() if s.held])]
    found += [("at most", [f"{n:,} held in '{node}'" for node, n in data.get(HELD_RECORDS, {}).items()])]
    longest = data.get(LONGEST_SESSION, {})
    found += [
        ("longest", [f"session {duration_text(n)} in '{node}'" for node, n in longest.items() if isinstance(n, int)])
    ]
    found += [("state", [_store_text(name, store) for name, store in event.stores.items()])]
    lines = []
    for title, parts in found:
        shown = parts[:_SHOWN] + ([f"and {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else [])
        lines += [f"  {title:<9} {', '.join(shown)}"] if shown else []
    return lines


def _counts(rows: Mapping[str, int]) -> list[str]:
    return [f"{name} {count:,}" for name, count in sorted(rows.items())]


def _reasons(nodes: Mapping[str, Any]) -> list[str]:
    return [f"{n:,} {reason} in '{node}'" for node, reasons in nodes.items() for reason, n in reasons.items()]


def _store_text(name: str, store: StoreState) -> str:
    clock = "" if store.stream_time is None else f" up to {time_text(store.stream_time)}"
    return f"{name} {store.rows:,} rows {_bytes(store.bytes)}{clock}"


def notes(metrics: Metrics) -> list[str]:
    """What was dropped and what was missed, each as a phrase with its counts by node and reason."""
    data = metrics.as_dict()
    found = []
    dropped, missed = data[Group.DROPPED_RECORDS.value], data[Group.MISSED_LOOKUPS.value]
    if dropped:
        found.append("dropped " + _by_reason(dropped))
    if missed:
        found.append("look-ups without a row " + _by_reason(missed))
    needed = data.get(RETENTION_NEEDED, {})
    for node, reasons in missed.items():
        late = reasons.get(Missed.OLDER_THAN_RETENTION.value, 0) if isinstance(reasons, dict) else 0
        wanted = needed.get(node)
        if late and isinstance(wanted, int):
            found.append(
                f"in '{node}' {late:,} look-ups were older than the table's history retention: the table is read ahead "
                f"of the stream, and a retention of {duration_text(wanted)} would have served them"
            )
    return found


def _by_reason(nodes: dict[str, Any]) -> str:
    return ", ".join(_reasons(nodes))


def duration_text(ms: int) -> str:
    """A duration as the language writes it, rounded up to two units at most."""
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000), ("ms", 1))
    for i, (name, size) in enumerate(units[:-1]):
        if ms >= size:
            following, smaller = units[i + 1]
            whole, rest = divmod(-(-ms // smaller) * smaller, size)
            text = _unit(whole, name)
            return f"{text} {_unit(rest // smaller, following)}" if rest else text
    return f"{ms} ms"


def _unit(n: int, name: str) -> str:
    return f"{n} ms" if name == "ms" else f"{n} {name}" + ("" if n == 1 else "s")


def _bytes(n: int) -> str:
    size = float(n)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
