"""The exception with which the modules of this package refuse an expression. It carries the finding.

It never leaves the package: `type_expression` collects the findings of all parts of an expression.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.source import Span

__all__ = ["Refused", "refuse"]


class Refused(Exception):
    """A part of an expression is not valid; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refuse(code: str, span: Span, message: str, help: str, fix: Fix | None = None) -> Refused:
    """The exception to raise for a new finding; `help` is the one thing to do, `fix` the edit that surely does it."""
    return Refused(Finding(code, span, message, (), help, fix))
