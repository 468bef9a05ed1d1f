"""What ``vsc run`` says on stderr besides its progress: in words, or as lines of a structured log."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from vsc.cli.problems import Problem, tell, use_color

__all__ = ["JsonMessages", "Messages", "Warnings"]

LOGGER = "vsc"
"""The logger of vsc: it gets a run's warnings."""

Level = Literal["info", "warning", "error"]


class Messages:
    """Says things in words, in colour on a terminal."""

    @property
    def color(self) -> bool:
        """Whether text rendered for it may hold ANSI escapes."""
        return use_color(sys.stderr)

    def say(self, level: Level, text: str) -> None:
        """Says `text`, one line or more."""
        tell(text)

    def problem(self, problem: Problem) -> None:
        """Says what is wrong, and what to do."""
        self.say(problem.severity, str(problem))


class Warnings(logging.Handler):
    """Hands log records to `messages`, or discards them if that is None. A context manager."""

    def __init__(self, messages: Messages | None) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Says the record's message."""
        if self._messages is not None:
            said = record.msg
            code, help = getattr(said, "code", None), getattr(said, "help", None)  # of a VscRuntimeError
            self._messages.problem(Problem(getattr(said, "message", record.getMessage()), help, code, "warning"))

    def __enter__(self) -> None:
        logging.getLogger(LOGGER).addHandler(self)

    def __exit__(self, *error: object) -> None:
        logging.getLogger(LOGGER).removeHandler(self)


class JsonMessages(Messages):
    """One JSON object a line: ``time`` (ISO, UTC), ``level``, ``event`` (``message``), ``message``, and for an error
    its ``code`` and ``help``."""

    color = False

    def say(self, level: Level, text: str) -> None:
        """Writes a line with `text`."""
        self._write(level, text, {})

    def problem(self, problem: Problem) -> None:
        """Writes a line with the problem's parts."""
        self._write(problem.severity, problem.message, {"code": problem.code, "help": problem.help})

    @staticmethod
    def _write(level: Level, text: str, more: dict[str, str | None]) -> None:
        head = {"time": datetime.now(UTC).isoformat(), "level": level, "event": "message", "message": text.strip()}
        tell(json.dumps({**head, **more}))
