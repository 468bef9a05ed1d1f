"""Where a token cannot stand, and what is said about it: what the makers of messages look at and what they give."""

from __future__ import annotations

from typing import NamedTuple

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.parser.machine import Failure, Machine
from vsc.compiler.source import Span

__all__ = ["Explanation", "Place", "Repair"]


class Repair(NamedTuple):
    """Read `terminal`: in the place of the token, or (not `consumes`) before it. None: that is done."""

    terminal: int | None
    consumes: bool


Explanation = tuple[Finding | None, Repair | None]


class Place:
    """A token that cannot stand where it does, with all that is looked at to tell why."""

    def __init__(self, machine: Machine, failure: Failure, first: int) -> None:
        self.machine, self.tokens, self.tables = machine, machine.tokens, machine.tables
        self.index, self.terminal, self.first = failure.index, failure.terminal, first
        self.word = self.tokens.word(self.index)
        self.span = self.tokens.span(self.index)
        self.name = self.tables.names[self.terminal]
        self.expected = [self.tables.names[terminal] for terminal in machine.expected()]
        self.before = self.tables.names[self.tokens.kinds[self.index - 1]] if self.index > first else ""

    def damaged(self) -> bool:
        """Whether the token, or the one before it, was reported when it was read."""
        damaged = self.tokens.damaged
        return self.index in damaged or (self.index > self.first and self.index - 1 in damaged)

    def is_word(self) -> bool:
        """Whether the token is a word or a name in backticks."""
        return self.word[:1].isalpha() or self.word.startswith(("_", "`"))

    def word_at(self, index: int) -> str:
        """The text of another token of the statement; empty where there is none."""
        return self.tokens.word(index) if self.first <= index < len(self.tokens.kinds) else ""

    def finding(self, code: str, message: str, help: str | None, span: Span | None = None) -> Finding:
        """A finding at the token, or at `span`."""
        return Finding(code, span or self.span, message, (), help)
