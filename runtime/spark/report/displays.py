"""Who shows a run's progress on a stream (stderr): as lines or a live bar for a person, as JSON for a program.

Guarantees: the last line of `LinesDisplay` and of the bar holds what a user should act on; a line of JSON is as
``docs/running.md`` says. Not for Prometheus: see `exporter`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import IO, Any, Literal

from vsc.runtime.spark.report.progress import Activity, Batch, Display, Finished, Phase
from vsc.runtime.spark.report.progress_text import batch_text, ending, notes, stopping_text

__all__ = ["Both", "JsonDisplay", "LinesDisplay", "display"]

Style = Literal["auto", "bar", "lines", "json", "none"]


def display(style: Style, stream: IO[str]) -> Display:
    """The display of a style; ``auto`` is a bar on a terminal that can move its cursor, else lines."""
    if style == "auto":
        style = "bar" if stream.isatty() and os.environ.get("TERM") != "dumb" else "lines"
    match style:
        case "bar":
            from vsc.runtime.spark.report.progress_bar import BarDisplay  # rich is slow to load

            return BarDisplay(stream)
        case "lines":
            return LinesDisplay(stream)
        case "json":
            return JsonDisplay(stream)
        case _:
            return Display()


class Both(Display):
    """Two displays at once."""

    def __init__(self, first: Display, second: Display) -> None:
        self._displays = first, second

    def doing(self, activity: Activity) -> None:
        """To both."""
        for one in self._displays:
            one.doing(activity)

    def batch(self, event: Batch) -> None:
        """To both."""
        for one in self._displays:
            one.batch(event)

    def finished(self, event: Finished) -> None:
        """To both."""
        for one in self._displays:
            one.finished(event)

    def close(self) -> None:
        """Closes both."""
        for one in self._displays:
            one.close()


class LinesDisplay(Display):
    """One line a batch, a few at the end."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._stopping = False

    def doing(self, activity: Activity) -> None:
        """One line when the run begins to stop."""
        if activity.phase is Phase.STOPPING and not self._stopping:
            self._stopping = True
            self._show(stopping_text(activity))

    def batch(self, event: Batch) -> None:
        """One line with all that there is to say of it."""
        self._show("; ".join([batch_text(event), *notes(event.metrics)]))

    def finished(self, event: Finished) -> None:
        """What there was in all; the last line holds what a user should act on."""
        self._show(*ending(event))

    def _show(self, *lines: str) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()


class JsonDisplay(Display):
    """One JSON object a line: see ``docs/running.md``. `logged`: with a time and a level, as the lines of a log."""

    def __init__(self, stream: IO[str], logged: bool = False) -> None:
        self._stream = stream
        self._logged = logged
        self._stopping = False

    def doing(self, activity: Activity) -> None:
        """``{"event": "stopping", "batch": N}`` when the run begins to stop; N is null where no batch is at work."""
        if activity.phase is Phase.STOPPING and not self._stopping:
            self._stopping = True
            self._write("stopping", {"batch": activity.batch})

    def batch(self, event: Batch) -> None:
        """``{"event": "batch", ...}``."""
        names = ("batch", "input_rows", "output_rows", "duration_ms", "state_rows", "state_bytes", "waiting", "dropped")
        self._show("batch", (*names, "late", "missed", "held", "partitions", "restored"), event)

    def finished(self, event: Finished) -> None:
        """``{"event": "finished", ...}``."""
        names = ("batches", "input_rows", "output_rows", "duration_ms", "held", "waiting", "dropped")
        self._show("finished", (*names, "late", "missed", "partitions", "restored"), event)

    def _show(self, kind: str, names: tuple[str, ...], event: Batch | Finished) -> None:
        line: dict[str, Any] = {name: getattr(event, name) for name in names}
        line["metrics"] = event.metrics.as_dict()
        sources = sorted({*event.read, *event.lags})
        line["sources"] = {
            n: {"rows": event.read.get(n, 0), "lag": event.lags.get(n, {}), "clock": event.clocks.get(n)}
            for n in sources
        }
        line["sinks"] = {name: {"rows": rows} for name, rows in sorted(event.written.items())}
        line["stores"] = {name: {**asdict(one), "behind": event.behind.get(name)} for name, one in event.stores.items()}
        for name, held in event.histories.items():
            line["stores"][name]["history_kept_for"] = held._asdict()
        self._write(kind, line)

    def _write(self, kind: str, line: dict[str, Any]) -> None:
        head = {"time": datetime.now(UTC).isoformat(), "level": "info"} if self._logged else {}
        print(json.dumps({**head, "event": kind, **line}, separators=(", ", ": ")), file=self._stream, flush=True)
