"""A live line on a terminal: rows, rate and state of the running query (rich)."""

from __future__ import annotations

from typing import IO

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from vsc.runtime.spark.progress import Batch, Finished
from vsc.runtime.spark.progress_text import batch_text, finished_text, notes, summary

__all__ = ["BarDisplay"]


class BarDisplay:
    """Redraws one line for each batch; what was dropped or missed stays on the screen at the end."""

    def __init__(self, stream: IO[str]) -> None:
        self._console = Console(file=stream)
        self._rows = 0
        self._milliseconds = 0
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("the first batch takes Spark a few seconds ...", total=None)
        self._progress.start()

    def batch(self, event: Batch) -> None:
        """Redraws the line."""
        self._rows += event.input_rows
        self._milliseconds += event.duration_ms
        mean = self._rows / max(self._milliseconds, 1) * 1000
        dropped = f", dropped {event.dropped:,}" if event.dropped else ""
        self._progress.update(
            self._task, description=f"{batch_text(event)}{dropped} · {self._rows:,} rows in all, {mean:,.0f} rows/s"
        )

    def finished(self, event: Finished) -> None:
        """Replaces the line by the summary."""
        self.close()
        for line in (*summary(event), finished_text(event), *notes(event.metrics)):
            self._console.print(line, highlight=False)

    def close(self) -> None:
        """Takes the line away."""
        self._progress.stop()
