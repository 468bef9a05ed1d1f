"""Writes Grafana's dashboard, ``docs/monitoring/dashboard.json``: ``python -m tools.dashboard``.

Its queries ask for what `vsc.runtime.spark.report.exporter` serves; a test compares the names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PANELS", "PATH", "dashboard"]

PATH = Path(__file__).resolve().parents[1] / "docs" / "monitoring" / "dashboard.json"

_OF = '{job=~"$job", instance=~"$instance"}'
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT = 12, 8


class Panel(NamedTuple):
    """A graph: its title, what it shows, Grafana's unit, and its queries with the legends of their lines."""

    title: str
    about: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _rate(counter: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (rate({counter}{_OF}[$__rate_interval]))"


PANELS = (
    Panel(
        "Rows read", "Rows per second that sources gave.", "rowsps",
        ((_rate("vsc_input_rows_total", "source"), "{{source}}"),),
    ),
    Panel(
        "Records written", "Records per second that went to sinks.", "rowsps",
        ((_rate("vsc_output_rows_total", "sink"), "{{sink}}"),),
    ),
    Panel(
        "Lag", "Input that is there and not read yet: files and bytes, or offsets of Kafka.", "short",
        ((f"vsc_source_lag{_OF}", "{{source}} {{unit}}"),),
    ),
    Panel(
        "Event time behind now", "How old the newest event time of each source is.", "s",
        ((f"time() - vsc_source_clock_ms{_OF} / 1000", "{{source}}"),),
    ),
    Panel(
        "Duration of an epoch", "How long the newest epoch took.", "s",
        ((f"vsc_batch_duration_seconds{_OF}", "{{instance}}"),),
    ),
    Panel(
        "Epochs a minute", "How many epochs ended.", "short",
        ((f"60 * {_rate('vsc_batches_total', 'instance')}", "{{instance}}"),),
    ),
    Panel(
        "Dropped records", "Records per second that were dropped, by node and reason.", "rowsps",
        ((_rate("vsc_dropped_records_total", "node", "reason"), "{{node}} {{reason}}"),),
    ),
    Panel(
        "Look-ups that missed", "Look-ups per second that found no row, by node and reason.", "rowsps",
        ((_rate("vsc_missed_lookups_total", "node", "reason"), "{{node}} {{reason}}"),),
    ),
    Panel(
        "Late versions", "Versions of tables per second that came too late for a join, by join.", "rowsps",
        ((_rate("vsc_late_versions_total", "node"), "{{node}}"),),
    ),
    Panel(
        "Records that wait", "For stream time to advance, by store; and for other sources.", "short",
        ((f"vsc_held_records{_OF}", "{{store}}"), (f"vsc_waiting_records{_OF}", "for other sources")),
    ),
    Panel(
        "Clocks behind their sources", "How far the clock of each store is behind: what is held back above it.", "ms",
        ((f"vsc_clock_behind_ms{_OF}", "{{store}}"),),
    ),
    Panel(
        "History kept for joins that are behind", "How far a join is behind a table whose history it keeps.", "ms",
        ((f"vsc_history_behind_ms{_OF}", "{{store}} for {{node}}"),),
    ),
    Panel("Entries of state", "Entries of each store.", "short", ((f"vsc_state_rows{_OF}", "{{store}}"),)),
    Panel(
        "Bytes of state", "Bytes in each store, and what the checkpoint keeps.", "bytes",
        ((f"vsc_state_bytes{_OF}", "{{store}}"), (f"vsc_checkpoint_state_bytes{_OF}", "checkpoint")),
    ),
    Panel(
        "Partitions restored", "The share of partitions whose state came from the checkpoint.", "percentunit",
        ((f"{_rate('vsc_restored_partitions_total', 'instance')} / {_rate('vsc_partitions_total', 'instance')}",
          "{{instance}}"),),
    ),
    Panel(
        "Peaks", "The highest values since the start: open windows, the longest session, a retention that is needed.",
        "short", ((f"vsc_peak{_OF}", "{{node}} {{name}}"),),
    ),
)  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    return {
        "uid": "vsc",
        "title": "vsc",
        "tags": ["vsc", "spark"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
                _variable("job", "label_values(vsc_epoch, job)"),
                _variable("instance", 'label_values(vsc_epoch{job=~"$job"}, instance)'),
            ]
        },
        "panels": [_drawn(number, panel) for number, panel in enumerate(PANELS)],
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name, "label": name, "type": "query", "datasource": _SOURCE, "refresh": 2, "includeAll": True,
        "multi": True, "definition": query, "query": {"query": query, "refId": name}, "current": {},
    }  # fmt: skip


def _drawn(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for i, (query, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(dashboard(), indent=2) + "\n", encoding="utf-8")
