"""What a function that explains a mistake gets and returns: the place of the unexpected token, and its explanation."""

from __future__ import annotations

from typing import NamedTuple

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.parser.machine import Failure, Machine
from vsc.compiler.source import Span

__all__ = ["Explanation", "Repair", "WrongPlace"]


class Repair(NamedTuple):
    """How to continue: read `terminal` in place of the token if `consumes`, else before it.

    With `terminal` None, the machine has already read what was missing.
    """

    terminal: int | None
    consumes: bool


Explanation = tuple[Finding | None, Repair | None]


class WrongPlace:
    """A token that is not allowed at its place, with everything needed to explain why."""

    def __init__(self, machine: Machine, failure: Failure, first: int) -> None:
        self.machine, self.tokens, self.tables = machine, machine.tokens, machine.tables
        self.index, self.terminal, self.first = failure.index, failure.terminal, first
        self.word = self.tokens.word(self.index)
        self.span = self.tokens.span(self.index)
        self.name = self.tables.names[self.terminal]
        self.expected = [self.tables.names[terminal] for terminal in machine.expected()]
        self.before = self.tables.names[self.tokens.kinds[self.index - 1]] if self.index > first else ""

    def damaged(self) -> bool:
        """Whether the token or the one before it was already reported by the lexer."""
        damaged = self.tokens.damaged
        return self.index in damaged or (self.index > self.first and self.index - 1 in damaged)

    def is_word(self) -> bool:
        """Whether the token is a word or a name in backticks."""
        return self.word[:1].isalpha() or self.word.startswith(("_", "`"))

    def word_at(self, index: int) -> str:
        """The text of another token of the statement; empty if `index` is outside it."""
        return self.tokens.word(index) if self.first <= index < len(self.tokens.kinds) else ""

    def finding(
        self, code: str, message: str, help: str | None, span: Span | None = None, new: str | None = None
    ) -> Finding:
        """A finding at the token, or at `span`. `new` is the text that certainly belongs there."""
        span = span or self.span
        return Finding(code, span, message, (), help, None if new is None else Fix(span, new))
