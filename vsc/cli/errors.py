"""The error that a command raises when it is used wrongly."""

from __future__ import annotations

__all__ = ["UsageError"]


class UsageError(Exception):
    """Wrong use: one sentence says what is wrong, another what to do. Exit status 2."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.help = message, help
