"""What a command raises when it was not used rightly."""

from __future__ import annotations

__all__ = ["UsageError"]


class UsageError(Exception):
    """Wrong use: a sentence that says what is wrong, and one that says what to do. Exit status 2."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.help = message, help
