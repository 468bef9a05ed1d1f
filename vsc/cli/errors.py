"""The errors that end a command."""

from __future__ import annotations

from vsc.cli.problems import Problem

__all__ = ["Refused", "UsageError"]


class Refused(Exception):
    """The command ends: the problem (text if already rendered) and the exit status."""

    def __init__(self, problem: Problem | str, status: int) -> None:
        super().__init__(problem)
        self.problem, self.status = problem, status


class UsageError(Refused):
    """Wrong use: one sentence says what is wrong, another what to do; some have a code. Exit status 2."""

    def __init__(self, message: str, help: str | None = None, code: str | None = None) -> None:
        super().__init__(Problem(message, help, code), 2)
