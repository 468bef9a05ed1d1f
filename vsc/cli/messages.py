"""What ``vsc run`` says on stderr beside its progress: in words, or as the lines of a structured log."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vsc.runtime.errors import VscRuntimeError

__all__ = ["JsonMessages", "Messages"]

Level = Literal["info", "warning", "error"]


class Messages:
    """Says things in words."""

    def say(self, level: Level, text: str) -> None:
        """Says `text`, one line or more."""
        print(text, file=sys.stderr)

    def error(self, error: VscRuntimeError) -> None:
        """Says what went wrong, and what to do."""
        self.say("error", f"error{error}")


class JsonMessages(Messages):
    """One JSON object a line: ``time`` (ISO, UTC), ``level``, ``event`` (``message``), ``message``, and of an error its
    ``code`` and ``help``."""

    def say(self, level: Level, text: str) -> None:
        """A line with `text`."""
        self._write(level, text, {})

    def error(self, error: VscRuntimeError) -> None:
        """A line with the error's parts."""
        self._write("error", error.message, {"code": error.code, "help": error.help})

    @staticmethod
    def _write(level: Level, text: str, more: dict[str, str | None]) -> None:
        head = {"time": datetime.now(UTC).isoformat(), "level": level, "event": "message", "message": text.strip()}
        print(json.dumps({**head, **more}), file=sys.stderr, flush=True)
