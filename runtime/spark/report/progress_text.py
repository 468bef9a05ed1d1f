"""A run's progress in words: a line for each batch, a summary at the end, and what a user should know of it.

Guarantees: whatever was dropped or not found is named with its node and reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vsc.plan.words import bytes_text, counted, rounded_duration
from vsc.runtime.metrics import (
    GRACE_NEEDED,
    HELD_RECORDS,
    LATE_VERSIONS,
    LONGEST_SESSION,
    RETENTION_NEEDED,
    Dropped,
    Group,
    Metrics,
    Missed,
)
from vsc.runtime.spark.exchange.counters import StoreState
from vsc.runtime.spark.report.progress import Activity, Batch, Finished, Lags
from vsc.runtime.spark.state.node_clocks import HeldHistory
from vsc.runtime.times import time_text

__all__ = [
    "batch_text",
    "ending",
    "finished_text",
    "lag_texts",
    "notes",
    "stopping_text",
    "summary",
    "summary_parts",
]

_SHOWN = 8
"""How many parts of a line of the summary are shown."""


def stopping_text(activity: Activity) -> str:
    """What a run answers to the first Ctrl-C."""
    return "stopping" if activity.batch is None else f"finishing epoch {activity.batch}, again to stop now"


def batch_text(event: Batch) -> str:
    """An epoch in one line."""
    rate = event.input_rows / max(event.duration_ms, 1) * 1000
    parts = [
        f"epoch {event.batch}: {counted(event.input_rows, 'row')} in",
        f"{event.output_rows:,} out",
        f"{rounded_duration(event.duration_ms)} ({rate:,.0f} rows/s)",
        f"state {counted(event.state_rows, 'entry')} {bytes_text(event.state_bytes)}",
    ]
    parts += [_restored(event)] if event.restored else []
    parts += [f"{event.held:,} held"] if event.held else []
    behind = _behind(event.lags)
    parts += [f"behind: {', '.join(behind)}"] if behind else []
    parts += [f"{_waiting(event.waiting)} for other sources"] if event.waiting else []
    return ", ".join(parts)


def _restored(event: Batch | Finished) -> str:
    return f"{event.restored:,} of {counted(event.partitions, 'partition')} restored"


def lag_texts(lag: Mapping[str, float]) -> list[str]:
    """Input still to be read from a source, by unit, where that is anything."""
    return [_amount(int(n), unit) for unit, n in lag.items() if n]


def _behind(lags: Lags) -> list[str]:
    return [f"{name} {' '.join(lag_texts(lag))}" for name, lag in lags.items() if any(lag.values())]


def _amount(n: int, unit: str) -> str:
    if unit == "bytes":
        return bytes_text(n)
    return counted(n, unit[:-1]) if unit in ("files", "offsets") else f"{n:,} {unit}"


def _waiting(n: int) -> str:
    return "1 record waits" if n == 1 else f"{n:,} records wait"


def ending(event: Finished) -> list[str]:
    """The end of a run: its summary, and a last line that begins with ``finished`` and says what to do."""
    return [*summary(event), "; ".join([finished_text(event), *_advice(event.metrics.as_dict())])]


def finished_text(event: Finished) -> str:
    """The end in one line."""
    rows = f"{counted(event.input_rows, 'row')} in, {event.output_rows:,} out"
    text = f"finished: {counted(event.batches, 'epoch')}, {rows}, {rounded_duration(event.duration_ms)}"
    if event.held:
        held, them = ("1 record is", "it") if event.held == 1 else (f"{event.held:,} records are", "them")
        text += f"; {held} held until stream time advances (--drain emits {them})"
    if event.waiting:
        text += f"; {_waiting(event.waiting)} for sources that have not been read to their end"
    return text


def summary(event: Finished) -> list[str]:
    """The run in a few lines: those of `summary_parts`."""
    lines = []
    for title, parts in summary_parts(event):
        shown = parts[:_SHOWN] + ([f"and {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else [])
        lines.append(f"  {title:<9} {', '.join(shown)}")
    return lines


def summary_parts(event: Finished) -> list[tuple[str, list[str]]]:
    """What went in and out, what was left out and why, what is held and kept: titles with the parts of each."""
    titled = [("read", _counts(event.read)), ("written", _counts(event.written))]
    titled += [("lag", _behind(event.lags))]
    data = event.metrics.as_dict()
    titled += [("dropped", _reasons(data[Group.DROPPED_RECORDS.value]))]
    titled += [("not found", _reasons(data[Group.MISSED_LOOKUPS.value]))]
    titled += [
        (
            "late",
            [f"{counted(n, 'version')} in '{node}'" for node, n in data[LATE_VERSIONS].items() if isinstance(n, int)],
        )
    ]
    titled += [("held", [f"{name} {s.held:,}" for name, s in event.stores.items() if s.held])]
    titled += [
        ("at most", [f"{n:,} held in a partition of '{node}'" for node, n in data.get(HELD_RECORDS, {}).items()])
    ]
    longest = data.get(LONGEST_SESSION, {})
    titled += [
        ("longest", [f"session {rounded_duration(n)} in '{node}'" for node, n in longest.items() if isinstance(n, int)])
    ]
    titled += [("state", [_store_text(name, store) for name, store in event.stores.items()])]
    titled += [("history", [_history_text(name, held) for name, held in event.histories.items()])]
    titled += [("restored", [_restored(event).removesuffix(" restored")])] if event.restored else []
    titled += [("took", _shares(event.spent))]
    return [(title, parts) for title, parts in titled if parts]


def _counts(rows: Mapping[str, int]) -> list[str]:
    return [f"{name} {count:,}" for name, count in sorted(rows.items())]


def _shares(spent: Mapping[str, float]) -> list[str]:
    """What share of the time went where, the most first."""
    whole = sum(spent.values())
    shares = {name: round(100 * part / whole) for name, part in spent.items() if whole}
    return [f"{name} {share} %" for name, share in sorted(shares.items(), key=lambda of: -of[1]) if share]


def _reasons(nodes: Mapping[str, Any]) -> list[str]:
    return [f"{n:,} {reason} in '{node}'" for node, reasons in nodes.items() for reason, n in reasons.items()]


def _store_text(name: str, store: StoreState) -> str:
    clock = "" if store.stream_time is None else f" up to {time_text(store.stream_time)}"
    return f"{name} {counted(store.rows, 'entry')} {bytes_text(store.bytes)}{clock}"


def _history_text(name: str, held: HeldHistory) -> str:
    if held.behind is None:
        return f"all of {name} is kept for '{held.node}', whose stream has brought nothing yet"
    return f"{name} is kept for '{held.node}', which is {rounded_duration(held.behind)} behind"


def notes(metrics: Metrics) -> list[str]:
    """What was dropped, missed or late, each as a phrase with its counts by node and reason, and what to do."""
    data = metrics.as_dict()
    dropped, missed = data[Group.DROPPED_RECORDS.value], data[Group.MISSED_LOOKUPS.value]
    found = ["dropped " + ", ".join(_reasons(dropped))] if dropped else []
    found += ["look-ups without a row " + ", ".join(_reasons(missed))] if missed else []
    late = [f"{n:,} in '{node}'" for node, n in data[LATE_VERSIONS].items()]
    found += ["late versions " + ", ".join(late)] if late else []
    return found + _advice(data)


def _advice(data: Mapping[str, Any]) -> list[str]:
    """Which history retention would have served look-ups that found none, which grace what came too late."""
    return [*_longer_retention(data), *_longer_grace(data), *_late_versions(data)]


def _late_versions(data: Mapping[str, Any]) -> list[str]:
    found = []
    for node, n in data[LATE_VERSIONS].items():
        them, needed = "it" if n == 1 else "them", rounded_duration(data[GRACE_NEEDED][node])
        found.append(
            f"in '{node}' {counted(n, 'row')} of the right side came after records of their time had been joined, "
            f"which may be wrong now: with `grace {needed}` the join would have waited for {them}; in a join with a "
            f"table, `correct ... within {needed}` would have corrected the results"
        )
    return found


def _longer_grace(data: Mapping[str, Any]) -> list[str]:
    dropped = data[Group.DROPPED_RECORDS.value]
    late = {node: dropped.get(node, {}).get(Dropped.EXPIRED.value, 0) for node in data.get(GRACE_NEEDED, {})}
    return [
        f"'{node}' dropped {counted(n, 'record')} that came too late to be compared, whether they repeat one or not: "
        f"a grace of {rounded_duration(data[GRACE_NEEDED][node])} would have been enough"
        for node, n in late.items()
        if n
    ]


def _longer_retention(data: Mapping[str, Any]) -> list[str]:
    hints = []
    needed = data.get(RETENTION_NEEDED, {})
    for node, reasons in data[Group.MISSED_LOOKUPS.value].items():
        late, wanted = reasons.get(Missed.OLDER_THAN_RETENTION.value, 0), needed.get(node)
        if late and wanted is not None:
            were, them = ("was", "it") if late == 1 else ("were", "them")
            hints.append(
                f"in '{node}' {counted(late, 'look-up')} {were} older than the table's history retention: the table "
                f"is read ahead of the stream, and a retention of {rounded_duration(wanted)} would have been enough "
                f"for {them}"
            )
    return hints
