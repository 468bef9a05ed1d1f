"""Live lines on a terminal (rich): what a running query does, and under it the numbers that matter, however narrow.

Guarantees: work moves and idleness does not; what is printed meanwhile, on stdout too, stands above the lines; stdout
that is not the terminal is left alone.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from vsc.plan.words import counted, rounded_duration
from vsc.runtime.spark.report.progress import Activity, Batch, Display, Finished, Phase
from vsc.runtime.spark.report.progress_text import ending, lag_texts, stopping_text

__all__ = ["BarDisplay"]

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 10
_PAUSE_SECONDS = 1.0
"""Between two batches nothing runs for a moment: only after that time is a run called idle."""


class BarDisplay(Display):
    """Redraws itself several times a second; at the end the summary replaces it."""

    def __init__(self, stream: IO[str]) -> None:
        self._file = _own(stream)
        # NO_COLOR lets rich write bold text; we write no style at all.
        self._console = Console(file=self._file, color_system=None if os.environ.get("NO_COLOR") else "auto")
        self._live = Live(
            get_renderable=lambda: self, console=self._console, transient=True, refresh_per_second=_FRAMES_A_SECOND,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._activity = Activity(Phase.STARTING)
        self._started = self._since = time.monotonic()
        self._newest: Batch | None = None
        self._rows = self._dropped = self._missed = 0
        self._replaced: tuple[IO[str], IO[str]] | None = None

    def doing(self, activity: Activity) -> None:
        """Shows it from the next frame on."""
        self._start()
        if activity != self._activity:
            self._activity, self._since = activity, time.monotonic()

    def batch(self, event: Batch) -> None:
        """Takes its numbers in."""
        self._newest = event
        self._rows += event.input_rows
        self._dropped += event.dropped
        self._missed += event.missed

    def finished(self, event: Finished) -> None:
        """Replaces the lines by the summary."""
        self._stop()
        for line in ending(event):
            self._console.print(Text(line))

    def close(self) -> None:
        """Takes the lines away."""
        self._stop()
        self._file.flush()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """A frame."""
        now = time.monotonic()
        yield self._what(now, options.max_width)
        if self._newest is not None:
            yield from _filled(self._numbers(self._newest), options.max_width)

    def _what(self, now: float, width: int) -> Text:
        """The first line: what the run does."""
        phase, seconds = self._activity.phase, now - self._since
        idle = phase is Phase.IDLE and seconds >= _PAUSE_SECONDS
        mark = "-" if idle else _FRAMES[int(now * _FRAMES_A_SECOND) % len(_FRAMES)]
        text = Text(f"{mark} {_doing(self._activity, seconds)}", style="dim" if idle else "bold")
        if self._newest is not None and phase is not Phase.STOPPING:
            text.append(f" · {counted(self._rows, 'row')} in {_elapsed(now - self._started)}", style="not bold")
        text.truncate(width, overflow="ellipsis")
        return text

    def _numbers(self, newest: Batch) -> Iterator[tuple[str, str]]:
        """What matters, each with its style."""
        yield f"{_short(newest.input_rows / max(newest.duration_ms, 1) * 1000)} rows/s", ""
        behind: Counter[str] = Counter()
        for lag in newest.lags.values():
            behind.update(dict(list(lag.items())[:1]))
        yield f"lag {', '.join(lag_texts(behind)) or '0'}", ""
        yield f"dropped {_short(self._dropped)}", "yellow" if self._dropped else ""
        yield f"missed {_short(self._missed)}", "yellow" if self._missed else ""
        yield f"held {_short(newest.held)}", ""
        if newest.waiting:
            yield f"waiting {_short(newest.waiting)}", ""
        yield f"state {_short(newest.state_rows)} entries", ""

    def _start(self) -> None:
        if not self._live.is_started:
            # What goes to the terminal by another way would break the lines, and be broken by them.
            self._replaced = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = (
                _Above(self._console) if stream.isatty() else stream for stream in (sys.stdout, sys.stderr)
            )
            self._live.start()

    def _stop(self) -> None:
        self._live.stop()
        if self._replaced is not None:
            sys.stdout, sys.stderr = self._replaced
            self._replaced = None


class _Above(io.TextIOBase):
    """A stream whose lines stand above the live ones."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = ""

    def write(self, text: str) -> int:
        """Prints the lines that are whole."""
        lines, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._console.print(Text(lines), soft_wrap=True)
        return len(text)

    def isatty(self) -> bool:
        """As what it stands for."""
        return True


def _own(stream: IO[str]) -> IO[str]:
    """`stream` by a file descriptor of its own: while Spark starts, that of stderr leads to its log."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return stream
    return os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")


def _doing(activity: Activity, seconds: float) -> str:
    spent = _elapsed(seconds)
    match activity.phase:
        case Phase.STARTING:
            return f"starting Spark, {spent}"
        case Phase.WORKING:
            return f"epoch {activity.batch}, {spent}"
        case Phase.IDLE if seconds >= _PAUSE_SECONDS:
            return f"idle for {spent}, waiting for new data"
        case Phase.STOPPING:
            return stopping_text(activity)
        case _:
            return f"preparing the next epoch, {spent}"


def _elapsed(seconds: float) -> str:
    return rounded_duration(int(seconds) * 1000) if seconds >= 1 else "0 seconds"


def _filled(parts: Iterable[tuple[str, str]], width: int) -> Iterator[Text]:
    """The parts on as many lines of `width` as they need."""
    line = Text(" ")
    for text, style in parts:
        first = len(line) == 1
        if not first and len(line) + len(text) + 3 > width:
            yield line
            line, first = Text(" "), True
        line.append(" " if first else " · ").append(text, style=style)
    yield line


def _short(n: float) -> str:
    """A number in at most six characters: ``9,999``, ``12.3k``, ``4.5M``."""
    if n < 10_000:
        return f"{n:,.0f}"
    thousands = 1 if n < 999_950 else 2 if n < 999_950_000 else 3
    return f"{n / 1000**thousands:,.1f}{' kMG'[thousands]}"
