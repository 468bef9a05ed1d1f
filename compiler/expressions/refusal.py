"""How the modules of this package say that an expression cannot be: an exception that carries the finding.

It never leaves the package: `type_expression` collects the findings of all parts of an expression.
"""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.source import Span

__all__ = ["Refused", "refuse"]


class Refused(Exception):
    """A part of an expression has no meaning; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refuse(code: str, span: Span, message: str, help: str) -> Refused:
    """The exception to raise for one finding; `help` is the one thing to do."""
    return Refused(Finding(code, span, message, (), help))
